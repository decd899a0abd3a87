// The comparison below the lanes: asks the server for it, at most twice a second and only when it can be seen, marks the first
// difference in every lane, and says what the lanes have where the slider stands. Draws nothing itself: see comparison.js.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const OFTEN = 500; // milliseconds between two questions while it is on screen
  const REST = 700; // ... and of rest before one question while it is not
  const PHONE = 760;
  const KEPT = "explorer-compare"; // whether it is open, in this browser
  const UNITS = { step: "step", forwards: "target forwards", target_tokens: "target tokens", seconds: "seconds" };
  const WHOLE = "What follows is of the whole run, wherever the slider stands: a saved page holds no comparison for each step."; // in a saved page

  // How many tokens a lane's text has where it stands: final ones and those of the best candidate.
  function written(lane) {
    if (!lane.shown) return 0;
    return lane.chips.marksAt(lane.shown - 1).filter((mark) => mark.state !== "prompt" && mark.state !== "rejected").length;
  }

  // "At 12 target forwards: lane 1 has 12 tokens, lane 2 31 (ended)."
  function atSlider(app) {
    const { unit, position, ticks } = app.playback, value = ticks[position - 1];
    const lanes = app.lanes.map((lane, index) => ({ lane, number: index + 1 })).filter(({ lane }) => lane.rows.length);
    if (value === undefined || !lanes.length) return "";
    const reached = unit === "seconds" ? value.toFixed(2) : Number(value.toFixed(1));
    const where = unit === "step" ? `After step ${value}` : `At ${reached} ${UNITS[unit]}`;
    const parts = lanes.map(({ lane, number }, i) => {
      const last = lane.rows.length, atEnd = lane.shown === last && lane.answerState.ended;
      const over = atEnd && app.playback.valueOf(lane, last) < value;
      return `lane ${number} ${i ? "" : "has "}${written(lane)}${i ? "" : " tokens"}${over ? " (ended)" : ""}`;
    });
    return where + ": " + parts.join(", ") + ".";
  }

  class Compare {
    constructor(app) {
      this.app = app;
      this.comparison = new page.Comparison(app.data.palette);
      this.badges = new Map(); // lane -> its badge
      this.sentence = h("span", { class: "compare-sentence" });
      this.cost = h("span", { class: "equal-cost" });
      this.status = h("span", { class: "equal-cost" });
      this.button = h("button", { type: "button", class: "compare-open", "aria-controls": "explorer-comparison",
        onclick: () => this.open(this.body.hidden, true) }, h("span", { "aria-hidden": "true" }), "Compare");
      const whole = h("p", { class: "soft", hidden: !app.data.saved }, WHOLE);
      this.body = h("div", { id: "explorer-comparison" }, this.cost, whole, this.comparison.element);
      this.element = h("section", { class: "compare", role: "region", "aria-label": "Compare" },
        h("div", { class: "compare-bar" }, h("h2", {}, this.button), this.sentence), this.body);
      app.below.append(this.element);
      app.bar.status.parentNode.append(this.status);
      app.on("run", () => this.begin());
      for (const name of ["data", "shown", "lanes"]) app.on(name, () => this.changed());
      if (window.IntersectionObserver) new IntersectionObserver(([entry]) => {
        this.seen = entry.isIntersecting;
        this.changed();
      }).observe(this.element);
      let kept = null;
      try { kept = localStorage.getItem(KEPT); } catch { /* private windows may refuse */ }
      this.open(kept === null ? window.innerWidth > PHONE : kept === "open", false);
    }

    open(open, byHand) {
      this.body.hidden = !open;
      this.button.setAttribute("aria-expanded", String(open));
      if (byHand) try { localStorage.setItem(KEPT, open ? "open" : "closed"); } catch { /* then it lasts for this page */ }
      if (open) this.comparison.draw();
      this.changed();
    }

    begin() {
      this.comparison.reset();
      this.key = "";
      this.mark(null);
    }

    // Something may be different: the sentence at once, the comparison soon.
    changed() {
      this.cost.textContent = this.status.textContent = atSlider(this.app);
      clearTimeout(this.timer);
      const watched = this.seen && !this.body.hidden;
      const wait = watched ? Math.max(0, (this.asked || 0) + OFTEN - performance.now()) : REST;
      this.timer = setTimeout(() => this.ask(), wait);
    }

    request() {
      const saved = this.app.data.saved, lanes = this.app.lanes.map((lane, i) =>
        ({ lane: lane.runIndex, number: i + 1, shown: saved ? lane.rows.length : lane.shown, rows: lane.rows.length }));
      return { run: this.app.run && this.app.run.id, lanes: lanes.filter((lane) => lane.lane !== null && lane.rows) };
    }

    async ask() {
      const request = this.request(), key = JSON.stringify([request, this.app.run && this.app.run.state]);
      if (this.busy || !request.lanes.length || key === this.key) return;
      this.busy = true;
      this.asked = performance.now();
      const answer = await page.call("explorer_compare", request);
      this.busy = false;
      if (!this.app.run || this.app.run.id !== request.run) return this.changed();
      if (answer.error) return; // the run's own pull says so
      this.key = key;
      this.sentence.textContent = this.sentence.title = answer.sentence;
      this.comparison.show(answer);
      this.mark(answer);
      this.changed();
    }

    // Marks the first difference in the lanes' chips and pictures, and says in each lane's head how it stands to the reference.
    mark(answer) {
      const found = answer && answer.divergence;
      this.app.lanes.forEach((lane, index) => {
        const number = index + 1, own = found && found.groups.find((group) => group.lanes.includes(number));
        let parting = null;
        if (own) {
          const rest = found.groups.filter((group) => group !== own);
          const others = rest.map((group) => `lane ${group.lanes.join(", ")} ${group.token}`);
          const words = `Token ${found.position}, the first difference: ${others.join("; ")}`;
          parting = { node: own.nodes[own.lanes.indexOf(number)], words };
        }
        for (const drawing of [lane.chips, lane.text, lane.scene]) if (drawing) DecodingPlayer.part(drawing, parting);
        const stands = answer && answer.lanes.find((other) => other.lane === number);
        this.badge(lane, stands && stands.relation);
      });
    }

    badge(lane, relation) {
      if (!this.badges.has(lane)) {
        const made = h("span", { class: "badge relation" });
        lane.badge.before(made);
        this.badges.set(lane, made);
      }
      const badge = this.badges.get(lane);
      badge.hidden = !relation || !relation.badge;
      badge.textContent = relation ? relation.badge : "";
      badge.title = relation ? relation.said : "";
    }
  }

  page.addPart((app) => (app.compare = new Compare(app)));
})(window.ExplorerPage);
