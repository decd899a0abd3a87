// A comparison of lanes as the page shows it: how they stand to each other, charts, acceptance, costs. Draws what
// visualizers/analysis/comparison.py answers, in the page or in a saved file; knows nothing of runs or servers.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const LIKELIHOOD = [["mean", "a token", "Mean log-probability a token at equal length: the fair comparison"],
    ["total", "in all", "Sum of the log-probabilities: every token lowers it, so compare at the same number of tokens"]];
  const SHORT = { positions: "drafted + verified" }; // words of a charge where room is scarce

  const bare = (text) => text.replace(/^0/, ""); // .5 for 0.5
  const number = (value, digits) => (value === null ? "—" : value.toFixed(digits).replace("-", "−"));

  function chance(p) {
    if (p < 0.0001) return "< .0001";
    return bare(p.toFixed(p < 0.01 ? 4 : 2));
  }

  // The last entry of `race` that was paid for with at most `cost`.
  function until(race, key, cost) {
    let at = 0;
    while (at + 1 < race[key].length && race[key][at + 1] <= cost + 1e-9) at += 1;
    return at;
  }

  // The largest cost at which it is known what every lane had: all of it, or as far as the lanes are shown.
  function knownCost(lanes, key) {
    const open = lanes.filter((lane) => !lane.ended), last = (lane) => lane.race[key].at(-1);
    return open.length ? Math.min(...open.map(last)) : Math.max(0, ...lanes.map(last));
  }

  // A cell of acceptance: a grey bar and the numbers.
  page.shareCell = function (row) {
    if (!row) return h("td", {}, "—");
    const bar = h("span", { class: "share-bar" });
    bar.style.width = 100 * row.share + "%";
    return h("td", {}, h("span", { class: "share-room" }, bar), bare(row.share.toFixed(2)),
      h("span", { class: "soft" }, ` ${row.accepted} of ${row.tested}`));
  };

  page.Comparison = class {
    constructor(palette) {
      this.palette = palette;
      this.charge = "forwards";
      this.likely = "mean";
      for (const name of ["race", "likelihood", "entropy", "logprob", "depth"]) this[name] = new page.Chart(palette);
      this.costs = new page.CostTable();
      this.lanes = h("ul", { class: "compare-lanes" });
      this.classes = h("div", { class: "by-class" });
      this.accepted = h("div", { class: "compare-grid" }, this.depth.element, this.classes);
      this.choices = h("div", { class: "compare-choices" });
      const charts = [this.race, this.likelihood, this.entropy, this.logprob].map((chart) => chart.element);
      this.element = h("div", { class: "comparison" }, this.lanes, this.choices, h("div", { class: "compare-grid" }, ...charts),
        this.accepted, this.costs.element);
      this.reset();
    }

    // Another run: the axes begin anew. Within one run they only grow, so that nothing jumps while the slider moves.
    reset() {
      this.most = {};
      delete this.element.dataset.only;
    }

    // The largest value of an axis so far.
    reach(name, value) {
      this.most[name] = Math.max(this.most[name] ?? value, value);
      return this.most[name];
    }

    show(data) {
      this.data = data;
      if (!this.choices.firstChild) this.makeChoices();
      this.lanes.replaceChildren(...data.lanes.map((lane, index) => this.laneLine(lane, index)));
      this.draw();
      this.drawDepth();
      this.drawClasses();
      this.costs.show(data.table);
    }

    // Their buttons have names of their own: the slider's units and the table's columns have the same words.
    makeChoices() {
      const charges = Object.entries(this.data.charges).map(([key, words]) => [key, SHORT[key] || words, "Cost in " + words]);
      const charge = page.choice("Cost counted in", charges, this.charge, (key) => {
        this.charge = key;
        this.draw();
      });
      const likely = page.choice("Log-probability", LIKELIHOOD, this.likely, (key) => {
        this.likely = key;
        this.draw();
      });
      for (const button of charge.element.children) button.setAttribute("aria-label", button.title);
      for (const button of likely.element.children) button.setAttribute("aria-label", "Log-probability " + button.textContent);
      const soft = (text) => h("span", { class: "soft" }, text);
      this.choices.replaceChildren(soft("cost in"), charge.element, soft("log-probability"), likely.element);
    }

    // A lane with its key, how it stands to the reference, and whether it is the model's own greedy text.
    laneLine(lane, index) {
      const stands = lane.relation ? lane.relation.said : "the others are compared with this one";
      const said = [this.data.lanes.length > 1 ? stands : "", lane.tokens.length ? lane.greedy.said : ""].filter(Boolean);
      const button = h("button", { type: "button", "aria-pressed": String(this.isOnly(index)),
        title: "Show this lane's lines alone, or all again", onclick: () => this.only(index) }, lane.lane + " " + lane.label);
      return h("li", {}, page.laneKey(this.palette, index), button, h("span", {}, said.length ? said.join("; ") + "." : ""));
    }

    isOnly(index) {
      return this.element.dataset.only === String(index);
    }

    // The lines of one lane in full strength, the others faint; the same lane again: all of them.
    only(index) {
      if (this.isOnly(index)) delete this.element.dataset.only;
      else this.element.dataset.only = String(index);
      this.lanes.querySelectorAll("button").forEach((button, i) => button.setAttribute("aria-pressed", String(this.isOnly(i))));
    }

    draw() {
      if (!this.data) return;
      this.drawRace();
      if (this.likely === "total") this.drawTotal();
      else this.drawMean();
      const bits = (lane, i) => number(lane.entropy[i], 2) + " bits";
      const p = (value) => (value === null ? "" : `, p ${chance(Math.exp(value))}`);
      const logprob = (lane, i) => `log p ${number(lane.logprob[i], 2)}` + p(lane.logprob[i]);
      this.drawOverlay(this.entropy, "entropy", "entropy", "of the target where each token was chosen, in bits, measured", bits);
      this.drawOverlay(this.logprob, "logprob", "log p", "of each token under the target, unprocessed, measured", logprob);
    }

    // ---- what was reached for what was paid -----------------------------------------------------------------------

    // The axis of costs, and one line a lane of a running total over them.
    paid(field) {
      const key = this.charge, { lanes } = this.data;
      const max = this.reach(key, Math.max(0, ...lanes.map((lane) => lane.race[key].at(-1))));
      const points = (lane) => lane.race[key].map((value, i) => [value, lane.race[field][i]]);
      return {
        x: { words: this.data.charges[key], max, whole: key !== "seconds" },
        lines: lanes.map((lane, index) => ({ lane: lane.lane, index, stairs: true, points: points(lane) })),
      };
    }

    // What every lane had for a cost: "At 12 target forwards: lane 1 has 12 tokens, lane 2 31 (ended)."
    atCost(value, say) {
      const key = this.charge, cost = key === "seconds" ? value.toFixed(3) : Math.round(value);
      const parts = this.data.lanes.map((lane, i) => {
        const at = until(lane.race, key, value), beyond = lane.race[key].at(-1) < value - 1e-9;
        if (beyond && !lane.ended) return `lane ${lane.lane} — (not shown so far)`;
        return `lane ${lane.lane} ${say(lane, at, i)}${beyond ? " (ended)" : ""}`;
      });
      return `At ${cost} ${this.data.charges[key]}: ${parts.join(", ")}.`;
    }

    drawRace() {
      const reached = (lane, at, i) => (i ? lane.race.reached[at] : `has ${lane.race.reached[at]} tokens`);
      const read = (value) => this.atCost(value, reached);
      const most = Math.max(1, ...this.data.lanes.map((lane) => lane.race.reached.at(-1)));
      this.race.draw({
        title: ["tokens reached", `by ${this.data.charges[this.charge]}, measured; steeper is cheaper`],
        ...this.paid("reached"), y: { min: 0, max: this.reach("reached", most) },
        note: read(knownCost(this.data.lanes, this.charge)), read,
      });
    }

    drawTotal() {
      const sum = (lane, at) => `${number(lane.race.logprob[at], 1)} with ${lane.race.committed[at]} tokens`;
      const read = (value) => this.atCost(value, sum);
      const low = this.reach("sum", -Math.min(0, ...this.data.lanes.flatMap((lane) => lane.race.logprob)));
      this.likelihood.draw({
        title: ["Σ log p", `of final tokens by ${this.data.charges[this.charge]}, derived; every token lowers it`],
        ...this.paid("logprob"), y: { min: -low || -1, max: 0 },
        note: read(knownCost(this.data.lanes, this.charge)), read,
      });
    }

    drawMean() {
      const key = this.charge, { tokens, points } = this.data.likelihood, words = this.data.charges[key];
      const known = points.filter((point) => point.logprob !== null && point[key] !== null);
      const values = known.map((point) => point.logprob), low = Math.min(0, ...values), high = Math.max(low, ...values);
      const room = Math.max(0.1, 0.15 * (high - low));
      const said = known.map((point) => `lane ${point.lane}: ${number(point.logprob, 3)} for ${point[key].toPrecision(3)}`);
      this.likelihood.draw({
        title: ["mean log p a token", tokens ? `at ${tokens} tokens, derived; up and left: likelier and cheaper` : ""],
        x: { words: words + " a token", max: 1.15 * Math.max(0, ...known.map((point) => point[key])) || 1 },
        y: { min: known.length ? low - room : -1, max: known.length ? Math.min(0, high + room) : 0 },
        dots: points.map((point, index) => ({ lane: point.lane, index, x: point[key], y: point.logprob })),
        note: said.length ? said.join(" · ") : "No token is final in every lane yet.",
      });
    }

    // ---- token by token -------------------------------------------------------------------------------------------

    drawOverlay(chart, field, title, rest, say) {
      const { lanes, divergence } = this.data, values = lanes.flatMap((lane) => lane[field]).filter((value) => value !== null);
      const max = this.reach("position", Math.max(1, ...lanes.map((lane) => lane.tokens.length)));
      const low = -this.reach(field + " low", -Math.min(0, ...values));
      const high = this.reach(field + " high", Math.max(0, ...values));
      const at = (lane, i) => `lane ${lane.lane} ` + (i < lane.tokens.length ? `${lane.tokens[i]} ${say(lane, i)}` : "—");
      chart.draw({
        title: [title, rest], x: { words: "token position", max, min: 1, whole: true },
        y: { min: low, max: high > low ? high : low + 1 },
        lines: lanes.map((lane, index) => ({ lane: lane.lane, index, points: lane[field].map((value, i) => [i + 1, value]) })),
        note: this.means(field), guide: divergence && { x: divergence.position, text: "first difference" },
        read: (position) => `Position ${position}: ${lanes.map((lane) => at(lane, position - 1)).join(" · ")}`,
      });
    }

    // The mean of each lane of which all values are known.
    means(field) {
      const known = this.data.lanes.filter((lane) => lane[field].length && !lane[field].includes(null));
      const mean = (lane) => lane[field].reduce((sum, value) => sum + value, 0) / lane[field].length;
      const said = known.map((lane) => `lane ${lane.lane} ${number(mean(lane), 2)}`);
      return said.length ? "mean, derived: " + said.join(" · ") : "";
    }

    // ---- acceptance -----------------------------------------------------------------------------------------------

    // The lanes that drafted, each with its place among all.
    drafting() {
      return this.data.lanes.map((lane, index) => ({ ...lane, index })).filter((lane) => lane.alpha !== null);
    }

    drawDepth() {
      const lanes = this.drafting();
      this.accepted.hidden = !lanes.length;
      if (!lanes.length) return;
      const max = this.reach("depth", Math.max(...lanes.flatMap((lane) => lane.depth.map((row) => row.depth))));
      const points = (lane, field) => lane.depth.map((row) => [row.depth, row[field]]);
      const line = (lane, field, soft) => ({ lane: lane.lane, index: lane.index, soft, points: points(lane, field) });
      const at = (lane, depth) => {
        const row = lane.depth.find((other) => other.depth === depth);
        if (!row) return `lane ${lane.lane} —`;
        return `lane ${lane.lane} ${row.reached} of ${row.rounds} rounds, α^${depth} ${bare(row.theory.toFixed(2))}`;
      };
      this.depth.draw({
        title: ["accepted so deep", "share of the rounds that drafted so deep, measured; dotted: α to the depth, derived"],
        x: { words: "draft depth", max, min: 1, whole: true }, y: { min: 0, max: 1 },
        lines: lanes.flatMap((lane) => [line(lane, "theory", true), line(lane, "share", false)]),
        note: lanes.map((lane) => `lane ${lane.lane}: α ${bare(lane.alpha.toFixed(2))}`).join(" · "),
        read: (depth) => `Depth ${depth}: ${lanes.map((lane) => at(lane, depth)).join(" · ")}`,
      });
    }

    drawClasses() {
      const lanes = this.drafting(), names = [...new Set(lanes.flatMap((lane) => lane.classes.map((row) => row.name)))];
      const head = ["drafted token", ...lanes.map((lane) => "lane " + lane.lane)].map((text) => h("th", { scope: "col" }, text));
      const cells = (name) => lanes.map((lane) => page.shareCell(lane.classes.find((row) => row.name === name)));
      this.classes.replaceChildren(h("table", {},
        h("caption", {}, h("b", {}, "accepted by kind of token"), " of those tested, measured"),
        h("thead", {}, h("tr", {}, ...head)),
        h("tbody", {}, ...names.map((name) => h("tr", {}, h("th", { scope: "row" }, name), ...cells(name))))));
    }
  };
})(window.ExplorerPage);
