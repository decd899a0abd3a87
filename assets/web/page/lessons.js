// The guide beside the lanes that leads through a lesson (explorer/page/tabs/lessons.py lists them): it puts the lesson's setup in
// place, runs it, and stops where something happened in that very run. What it says of a run comes from the server, which reads the
// traces; a page that was saved during a lesson brings it along.
class Guide {
  constructor(app) {
    this.app = app;
    Object.assign(this, page.made(app.data.frames.guide)); // its parts, see explorer/export/frames.py
    this.solutions = h("div", { class: "handout solutions" });
    const on = (button, act) => button?.addEventListener("click", act);
    on(this.back, () => this.go(this.index - 1));
    on(this.next, () => (this.index < this.lesson.stops.length ? this.go(this.index + 1) : this.following()));
    on(this.fold, () => this.toggle());
    on(this.close, () => this.leave());
    on(this.restart, () => this.start(this.lesson.name));
    on(this.body, ({ target }) => this.press(target.closest("button")));
    const touched = (event) => app.lanes.findIndex((lane) => lane.element.contains(event.target));
    app.main.addEventListener("click", (event) => this.lesson && touched(event) >= 0 && this.current(touched(event)), true);
    app.on("run", () => this.message && this.listen());
    app.on("data", () => {
      this.spread();
      this.listen();
    });
    app.on("state", () => this.listen());
  }

  // ---- from beginning to end ------------------------------------------------------------------------------------

  // Decodes the lesson called `name`, as soon as the strategies of its lanes are known.
  async start(name) {
    this.list = this.list || (await page.patient("explorer_lessons", {})).lessons;
    const lesson = this.list.find((one) => one.name === name);
    while (lesson.setup.lanes.some((lane) => !this.app.strategies.has(lane.strategy))) await page.connection.nap(100);
    this.app.applySetup(JSON.parse(JSON.stringify(lesson.setup)));
    this.open(lesson, null);
    this.app.press("run");
  }

  // Shows the guide before its first stop; `message`: what is said of the run on screen, null where that comes later.
  open(lesson, message) {
    Object.assign(this, { lesson, message, asked: message && this.app.run.id, chosen: new Map(), index: -1 });
    this.home().insertBefore(this.root, this.app.main);
    this.home().append(this.solutions);
    this.root.hidden = false;
    this.home().classList.add("with-guide");
    this.unit("step");
    this.draw();
    window.scrollTo(0, 0);
    this.next.focus({ preventScroll: true });
  }

  leave() {
    this.lesson = null;
    this.root.hidden = true;
    this.solutions.remove();
    this.home().classList.remove("with-guide");
    this.outline({});
    this.app.bar.prompt.focus({ preventScroll: true });
  }

  following() {
    this.start(this.list[(this.list.indexOf(this.lesson) + 1) % this.list.length].name);
  }

  home() {
    return this.app.sections.get("decode").element;
  }

  toggle() {
    const folded = this.root.classList.toggle("folded");
    this.fold.setAttribute("aria-expanded", String(!folded));
    this.fold.textContent = folded ? "▴" : "▾";
  }

  // ---- the run --------------------------------------------------------------------------------------------------

  // Once the run on screen is over, asks what the lesson says of it. Another run, another telling.
  async listen() {
    const run = this.app.run;
    if (!this.lesson || !run) return;
    if (this.message && this.asked !== run.id) {
      this.message = null;
      this.draw();
    }
    if (!this.message && this.index < 0 && this.app.bar.alert.textContent) this.draw();
    if (run.stored || !run.over || this.asked === run.id || this.app.state() === "starting") return;
    this.asked = run.id;
    const lesson = this.lesson, message = await page.patient("explorer_lesson", { run: run.id, lesson: lesson.name });
    if (this.lesson !== lesson || this.asked !== run.id) return;
    this.message = message;
    if (this.index < 0 || message.error) this.draw();
    else this.go(this.index);
  }

  // ---- stops ----------------------------------------------------------------------------------------------------

  go(index) {
    this.index = Math.max(-1, Math.min(index, this.lesson.stops.length));
    this.draw();
    const stop = this.lesson.stops[this.index], filled = stop && this.message && !this.message.error ? this.message.stops[this.index] : null;
    if (!filled) return this.outline({});
    this.unit((stop.look.find((look) => look.unit) || { unit: "step" }).unit);
    for (const { lane, view } of stop.look) {
      const pane = this.app.lanes[lane - 1];
      if (pane && pane.view !== view) pane.showView(view);
    }
    this.current(Math.min(stop.look[0].lane, this.app.lanes.length) - 1);
    if (filled.step !== null) this.seek(filled);
    for (const { scene } of this.app.lanes) if (!scene.hand.follow) scene.follow();
    this.outline(filled.nodes);
    this.whole = stop.look.filter((look) => look.whole).map((look) => this.app.lanes[look.lane - 1]);
    this.spread();
    if (matchMedia("(max-width: 760px)").matches) this.app.lanes[this.app.phoneLane].element.scrollIntoView({ block: "start" });
  }

  // The lanes of which a stop shows the whole run, as soon as their pictures are there.
  spread() {
    const late = (this.whole || []).filter((lane) => lane && !lane.head);
    for (const lane of this.whole || []) if (lane && lane.head) player.spread(lane.scene);
    this.whole = late;
  }

