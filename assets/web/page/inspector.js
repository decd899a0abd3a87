// The inspector: why this token here. What was on offer at a place, what became of the token and the reason,
// as the trace recorded it; from there a person can put another token in this place, in a lane of its own.
// Tokens are only ever set as text.
// From this width on the inspector is a column beside the lanes; below it, a sheet over a page that still
// scrolls.
const WIDE = 1000;

page.Inspector = class {
  constructor(app) {
    this.app = app;
    Object.assign(this, page.made(app.data.frames.inspector));
    this.knobs = new page.Knobs(this);
    this.close.addEventListener("click", () => this.hide());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.root.hidden) this.hide();
    });
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.press(event.target.closest("button")?.dataset || {}));
    this.body.addEventListener("submit", (event) => {
      event.preventDefault();
      this.branch({ text: event.target.elements[0].value });
    });
    window.addEventListener("resize", () => this.place());
    window.addEventListener("scroll", () => this.place(), { passive: true });
    app.on("lanes", () => this.place());
  }

  hide() {
    if (this.root.hidden) return;
    const held = this.root.contains(document.activeElement);
    this.root.hidden = true;
    this.lane.keep(null, "inspector");
    this.knobs.clear();
    this.place();
    if (held && this.back && this.back.isConnected) this.back.focus({ preventScroll: true });
    this.back = null;
  }

  // A column beside the lanes where there is room, else a sheet; the page makes room for either, so that
  // nothing stays covered.
  place() {
    const column = window.innerWidth >= WIDE,
      { classList } = document.documentElement; // no rule need ask what the page has
    classList.toggle("inspector-column", !this.root.hidden && column);
    classList.toggle("inspector-sheet", !this.root.hidden && !column);
    if (this.root.hidden) return; // to measure at each scroll costs a layout
    const under = Math.max(0, this.app.bar.controls.getBoundingClientRect().bottom);
    this.root.style.setProperty("--under-bars", Math.round(under) + "px");
  }

  // `what`: {node} of the lane's trace, or {cell: [position, iteration]} of a parallel decoder.
  async show(lane, what) {
    const run = this.app.run;
    if (!run || lane.runIndex === null) return;
    const facts = await page.call("explorer_inspect", { run: run.id, lane: lane.runIndex, ...what });
    if (this.app.run !== run) return;
    if (facts.error) return this.app.fail(facts.error);
    this.lane?.keep(null, "inspector");
    Object.assign(this, { lane, facts });
    lane.keep(facts.node ?? null, "inspector"); // whatever else happens
    if (this.root.hidden) this.back = document.activeElement;
    this.root.hidden = false;
    this.draw();
    this.place();
    this.body.scrollTop = 0;
    this.title.focus({ preventScroll: true });
    player.lift();
  }

  key(event) {
    const node = this.facts.walk[event.key];
    if (node === undefined || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    this.show(this.lane, { node });
  }

  // A press on one of the card's buttons.
  press({ node, token, lens }) {
    if (node) this.show(this.lane, { node: Number(node) });
    else if (token) this.branch({ token: Number(token) });
    else if (lens) page.lens({ run: this.app.run.id, lane: this.lane.runIndex, node: Number(lens) });
  }

  // The card is HTML made and escaped by explorer/inspector/card.py.
  draw() {
    const { token, place, html } = this.facts;
    this.title.replaceChildren(
      "Lane " + (this.app.lanes.indexOf(this.lane) + 1) + place + ": ",
      h("span", { class: "token" }, token),
    );
    this.body.innerHTML = html;
    this.message = this.body.querySelector(".message");
    this.knobs.fill(this.body.querySelector(".what-if"));
  }

  // Any other token of this lane, one click away.
  jump(node, text) {
    return h("button", { type: "button", class: "token jump", "data-node": node }, text);
  }

  // ---- another token in this place ------------------------------------------------------------------------

  // A new lane in the run that forces a token or a text at this place. `instead`: the lane that makes room,
  // if four are there already. Lanes that were removed from the page leave their place in the run.
  async branch(what, instead) {
    const { app, lane } = this,
      { run, lanes: panes } = app,
      last = panes.at(-1),
      most = app.data.limits.lanes;
    if (this.busy) return;
    if (panes.length >= most && !instead) {
      this.say("There are " + panes.length + " lanes, and a run has no more: remove one with ×, or ", true);
      this.message.append(
        h(
          "button",
          { type: "button", onclick: () => this.branch(what, last) },
          "Replace lane " + panes.length,
        ),
      );
      return;
    }
    this.busy = true;
    this.say("Branching …");
    const { fixes, node } = this.facts,
      place = fixes == null ? { node } : { position: fixes };
    const used = new Set(panes.filter((pane) => pane !== instead).map((pane) => pane.runIndex));
    const free =
      run.count >= most ? Array.from({ length: run.count }, (_, i) => i).find((i) => !used.has(i)) : null;
    const { max_new_tokens } = JSON.parse(app.runKey),
      request = { run: run.id, lane: lane.runIndex, ...place, ...what, max_new_tokens };
    const answer = await page.call("explorer_branch", { ...request, replace: free ?? null });
    this.busy = false;
    if (answer.error) return this.say(answer.error, true);
    if (app.run === run) app.grow(answer, lane, instead);
    this.say(
      "Lane " +
        app.lanes.length +
        (fixes == null ? " continues from here." : " has this word from the start."),
    );
    // It would cover the new lane.
    if (!document.documentElement.classList.contains("inspector-column")) this.hide();
  }

  say(sentence, wrong) {
    this.message.textContent = sentence;
    this.message.classList.toggle("wrong", Boolean(wrong));
  }
};
