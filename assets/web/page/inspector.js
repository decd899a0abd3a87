// The inspector: why this token here. What was on offer at a place, what became of the token and the reason, as the trace
// recorded it; and the way from there: another token in this place, in a lane of its own. Tokens are only ever set as text.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const WIDE = 1000; // from here on the inspector is a column beside the lanes, below a sheet that the page can scroll out from under
  const SCORES = 8, PARTS = 8; // the newest scores that are listed, and of each so many parts
  const WALK = { ArrowLeft: "parent", ArrowRight: "child", ArrowUp: "before", ArrowDown: "after" };

  const given = (facts) => facts.source === "prompt" && !facts.born; // drafts that are copied from the prompt are born
  const token = (text) => h("span", { class: "token" }, text);

  class Inspector {
    constructor(app) {
      this.app = app;
      this.title = h("h2", { tabindex: "-1" });
      this.body = h("div", { class: "inspector-body" });
      this.close = h("button", { type: "button", "aria-label": "Close inspector", title: "Close (Escape)",
        onclick: () => this.hide() }, "×");
      this.knobs = new page.Knobs(this);
      this.root = h("aside", { class: "inspector", "aria-label": "Inspector", hidden: true },
        h("header", {}, this.title, this.close), this.body);
      document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && !this.root.hidden) this.hide();
      });
      this.root.addEventListener("keydown", (event) => this.key(event));
      window.addEventListener("resize", () => this.place());
      window.addEventListener("scroll", () => this.place(), { passive: true });
      app.on("lanes", () => this.place());
      app.on("theme", () => this.paint());
    }

    hide() {
      if (this.root.hidden) return;
      const held = this.root.contains(document.activeElement);
      this.root.hidden = true;
      this.knobs.clear();
      this.place();
      if (held && this.back && this.back.isConnected) this.back.focus({ preventScroll: true });
      this.back = null;
    }

    // A column beside the lanes where there is room, else a sheet; the page makes room for either, so that nothing stays covered.
    place() {
      const column = window.innerWidth >= WIDE;
      this.app.root.classList.toggle("inspector-column", !this.root.hidden && column);
      this.app.root.classList.toggle("inspector-sheet", !this.root.hidden && !column);
      const under = Math.max(0, this.app.bar.controls.getBoundingClientRect().bottom);
      this.root.style.setProperty("--under-bars", Math.round(under) + "px");
    }

    paint() {
      if (window.DecodingPlayer) DecodingPlayer.paint(this.root, DecodingPlayer.resolve(this.app.data.palette, this.app.theme));
    }

    // `what`: {node} of the lane's trace, or {cell: [position, iteration]} of a parallel decoder.
    async show(lane, what) {
      const run = this.app.run;
      if (!run || lane.runIndex === null) return;
      const facts = await page.call("explorer_inspect", { run: run.id, lane: lane.runIndex, ...what });
      if (this.app.run !== run) return;
      if (facts.error) return this.app.fail(facts.error);
      this.lane = lane;
      this.facts = facts;
      if (this.root.hidden) this.back = document.activeElement;
      this.root.hidden = false;
      this.paint();
      this.draw();
      this.place();
      this.body.scrollTop = 0;
      this.title.focus({ preventScroll: true });
      DecodingPlayer.lift();
    }

    key(event) {
      const step = WALK[event.key];
      if (!step || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
      event.preventDefault();
      const row = this.facts.siblings, at = row.findIndex((sibling) => sibling.here);
      const near = { before: row[at - 1], after: row[at + 1] }[step];
      const node = step === "parent" || step === "child" ? this.facts[step] : near && near.node;
      if (node !== null && node !== undefined) this.show(this.lane, { node });
    }

    // ---- what is written --------------------------------------------------------------------------------------

    draw() {
      const facts = this.facts, number = this.app.lanes.indexOf(this.lane) + 1;
      const step = facts.born ? ", step " + facts.born : "";
      const where = given(facts) ? ", prompt" : ", position " + facts.position + step;
      this.title.replaceChildren("Lane " + number + where + ": ", token(facts.token));
      this.message = h("p", { class: "said", role: "status" });
      this.body.replaceChildren(...[
        this.path(), ...this.verdicts(), this.copied(), this.cell(), this.actions(), this.message, this.knobs.section(), ...this.pictures(),
        this.scores(), this.siblings(), this.raw(),
      ].filter(Boolean));
    }

    // Any other token of this lane, one click away.
    jump(node, text, className) {
      return h("button", { type: "button", class: "token jump " + (className || ""),
        onclick: () => this.show(this.lane, { node }) }, text);
    }

    path() {
      return h("p", { class: "path" }, ...this.facts.path.map((at) => this.jump(at.node, at.text)),
        h("span", { class: "token here" }, this.facts.token));
    }

    // What became of the token. Numbers and reasons that a test's picture shows are not said twice.
    verdicts() {
      const facts = this.facts, pictured = new Set(facts.attempts.filter((a) => a.node === facts.node).map((a) => a.reason));
      if (!facts.verdicts.length) {
        const weighed = facts.source === "target" && facts.stages.some((stage) => stage.view === "combined");
        return [h("p", { class: "verdict" }, weighed ? WEIGHED : ORIGIN[facts.source] || "From the " + facts.source + "; nothing was tested.")];
      }
      return facts.verdicts.map((v) => {
        const known = pictured.has(v.reason);
        const numbers = known ? "" : ["p", "q", "u"].filter((name) => typeof v[name] === "number")
          .map((name) => name + " " + page.probability(v[name])).join(", ");
        return h("p", { class: "verdict is-" + v.status.replace(" ", "-") }, h("b", {}, v.status), " in step " + v.step,
          numbers ? ": " + numbers + "." : ".", v.reason && !known ? " " + v.reason : "");
      });
    }

    // Of a draft that was copied from the text: from where, and why from there.
    copied() {
      const copied = this.facts.copied;
      if (!copied) return null;
      return h("p", { class: "copied" }, "Drafted as a copy of ", this.jump(copied.node, copied.text), " at " + copied.place + ". The copy begins behind ",
        token(copied.after.join("")), ", with which the text ended.");
    }

    cell() {
      const cell = this.facts.cell;
      if (!cell) return null;
      const sure = (c) => (c.confidence === null ? "" : ", p " + page.probability(c.confidence));
      return h("section", {}, h("h3", {}, "What stood here"),
        ...cell.history.map((c) => h("div", { class: c.iteration === cell.iteration ? "stood here" : "stood" },
          token(c.token), " iteration " + c.iteration + ": " + c.state + sure(c))),
        cell.waits.length ? h("p", { class: "rest" }, "waited for: position " + cell.waits.join(", ")) : null);
    }

    pictures() {
      const { stages, attempts, draw } = this.facts, tools = { branch: (row) => this.branchButton(row) };
      if (attempts.length) {
        const pictures = attempts.map((attempt, i) => page.attemptPicture(attempt, i + 1, attempts.length, tools));
        return [...pictures, ...stages.map(page.stageLine)];
      }
      const target = stages.filter((stage) => stage.view !== "draft"), draft = stages.find((stage) => stage.view === "draft");
      const shown = target.length > 1 ? [page.samplerPicture(target, draw, tools), ...target.map(page.stageLine)]
        : target.map((stage) => page.offerPicture(stage, tools));
      return draft ? [...shown, page.offerPicture(draft, tools)] : shown;
    }

    scores() {
      const scores = this.facts.scores;
      if (!scores.length) return null;
      const number = (value) => value.toFixed(3).replace("-", "−");
      return h("section", {}, h("h3", {}, "Scores"), ...scores.slice(-SCORES).map((score) => {
        const all = Object.entries(score.parts), more = all.length > PARTS ? " · and " + (all.length - PARTS) + " more" : "";
        const parts = all.slice(0, PARTS).map(([name, value]) => " · " + name + " " + number(value)).join("") + more;
        return h("div", {}, "step " + score.step + ": " + score.name + " " + number(score.total),
          score.rank ? ", rank " + score.rank : "", h("span", { class: "rest" }, parts));
      }));
    }

    siblings() {
      const others = this.facts.siblings.filter((sibling) => !sibling.here);
      if (!others.length) return null;
      const number = (name, value) => (typeof value === "number" ? ", " + name + " " + page.probability(value) : "");
      return h("section", { class: "siblings" }, h("h3", {}, "Also tried here"), ...others.map((other) =>
        h("div", {}, this.jump(other.node, other.text),
          (other.status || other.state) + number("p", other.p) + number("q", other.q))));
    }

    raw() {
      const { events, more_events: more } = this.facts;
      if (!events.length) return null;
      return h("details", {}, h("summary", {}, "Raw events (" + (events.length + more) + ")"),
        ...events.map((event) => h("pre", {}, "step " + event.step + "  " + event.json)),
        more ? h("p", { class: "rest" }, "and " + more + " more") : null);
    }

    // ---- another token in this place ----------------------------------------------------------------------------

    actions() {
      const { node, token: text, id } = this.facts;
      if (this.app.data.saved || given(this.facts) || node === null || node === undefined) return null;
      const edit = h("input", { type: "text", "aria-label": "Text to put here", placeholder: "other text for this place",
        autocomplete: "off", spellcheck: "false" });
      const form = h("form", { class: "edit", onsubmit: (event) => {
        event.preventDefault();
        this.branch({ text: edit.value });
      } }, edit, h("button", { type: "submit", title: "A new lane with the typed text in place of this token" }, "Edit"));
      return h("div", { class: "actions" },
        h("button", { type: "button", title: "A new lane: the same text before, this token forced, then the same strategy and seed",
          onclick: () => this.branch({ token: id }) }, "Branch here"),
        h("span", { class: "with" }, "with ", token(text)), form);
    }

    branchButton(row) {
      if (this.app.data.saved || given(this.facts) || this.facts.node === null) return null;
      return h("button", { type: "button", class: "branch", "aria-label": "Branch here with " + row.text,
        title: "Branch here: force " + row.text + " in a new lane", onclick: () => this.branch({ token: row.id }) }, "⚑");
    }

    // `instead`: the lane that makes room, if four are there already.
    async branch(what, instead) {
      const panes = this.app.lanes, last = panes[panes.length - 1];
      if (this.busy) return;
      if (panes.length >= this.app.data.limits.lanes && !instead) {
        this.say("There are " + panes.length + " lanes, and a run has no more: remove one with ×, or ", true);
        this.message.append(h("button", { type: "button", onclick: () => this.branch(what, last) }, "Replace lane " + panes.length));
        return;
      }
      this.busy = true;
      this.say("Branching …");
      const problem = await page.branch(this.app, this.lane, this.facts.node, what, instead);
      this.busy = false;
      if (problem) return this.say(problem, true);
      this.say("Lane " + this.app.lanes.length + " continues from here.");
      if (!this.app.root.classList.contains("inspector-column")) this.hide(); // it would cover the new lane
    }

    say(sentence, wrong) {
      this.message.textContent = sentence;
      this.message.classList.toggle("wrong", Boolean(wrong));
    }
  }

  const WEIGHED = "Chosen from two contrasted distributions; nothing was tested.";
  const ORIGIN = {
    prompt: "Given, not decoded.", copied: "Copied from the lane that this one branched off.", person: "Put here by a person.",
    target: "Chosen by the model; there was no draft to test.", guess: "A guess of the parallel decoder; not final.",
    small: "The draft model's own token, taken unchanged; nothing was tested.",
  };

  // A new lane in the run that forces a token or a text in the place of `node`; a sentence if that is not possible. `instead`
  // is the lane that goes. Lanes that were removed from the page leave their place in the run.
  page.branch = async function (app, lane, node, what, instead) {
    const run = app.run, most = app.data.limits.lanes;
    const used = new Set(app.lanes.filter((pane) => pane !== instead).map((pane) => pane.runIndex));
    const free = run.count >= most ? Array.from({ length: run.count }, (_, i) => i).find((i) => !used.has(i)) : undefined;
    const answer = await page.call("explorer_branch", {
      run: run.id, lane: lane.runIndex, node, ...what, replace: free ?? null,
      max_new_tokens: JSON.parse(app.runKey).max_new_tokens,
    });
    if (answer.error) return answer.error;
    if (app.run === run) app.grow(answer, lane, instead);
    return null;
  };

  page.buildInspector = (app) => new Inspector(app);
})(window.ExplorerPage);