  // The slider goes to where the step of the stop is done, in the unit in which it counts.
  seek(filled) {
    const playback = this.app.playback, lane = this.app.lanes[filled.lane - 1];
    const row = lane.rows[Math.min(filled.step, lane.rows.length - 1)];
    const value = { step: filled.step + 1, forwards: row && row.t, seconds: row && row.seconds }[playback.unit];
    const position = playback.ticks.findIndex((tick) => tick >= value) + 1;
    playback.seek(position || playback.ticks.length, true);
  }

  unit(unit) {
    if (this.app.playback.unit === unit) return;
    this.app.bar.selectUnit(unit);
    this.app.playback.setUnit(unit);
  }

  // The lane that is shown where there is room for one.
  current(index) {
    if (this.app.phoneLane === index) return;
    this.app.phoneLane = index;
    this.app.drawLaneButtons();
  }

  // Outlines the stop's tokens until the next stop.
  outline(nodes) {
    this.app.lanes.forEach((lane, index) => {
      const own = nodes[index + 1] || [], kept = own.length > 1 ? own : own[0] ?? null;
      if (!lane.scene) return;
      for (const drawing of [lane.chips, lane.text]) drawing.keep(kept);
      lane.scene.keep(lane.view === "sampler" ? null : kept); // every bar there is of one token: a band marks it already
    });
  }

  // ---- what it says ---------------------------------------------------------------------------------------------

  draw() {
    const stops = this.lesson.stops, count = stops.length, at = this.index;
    this.title.textContent = this.lesson.title;
    this.where.textContent = at < 0 ? "Before you start" : at < count ? "Stop " + (at + 1) + " of " + count : "The end";
    this.bar.setAttribute("aria-valuemax", String(count));
    this.bar.setAttribute("aria-valuenow", String(Math.max(0, Math.min(at + 1, count))));
    this.bar.firstChild.style.width = (100 * Math.max(0, Math.min(at + 1, count))) / count + "%";
    this.back.disabled = at < 0;
    this.next.disabled = (at < 0 && !this.ready()) || (at === count && !this.list);
    this.next.textContent = at < 0 ? "Start" : at < count - 1 ? "Next" : at < count ? "Finish" : "Next lesson";
    this.body.replaceChildren(...(at < 0 ? this.opening() : at < count ? this.stop(stops[at]) : this.closing()));
    this.body.scrollTop = 0;
    const { questions = "", answers = "" } = this.ready() ? this.message : {}; // for paper, see explorer/lessons/handout.py
    this.paper.innerHTML = questions;
    this.solutions.innerHTML = answers;
  }

  ready() {
    return Boolean(this.message) && !this.message.error;
  }

  waiting() {
    const problem = (this.message && this.message.error) || this.app.bar.alert.textContent;
    return h("p", { class: problem ? "problem" : "soft" }, problem || "Decoding … the lesson continues when all lanes are done.");
  }

  opening() {
    const ready = this.ready() ? h("p", { class: "soft" }, "All lanes are done. Start when you are ready.") : this.waiting();
    return [h("p", {}, this.lesson.about), ready];
  }

  closing() {
    if (this.app.data.saved) return [h("p", {}, "That was it. Drag the slider, and click on any token.")];
    const again = "That was it. The lanes are yours: change a parameter or the seed, press Run, and go back through the stops. "
      + "The lesson then describes your own run.";
    return [h("p", {}, again), h("p", { class: "soft" }, "Other models, prompts and seeds give other numbers.")];
  }

  // A press in a stop's card: a look at its token, or an answer.
  press(button) {
    const { inspect, answer } = button?.dataset || {};
    if (inspect) {
      const { lane } = this.message.stops[this.index];
      this.current(lane - 1);
      this.app.inspector.show(this.app.lanes[lane - 1], { node: Number(inspect) });
    } else if (answer) {
      this.chosen.set(this.index, Number(answer));
      this.draw();
      const next = this.body.querySelector(".choices [aria-pressed='true'], .inspect") || this.next;
      next.focus({ preventScroll: true });
      this.body.querySelector(".answer").scrollIntoView({ block: "nearest" });
    }
  }

  // A stop's card (explorer/lessons/stop_cards.py), with what was chosen in it.
  stop(stop) {
    if (!this.ready()) return [h("h3", {}, stop.title), this.waiting()];
    const card = h("div"), chosen = this.chosen.get(this.index);
    card.innerHTML = this.message.stops[this.index].card;
    if (chosen === undefined) return [...card.children];
    const answer = card.querySelector("template");
    answer.replaceWith(answer.content);
    card.querySelector(".think")?.remove();
    card.querySelectorAll(".option").forEach((option, index) => {
      const right = "right" in option.dataset, pressed = index === chosen;
      option.setAttribute("aria-pressed", String(pressed));
      if (right || pressed) option.classList.add(right ? "is-right" : "is-wrong");
      if (pressed) card.querySelector(".answer b").textContent = right ? "Right. " : "Not quite. ";
    });
    return [...card.children];
  }
}

page.addPart((app) => {
  if (!app.data.saved || app.data.lesson) app.guide = new Guide(app);
  if (app.data.lesson) app.on("run", () => app.guide.open(app.data.lesson.lesson, app.data.lesson.message));
});
