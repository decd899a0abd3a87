// The cost strip of a lane: the four numbers that the lane is about, the others behind *more*, and what a
// word means where it is touched. Which numbers come first is visualizers/analysis/cost_summary.py's.
page.Costs = class {
  constructor(lane) {
    const { costs, moreCosts: more, costSays: says, element } = lane;
    Object.assign(this, { lane, list: costs, more, says, asked: null });
    more.addEventListener("click", () => {
      const all = element.classList.toggle("all-costs");
      more.setAttribute("aria-expanded", String(all));
      page.write(more, all ? "less" : "more");
    });
    costs.addEventListener("click", ({ target }) => this.define(target.closest("button")));
    page.rove(costs, "button", (word) => {
      word.focus();
      if (!says.hidden) this.define(word);
    });
    element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || says.hidden) return;
      event.stopPropagation();
      this.define(null);
    });
  }

  // Shows what a word means; the same word again, or null, hides it.
  define(word) {
    const name = word?.textContent ?? null;
    if (word === null && this.says.hidden) return;
    this.asked = name === this.asked ? null : name;
    this.says.hidden = this.asked === null;
    page.write(this.says, this.asked === null ? "" : this.meaning(name));
  }

  meaning(name) {
    return this.lane.app.data.costs[name] || "";
  }

  // The costs after a step, a row of the run; none before the first.
  draw(row) {
    const entries = row ? row.cost : [],
      lengths = JSON.stringify(entries.map(([name, label]) => [name, label.length]));
    if (lengths !== this.lengths) this.arrange(entries, lengths);
    entries.forEach(([, label], i) => page.write(this.list.children[i].firstChild, label));
  }

  // A number of another length moves those after it.
  arrange(entries, lengths) {
    this.lengths = lengths;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.list.replaceChildren(
      ...entries.map(([name], i) => {
        const look = { type: "button", title: this.meaning(name), tabindex: i ? "-1" : "0" };
        return h("div", {}, h("dd"), h("dt", {}, h("button", look, name)));
      }),
    );
    this.more.hidden = entries.length <= 4;
    if (!entries.some(([name]) => name === this.asked)) this.define(null);
    if (focused !== null)
      [...this.list.querySelectorAll("button")].find((one) => one.textContent === focused)?.focus();
  }
};
