// The Microscope section: one speculative lane of the run, and where its drafts were accepted and wasted. Draws what
// visualizers/analysis/speculation_report.py answers; asks only while the section is on screen. Its further parts stand in files of their own:
// each is a class in `page.microscopeParts` with an `element` and `show(run, lane, number)`.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";

  // A cell of acceptance: a grey bar and the numbers.
  page.shareCell = function (row) {
    if (!row) return h("td", {}, "—");
    const bar = h("span", { class: "share-bar" });
    bar.style.width = 100 * row.share + "%";
    return h("td", {}, h("span", { class: "share-room" }, bar), bare(row.share),
      h("span", { class: "soft" }, ` ${row.accepted} of ${row.tested}`));
  };
  const h = page.h;
  const OFTEN = 500; // milliseconds between two questions
  const NONE = "No lane of this run has drafted anything. Choose a speculative strategy, for example Speculative decoding, "
    + "and press Run.";

  const bare = (value, digits) => value.toFixed(digits === undefined ? 2 : digits).replace(/^0\./, ".");
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const cell = (...what) => h("td", {}, ...what);
  const head = (text, title) => h("th", { scope: "col", title }, text);
  const row = (name, ...cells) => h("tr", {}, h("th", { scope: "row" }, name), ...cells);
  page.microscopeParts = page.microscopeParts || [];

  // A table with its caption: bold words, the rest in grey; wide ones scroll sideways.
  page.smallTable = function (title, heads, rows) {
    return h("table", {}, h("caption", {}, h("b", {}, title[0]), " " + title[1]),
      h("thead", {}, h("tr", {}, ...heads.map((one) => (typeof one === "string" ? head(one) : head(...one))))), h("tbody", {}, ...rows));
  };

  // A metric's value: counts as they are, shares and means with three digits, lists one after the other.
  function metric(value) {
    const one = (number) => (Number.isInteger(number) ? String(number) : bare(number, 3));
    return Array.isArray(value) ? value.map(one).join("  ") : one(value);
  }

  class Microscope {
    constructor(app) {
      this.app = app;
      this.palette = app.data.palette;
      for (const name of ["time", "depth", "histogram", "trust"]) this[name] = new page.Chart(this.palette);
      this.lanes = h("div", { class: "microscope-lanes" });
      this.sentence = h("p", { class: "microscope-sentence", role: "status" }, NONE);
      this.expected = h("p", { class: "soft" });
      for (const name of ["classes", "ranks", "fates", "metrics"]) {
        this[name] = h("div", { class: "by-class", tabindex: "0", role: "region", "aria-label": "Table" });
      }
      this.parts = page.microscopeParts.map((Part) => new Part(app));
      const grid = (...parts) => h("div", { class: "compare-grid" }, ...parts);
      this.body = h("div", { hidden: true }, this.time.element, grid(this.depth.element, this.histogram.element), this.expected,
        grid(this.trust.element, this.ranks, this.classes, this.fates), this.metrics, ...this.parts.map((part) => part.element));
      this.element = h("section", { class: "section microscope comparison", "aria-label": "Microscope" },
        h("p", { class: "soft" },
          "One speculative lane of the run on the page: which drafted tokens were accepted, and where drafting was in vain."),
        this.lanes, this.sentence, this.body);
      for (const name of ["run", "data", "lanes"]) app.on(name, () => this.changed());
      app.on("run", () => (this.wanted = null));
    }

    // Something may be different: asks, at most twice a second.
    changed() {
      clearTimeout(this.timer);
      if (this.app.section !== "microscope") return;
      this.timer = setTimeout(() => this.ask(), Math.max(0, (this.asked || 0) + OFTEN - performance.now()));
    }

    shown() {
      this.asked = 0;
      this.changed();
    }

    // What the page calls a lane of the run; 0 if it shows it no more.
    numberOf(index) {
      return this.app.lanes.findIndex((lane) => lane.runIndex === index) + 1;
    }

    async ask() {
      const run = this.app.run;
      if (!run || this.busy) return;
      this.busy = true;
      this.asked = performance.now();
      const answer = await page.patient("explorer_microscope", { run: run.id, lane: this.wanted });
      this.busy = false;
      if (this.app.run !== run) return this.changed();
      if (answer.unheard) return; // what is here stays
      if (answer.error) return this.say(answer.error);
      this.show(answer, run);
    }

    say(sentence) {
      this.body.hidden = true;
      this.sentence.textContent = sentence;
      this.lanes.replaceChildren();
    }

    show({ drafting, lane, found }, run) {
      const shown = drafting.filter((index) => this.numberOf(index));
      if (!shown.length) return this.say(NONE);
      if (!shown.includes(lane)) return this.pick(shown[0]);
      const title = (number) => `${number} ${this.app.lanes[number - 1].declaration().title}`;
      const options = shown.map((index) => [index, title(this.numberOf(index))]);
      const key = JSON.stringify([options, lane]);
      if (key !== this.key) this.lanes.replaceChildren(page.choice("Lane", options, lane, (index) => this.pick(index)).element);
      this.key = key;
      this.sentence.textContent = found.sentence;
      this.body.hidden = false;
      this.drawTime(found);
      this.drawDepth(found);
      this.drawHistogram(found);
      this.drawExpected(found);
      this.drawTrust(found);
      this.drawRanks(found);
      this.drawClasses(found);
      this.drawFates(found);
      this.drawMetrics(found);
      for (const part of this.parts) part.show(run, lane, this.numberOf(lane));
    }

    pick(index) {
      this.wanted = index;
      this.asked = 0;
      this.changed();
    }

    // ---- over time ------------------------------------------------------------------------------------------------

    drawTime({ rounds, metrics }) {
      const lost = (made) => made.drafted - made.accepted;
      const mean = metrics.find((one) => one.name === "mean_acceptance_length").value;
      const up = Math.max(2, ...rounds.map((made) => made.accepted + 1)), down = Math.max(1, ...rounds.map(lost));
      const floor = Math.min(down, 2 * up); // large trees waste much: what is gained stays readable
      const parts = (made) => [
        { from: 0, to: made.accepted, state: "accepted" },
        ...(made.own ? [{ from: made.accepted, to: made.accepted + 1, state: made.own, mark: true }] : []),
        ...(made.rejected ? [{ from: 0, to: -Math.min(floor, made.rejected), state: "rejected", fill: "outline" }] : []),
        ...(lost(made) > made.rejected
          ? [{ from: -made.rejected, to: -Math.min(floor, lost(made)), state: "unreached", fill: "dotted" }] : []),
      ];
      const own = { resampled: ", then the target's own token", bonus: " and one more of the target's own" };
      const read = (place) => {
        const made = rounds[place - 1];
        return `Round ${place}: ${made.accepted} of ${made.drafted} accepted${own[made.own] || ""}; ${made.rejected} rejected, `
          + `${lost(made) - made.rejected} never reached; mean acceptance length of the last rounds ${made.recent.toFixed(2)}.`;
      };
      this.time.draw({
        title: ["round by round",
          "up: tokens gained, down: drafted in vain, measured; line: mean acceptance length of the last 8 rounds, derived"],
        x: { words: "round", min: 1, max: rounds.length, whole: true },
        y: { min: -floor, max: up },
        bars: rounds.map((made, i) => ({ x: i + 1, parts: parts(made) })),
        lines: [{ lane: mean.toFixed(2), index: 0, points: rounds.map((made, i) => [i + 1, made.recent]) }],
        note: `mean_acceptance_length ${mean.toFixed(2)} = 1 + accepted / rounds. Up: accepted, ◆ own token after a rejection, `
          + "★ own token after none; down: rejected, dotted: never looked at"
          + (down > floor ? `, cut at ${floor} of up to ${down}.` : "."),
        read,
      });
    }

    // ---- by place in the draft ------------------------------------------------------------------------------------

    drawDepth({ depths, expected }) {
      const { alpha } = expected, at = (place) => depths.find((one) => one.depth === place);
      const read = (place) => {
        const one = at(place);
        if (!one) return `Depth ${place}: nothing was drafted.`;
        const tested = one.tested ? `${one.accepted} of ${one.tested} tested (${bare(one.of_tested)})` : "none tested";
        return `Depth ${place} (vLLM: place ${place - 1}): accepted in ${bare(one.of_rounds)} of all rounds; `
          + `${one.drafted} drafted, ${tested}` + (alpha === null ? "." : `; α^${place} = ${bare(alpha ** place)}.`);
      };
      const points = (value) => depths.map((one) => [one.depth, value(one)]);
      this.depth.draw({
        title: ["acceptance by depth", "bars: of all rounds; line: of the tested; dotted: α^depth"],
        x: { words: "draft depth", min: 1, max: depths[depths.length - 1].depth, whole: true }, y: { min: 0, max: 1 },
        bars: depths.map((one) => ({ x: one.depth, parts: [{ from: 0, to: one.of_rounds, fill: "pale" }] })),
        lines: [...(alpha === null ? [] : [{ lane: "α", index: 0, soft: true, points: points((one) => alpha ** one.depth) }]),
          { lane: "tested", index: 0, points: points((one) => one.of_tested) }],
        note: alpha === null ? "" : `α ${bare(alpha)} = levels accepted / levels tested, measured.`,
        read,
      });
    }

    drawHistogram({ histogram }) {
      const rounds = histogram.reduce((sum, value) => sum + value, 0);
      this.histogram.draw({
        title: ["acceptance_histogram", "rounds by number of accepted tokens, measured"],
        x: { words: "accepted tokens", min: 0, max: histogram.length - 1, whole: true },
        y: { min: 0, max: 1.15 * Math.max(...histogram) },
        bars: histogram.map((value, i) => ({ x: i, parts: [{ from: 0, to: value }], text: value ? String(value) : "" })),
        note: `[${histogram.join(", ")}], ${count(rounds, "round")}.`,
        read: (place) => `${histogram[place]} of ${count(rounds, "round")} accepted ${count(place, "token")}.`,
      });
    }

    drawExpected({ expected: { alpha, expected, realised, by_draft: byDraft, says }, drafting }) {
      const took = drafting.draft + drafting.target;
      const time = drafting.draft && took
        ? ` Drafting took ${Math.round(100 * drafting.draft / took)} % of the models' time, measured.` : "";
      const own = byDraft === null ? "" : ` The draft's own probabilities foretold ${byDraft.toFixed(2)}.`;
      this.expected.textContent = alpha === null ? says + time
        : `Tokens a round: ${realised.toFixed(2)} realised, ${expected.toFixed(2)} expected from α = ${bare(alpha)} by `
          + `(1 − α^(depth + 1)) / (1 − α), mean over the rounds: ${says}.${own}${time}`;
    }

    // ---- can the draft be believed --------------------------------------------------------------------------------

    drawTrust({ reliability }) {
      this.trust.element.hidden = !reliability.length;
      const all = reliability.flatMap(({ name, bins }) => bins.map((bin) => ({ name, ...bin })));
      const places = [...new Set(all.map((bin) => bin.mean))].sort((a, b) => a - b);
      const read = (place) => all.filter((bin) => bin.mean === place).map((bin) =>
        `Where ${bin.name} was ${bare(bin.low, 1)} to ${bin.high.toFixed(1)}, ${bare(bin.mean)} in the mean, ${bin.accepted} of `
        + `${bin.tested} tested were accepted: ${bare(bin.share)} (95 % interval ${bare(bin.least)} to ${bare(bin.most)}).`).join(" ");
      const far = ({ name, error }) => `${name} is off by ${bare(error)}`;
      this.trust.draw({
        title: ["can the draft be believed?", "share accepted of the tested; dotted: as foretold"],
        x: { words: "foretold", min: 0, max: 1, at: places }, y: { min: 0, max: 1 },
        lines: [{ lane: "", index: 0, soft: true, points: [[0, 0], [1, 1]] },
          ...reliability.map(({ short, bins }, i) => ({ lane: short, index: i, marked: true,
            points: bins.map((bin) => [bin.mean, bin.share, bin.least, bin.most]) }))],
        note: `Weighted by tokens tested, ${reliability.map(far).join("; ")}.`,
        read,
      });
    }

    // ---- tables ---------------------------------------------------------------------------------------------------

    drawRanks({ ranks }) {
      const heads = ["depth", ...ranks[0].cells.map((_, i) => `rank ${i + 1}`)];
      this.ranks.replaceChildren(page.smallTable(["by depth and rank", "of those tested; rank 1 is tried first"], heads,
        ranks.map(({ depth, cells }) => row(String(depth), ...cells.map(page.shareCell)))));
    }

    drawClasses({ classes }) {
      this.classes.hidden = !classes.length;
      this.classes.replaceChildren(page.smallTable(["by kind of token", "of those tested, measured"],
        ["drafted token", "accepted"], classes.map((one) => row(one.name, page.shareCell(one)))));
    }

    drawFates({ fates }) {
      const total = fates.reduce((sum, one) => sum + one.count, 0);
      this.fates.replaceChildren(page.smallTable(["where the drafts went", "of all drafted tokens, measured"],
        ["what became of it", "tokens"],
        fates.map((one) => row(one.says, page.shareCell({ share: one.share, accepted: one.count, tested: total })))));
    }

    drawMetrics({ metrics }) {
      this.metrics.replaceChildren(page.smallTable(["vLLM's metrics", "of this lane, with their formulas"],
        ["name and formula", "value"], metrics.map(({ name, value, words, formula }) => row(h("span", {}, h("code", {}, name),
          h("span", { class: "formula" }, words + ": " + formula)), cell(h("b", {}, metric(value)))))));
    }
  }

  page.addPart((app) => {
    if (app.data.saved) return;
    const microscope = new Microscope(app);
    app.microscope = microscope;
    app.addSection("microscope", microscope.element, () => microscope.shown());
  });
})(window.ExplorerPage);
