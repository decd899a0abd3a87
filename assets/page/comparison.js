// A comparison of lanes as the page shows it: the sentence, how the lanes stand to each other, charts, acceptance, the table
// of costs. Draws what visualizers/comparison.py answers, in the page or in a saved file; knows nothing of runs or servers.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const LIKELIHOOD = [["mean", "a token", "Mean log-probability a token at equal length: the fair comparison"],
    ["total", "in all", "Sum of the log-probabilities: every token lowers it, so compare at the same number of tokens"]];
  const SHORT = { forwards: "target forwards", seconds: "seconds", target_tokens: "target tokens", positions: "drafted + verified" };

  const minus = (text) => text.replace("-", "−");
  const number = (value, digits) => (value === null || value === undefined ? "—" : minus(value.toFixed(digits)));
  const chance = (p) => (p === null ? "—" : p >= 0.995 ? "1.00" : p < 0.0001 ? "< .0001" : p.toFixed(p < 0.01 ? 4 : 2).replace(/^0/, ""));
  const charged = (key, value) => (key === "seconds" ? value.toFixed(3) + " s" : Math.round(value) + " " + SHORT[key]);

  // The last entry of `race` that was paid for with at most `cost`.
  function until(race, key, cost) {
    let at = 0;
    while (at + 1 < race[key].length && race[key][at + 1] <= cost + 1e-9) at += 1;
    return at;
  }

  // A cell of acceptance: a grey bar and the numbers.
  function shareCell(row) {
    if (!row) return h("td", {}, "—");
    const bar = h("span", { class: "share-bar" });
    bar.style.width = 60 * row.share + "px";
    return h("td", { class: "share" }, h("span", { class: "share-room" }, bar), row.share.toFixed(2).replace(/^0/, ""),
      h("span", { class: "soft" }, ` ${row.accepted} of ${row.tested}`));
  }

  page.Comparison = class {
    constructor(palette) {
      this.palette = palette;
      this.charge = "forwards";
      this.likely = "mean";
      this.sort = null; // {column, down}
      this.race = new page.Chart(palette);
      this.likelihood = new page.Chart(palette);
      this.entropy = new page.Chart(palette);
      this.logprob = new page.Chart(palette);
      this.depth = new page.Chart(palette);
      this.lanes = h("ul", { class: "compare-lanes" });
      this.classes = h("div", { class: "by-class" });
      this.accepted = h("div", { class: "compare-grid" }, this.depth.element, this.classes);
      this.table = h("div", { class: "compare-table", tabindex: "0", role: "region", "aria-label": "All costs" });
      this.copied = h("span", { class: "soft", role: "status" });
      this.copyButton = h("button", { type: "button", title: "Copies the table as text with tabs between columns", onclick: () => this.copy() }, "Copy");
      this.charges = h("div", { class: "compare-choices" });
      this.element = h("div", { class: "comparison" }, this.lanes, this.charges,
        h("div", { class: "compare-grid" }, this.race.element, this.likelihood.element, this.entropy.element, this.logprob.element),
        this.accepted,
        h("div", { class: "compare-head" }, h("h3", {}, "All costs"), this.copyButton, this.copied), this.table);
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
      if (!this.charges.firstChild) this.choices();
      this.lanes.replaceChildren(...data.lanes.map((lane, index) => this.laneLine(lane, index)));
      this.draw();
      this.drawAcceptance();
      this.drawTable();
    }

    choices() {
      const words = Object.entries(this.data.charges);
      const charge = page.choice("Cost counted in", words.map(([key, text]) => [key, SHORT[key] || text, "Cost in " + text]), this.charge,
        (key) => { this.charge = key; this.draw(); });
      const likely = page.choice("Log-probability", LIKELIHOOD, this.likely, (key) => { this.likely = key; this.draw(); });
      // Names of their own: the slider's units and the table's columns have the same words.
      charge.element.querySelectorAll("button").forEach((button) => button.setAttribute("aria-label", button.title));
      likely.element.querySelectorAll("button").forEach((button) => button.setAttribute("aria-label", "Log-probability " + button.textContent));
      this.charges.replaceChildren(h("span", { class: "soft" }, "cost in"), charge.element, h("span", { class: "soft" }, "log-probability"), likely.element);
    }

    // A lane with its key, how it stands to the reference, and whether it is the model's own greedy text.
    laneLine(lane, index) {
      const stands = this.data.lanes.length < 2 ? "" : lane.relation ? lane.relation.said : "the others are compared with this one";
      return h("li", {}, page.laneKey(this.palette, index),
        h("button", { type: "button", "aria-pressed": String(this.element.dataset.only === String(index)), title: "Show this lane's lines alone, or all again",
          onclick: () => this.only(index) }, lane.lane + " " + lane.label),
        h("span", {}, [stands, lane.tokens.length ? lane.greedy.said : ""].filter(Boolean).join("; ") + "."));
    }

    // The lines of one lane in full strength, the others faint; the same lane again: all of them.
    only(index) {
      if (this.element.dataset.only === String(index)) delete this.element.dataset.only;
      else this.element.dataset.only = String(index);
      [...this.lanes.children].forEach((line, i) => line.querySelector("button").setAttribute("aria-pressed", String(this.element.dataset.only === String(i))));
    }

    draw() {
      if (!this.data) return;
      this.drawRace();
      this.drawLikelihood();
      this.drawOverlay(this.entropy, "entropy", "entropy", "of the target where each token was chosen, in bits",
        (lane, i) => number(lane.entropy[i], 2) + " bits");
      this.drawOverlay(this.logprob, "logprob", "log p", "of each token under the target, before any processor",
        (lane, i) => "log p " + number(lane.logprob[i], 2) + (lane.logprob[i] === null ? "" : ", p " + chance(Math.exp(lane.logprob[i]))));
    }

    drawRace() {
      const key = this.charge, { lanes } = this.data;
      const x = this.reach(key, Math.max(0, ...lanes.map((lane) => lane.race[key].at(-1))));
      const y = this.reach("reached", Math.max(1, ...lanes.map((lane) => lane.race.reached.at(-1))));
      this.race.draw({
        title: ["tokens reached", "by " + this.data.charges[key] + ", measured; steeper is cheaper"],
        x: { words: this.data.charges[key], max: x, whole: key !== "seconds" }, y: { min: 0, max: y },
        lines: lanes.map((lane, index) => ({ lane: lane.lane, index, stairs: true, points: lane.race[key].map((v, i) => [v, lane.race.reached[i]]) })),
        note: page.atCost(this.data, key, x),
        read: (value) => page.atCost(this.data, key, value),
      });
    }

    drawLikelihood() {
      const key = this.charge, { lanes, likelihood } = this.data, words = this.data.charges[key];
      if (this.likely === "total") {
        const x = this.reach(key, Math.max(0, ...lanes.map((lane) => lane.race[key].at(-1))));
        const y = -this.reach("sum", -Math.min(0, ...lanes.flatMap((lane) => lane.race.logprob)));
        this.likelihood.draw({
          title: ["Σ log p", "of final tokens by " + words + ", derived; every token lowers it"],
          x: { words, max: x, whole: key !== "seconds" }, y: { min: y || -1, max: 0 },
          lines: lanes.map((lane, index) => ({ lane: lane.lane, index, stairs: true, points: lane.race[key].map((v, i) => [v, lane.race.logprob[i]]) })),
          read: (value) => "At " + charged(key, value) + ": " + lanes.map((lane) => {
            const i = until(lane.race, key, value);
            return `lane ${lane.lane} has ${number(lane.race.logprob[i], 1)} with ${lane.race.committed[i]} tokens`;
          }).join(", ") + ".",
        });
        return;
      }
      const known = likelihood.points.filter((point) => point.logprob !== null && point[key] !== null);
      const values = known.map((point) => point.logprob), low = Math.min(...values, 0), high = Math.max(...values, low);
      const room = Math.max(0.1, 0.15 * (high - low)), top = values.length ? Math.min(0, high + room) : 0;
      this.likelihood.draw({
        title: ["mean log p a token", likelihood.tokens ? `at ${likelihood.tokens} tokens, derived; up and left: likelier and cheaper` : ""],
        x: { words: words + " a token", max: 1.15 * Math.max(...known.map((point) => point[key]), 1e-6) },
        y: { min: (values.length ? low - room : -1), max: top },
        dots: likelihood.points.map((point, index) => ({ lane: point.lane, index, x: point[key], y: point.logprob })),
        note: known.length ? known.map((point) => `lane ${point.lane}: ${number(point.logprob, 3)} for ${point[key].toPrecision(3)}`).join(" · ")
          : "No token is final in every lane yet.",
      });
    }

    drawOverlay(chart, field, title, rest, say) {
      const { lanes, divergence } = this.data, length = Math.max(1, ...lanes.map((lane) => lane.tokens.length));
      const values = lanes.flatMap((lane) => lane[field]).filter((value) => value !== null);
      const max = this.reach("positions of tokens", length);
      const low = -this.reach(field + " low", -Math.min(0, ...values)), high = this.reach(field + " high", Math.max(0, ...values));
      chart.draw({
        title: [title, rest + ", measured"],
        x: { words: "token position", max, min: 1, whole: true },
        y: { min: low, max: high > low ? high : low + 1 },
        lines: lanes.map((lane, index) => ({ lane: lane.lane, index, points: lane[field].map((value, i) => [i + 1, value]) })),
        note: this.means(field),
        guide: divergence && { x: divergence.position, text: "first difference" },
        read: (position) => `Position ${position}: ` + lanes.map((lane) => {
          const i = position - 1;
          return i < lane.tokens.length ? `lane ${lane.lane} ${lane.tokens[i]} ${say(lane, i)}` : `lane ${lane.lane} —`;
        }).join(" · "),
      });
    }

    // The mean of each lane, where all its values are known.
    means(field) {
      const means = this.data.lanes.filter((lane) => lane[field].length && !lane[field].includes(null)).map((lane) =>
        `lane ${lane.lane} ${number(lane[field].reduce((sum, value) => sum + value, 0) / lane[field].length, 2)}`);
      return means.length ? "mean, derived: " + means.join(" · ") : "";
    }

    drawAcceptance() {
      const lanes = this.data.lanes.map((lane, index) => ({ ...lane, index })).filter((lane) => lane.alpha !== null);
      this.accepted.hidden = !lanes.length;
      if (!lanes.length) return;
      const deepest = this.reach("depth", Math.max(...lanes.flatMap((lane) => lane.depth.map((row) => row.depth))));
      const soft = { soft: true };
      this.depth.draw({
        title: ["accepted so deep", "share of the rounds that drafted so deep, measured; dotted: α to the depth, derived"],
        x: { words: "draft depth", max: deepest, min: 1, whole: true }, y: { min: 0, max: 1 },
        lines: lanes.flatMap((lane) => [
          { ...soft, lane: lane.lane, index: lane.index, points: lane.depth.map((row) => [row.depth, row.theory]) },
          { lane: lane.lane, index: lane.index, points: lane.depth.map((row) => [row.depth, row.share]) },
        ]),
        note: lanes.map((lane) => `lane ${lane.lane}: α ${lane.alpha.toFixed(2).replace(/^0/, "")}`).join(" · "),
        read: (depth) => `Depth ${depth}: ` + lanes.map((lane) => {
          const row = lane.depth.find((other) => other.depth === depth);
          return `lane ${lane.lane} ` + (row ? `${row.reached} of ${row.rounds} rounds, α^${depth} ${row.theory.toFixed(2).replace(/^0/, "")}` : "—");
        }).join(" · "),
      });
      const names = [...new Set(lanes.flatMap((lane) => lane.classes.map((row) => row.name)))];
      this.classes.replaceChildren(h("table", {}, h("caption", {}, h("b", {}, "accepted by kind of token"), " of those tested, measured"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "drafted token"), ...lanes.map((lane) => h("th", { scope: "col" }, "lane " + lane.lane)))),
        h("tbody", {}, ...names.map((name) => h("tr", {}, h("th", { scope: "row" }, name),
          ...lanes.map((lane) => shareCell(lane.classes.find((row) => row.name === name))))))));
    }

    // ---- the table of costs ---------------------------------------------------------------------------------------

    rows() {
      const rows = [...this.data.table.rows];
      if (!this.sort) return rows;
      const { column, down } = this.sort;
      const value = (row) => (column < 0 ? row.lane : row.cells[column].value);
      return rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null); // what a lane has not stands last either way
        return (down ? -1 : 1) * (x - y) || a.lane - b.lane;
      });
    }

    drawTable() {
      const { columns, rows } = this.data.table, focused = this.table.contains(document.activeElement) && document.activeElement.dataset.column;
      const left = this.table.scrollLeft;
      const head = (text, column, title) => {
        const order = this.sort && this.sort.column === column ? (this.sort.down ? "descending" : "ascending") : "none";
        const listed = column >= 0 && rows.some((row) => Array.isArray(row.cells[column].value));
        const glyph = { descending: " ▾", ascending: " ▴", none: "" }[order];
        const inner = listed ? h("span", { title }, text.replace(/_/g, "_\u200b")) : h("button", { type: "button", "data-column": String(column), title, "aria-label": "Sort by " + text, onclick: () => this.sortBy(column) },
          text.replace("log p", "log\u00a0p").replace(" / ", "\u00a0/ ").replace(/_/g, "_\u200b") + glyph);
        return h("th", { scope: "col", "aria-sort": listed ? null : order, title }, inner);
      };
      this.table.replaceChildren(h("table", {},
        h("thead", {}, h("tr", {}, head("lane", -1, "Sort by lane"), ...columns.map((column, i) => head(column.name, i, `${column.title} (${column.how})`)))),
        h("tbody", {}, ...this.rows().map((row) => h("tr", {}, h("th", { scope: "row" }, row.lane + " " + row.label),
          ...row.cells.map((cell) => h("td", { title: Array.isArray(cell.value) ? cell.value.join(" ") : null }, cell.label)))))));
      this.table.scrollLeft = left;
      if (focused) this.table.querySelector(`[data-column="${focused}"]`)?.focus({ preventScroll: true });
    }

    sortBy(column) {
      const same = this.sort && this.sort.column === column;
      this.sort = { column, down: same ? !this.sort.down : column >= 0 };
      this.drawTable();
    }

    // The table as text, a tab between columns; numbers in full.
    text() {
      const { columns } = this.data.table;
      const plain = (value) => (value === null ? "—" : Array.isArray(value) ? value.join(" ") : String(value));
      const lines = this.rows().map((row) => [row.lane + " " + row.label, ...row.cells.map((cell) => plain(cell.value))]);
      return [["lane", ...columns.map((column) => column.name)], ...lines].map((line) => line.join("\t")).join("\n") + "\n";
    }

    async copy() {
      const text = this.text();
      try {
        await navigator.clipboard.writeText(text);
        this.copied.textContent = "Copied.";
      } catch {
        this.offer(text);
      }
    }

    // The clipboard is refused: the text itself, selected, to be copied by hand.
    offer(text) {
      const field = h("textarea", { class: "compare-text", readonly: "", rows: "4", "aria-label": "The table as text", value: text });
      this.table.nextElementSibling?.remove();
      this.table.after(field);
      field.focus();
      field.select();
      this.copied.textContent = "The browser refuses the clipboard: press Ctrl+C or ⌘C to copy the marked text.";
    }
  };

  // "At 12 target forwards: lane 1 has 12 tokens, lane 2 31 (ended)."
  page.atCost = function (data, key, value) {
    const parts = data.lanes.map((lane, i) => {
      const at = until(lane.race, key, value), over = lane.ended && at === lane.race[key].length - 1 && lane.race[key][at] < value - 1e-9;
      return `lane ${lane.lane} ${i ? "" : "has "}${lane.race.reached[at]}${i ? "" : " tokens"}${over ? " (ended)" : ""}`;
    });
    return `At ${charged(key, value)}: ${parts.join(", ")}.`;
  };
})(window.ExplorerPage);
