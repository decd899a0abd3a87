// What if the draft had another shape: a part of the Microscope section. Draws what visualizers/analysis/draft_what_if.py answers.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;

  const same = ([low, high], digits) => low.toFixed(digits) === high.toFixed(digits);
  // A range in words: one number where both ends are printed alike.
  const range = (ends, digits) => {
    if (!ends) return "—";
    return same(ends, digits) ? ends[0].toFixed(digits) : `${ends[0].toFixed(digits)} to ${ends[1].toFixed(digits)}`;
  };
  const cell = (text) => h("td", {}, text);

  class WhatIf {
    constructor(app) {
      this.chart = new page.Chart(app.data.palette);
      const field = (label, value, says) => h("input", { type: "text", value, "aria-label": label, title: says,
        inputmode: "decimal", autocomplete: "off", onchange: () => this.ask() });
      this.widths = field("Children, level by level", "3 2 1 1",
        "How many tokens are drafted below each node, level by level; 1 1 1 is a chain of three");
      this.below = field("Stop below", "0",
        "Drafting stops after a place where the draft's favourite is less likely than this; 0: never");
      this.sentence = h("p", { class: "soft", role: "status" });
      this.table = h("div", { class: "by-class shapes", tabindex: "0", role: "region", "aria-label": "Other drafts" });
      this.drawn = h("div", { class: "compare-grid" }, this.chart.element, this.table);
      this.element = h("section", { "aria-label": "What if" }, h("h2", {}, "What if the draft had another shape?"),
        h("div", { class: "compare-choices" }, page.labelled("children, level by level", this.widths),
          page.labelled("stop below", this.below)),
        this.sentence, this.drawn);
    }

    show(run, lane, number) {
      Object.assign(this, { run, lane, number });
      this.ask();
    }

    async ask() {
      const below = Number(this.below.value.replace(",", "."));
      const asked = { run: this.run.id, lane: this.lane, widths: this.widths.value, stop_below: below };
      if (!Number.isFinite(asked.stop_below)) return this.say("Stop below takes a probability from 0 to 1.");
      this.asked = asked;
      const found = await page.call("explorer_what_if", asked);
      if (this.asked !== asked) return;
      if (found.error || !found.known) return this.say(found.error || found.sentence, Boolean(found.error));
      this.sentence.textContent = found.sentence;
      this.sentence.classList.remove("wrong");
      this.drawn.hidden = false;
      this.draw(found);
      this.tabulate(found);
    }

    say(sentence, wrong) {
      this.sentence.textContent = sentence;
      this.sentence.classList.toggle("wrong", Boolean(wrong));
      this.drawn.hidden = true;
    }

    draw({ chains, own, run, exact }) {
      const points = (end) => chains.map((row) => [row.widths.length, row.tokens[end]]);
      const highest = Math.max(run.tokens, own.tokens[1], ...chains.map((row) => row.tokens[1]));
      this.chart.draw({
        title: ["tokens a round", `by length of a chain, ${exact ? "derived; dotted: best case of unknown places" : "estimated"}`],
        x: { words: "drafted tokens in a chain", min: 1, max: chains.length, whole: true },
        y: { min: 0, max: Math.max(2, highest) },
        lines: [...(exact ? [{ lane: "best", index: 0, soft: true, points: points(1) }] : []),
          { lane: this.number, index: 0, points: points(0) }],
        note: `This lane: ${run.tokens.toFixed(2)} tokens a round, measured.`,
        read: (depth) => {
          const row = chains[depth - 1];
          return `A chain of ${depth}: ${range(row.tokens, 2)} tokens a round, ${range(row.rounds, exact ? 0 : 1)} target forwards`
            + (row.speedup ? `, ${range(row.speedup, 2)} x.` : ".");
        },
      });
    }

    tabulate({ chains, own, run, exact, cost, places }) {
      const name = (row) => (row === own ? row.widths.join(" ") : `chain of ${row.widths.length}`);
      const best = cost === null ? null : chains.reduce((a, b) => (b.speedup[0] > a.speedup[0] ? b : a));
      const lengths = [1, 2, 3, 4, 6, 8, 12, 16];
      const rows = [own, ...chains.filter((row) => lengths.includes(row.widths.length) || row === best)];
      const head = (row) => h("th", { scope: "row" }, row === best ? h("b", {}, name(row)) : name(row));
      const line = (row) => h("tr", {}, head(row), cell(range(row.tokens, 2)), cell(range(row.rounds, exact ? 0 : 1)),
        cell(String(row.size)), cell(range(row.speedup, 2)));
      const gain = ["× faster",
        "tokens a round / (1 + levels × cost of a draft forward), as if a verifying forward cost the same at any size"];
      const rest = cost === null ? "" : `; a draft forward costs ${cost.toFixed(2)} of a target's, measured`;
      this.table.replaceChildren(page.smallTable(["other drafts", `for the same ${places} tokens${rest}`],
        ["draft", "tokens a round", "target forwards", ["drafted", "Tokens drafted by a full round"], gain],
        [h("tr", {}, h("th", { scope: "row" }, "this lane, measured"), cell(run.tokens.toFixed(2)), cell(String(run.rounds)),
          cell(""), cell("")),
          ...rows.map(line)]));
    }
  }

  (page.microscopeParts = page.microscopeParts || []).push(WhatIf);
})(window.ExplorerPage);
