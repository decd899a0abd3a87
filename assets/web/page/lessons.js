// The guide beside the lanes that leads through a lesson (explorer/page/tabs/lessons.py lists them): it puts
// the lesson's setup in place, runs it, and stops where something happened in that very run. What it says of
// a run comes from the server, which reads the traces; a page that was saved during a lesson brings it along.
// Which lessons were begun and which are done is kept in the browser, and marked on their path.
const READY = "All lanes are done. Start when you are ready.",
  WAIT = "Decoding … the lesson continues when all lanes are done.";

const KEPT = "explorer-lessons", // the name under which the browser keeps them
  BEGUN = "begun",
  DONE = "done";

// Lesson -> BEGUN or DONE, as the browser keeps them.
function visits() {
  try {
    return JSON.parse(page.stored(KEPT)) || {};
  } catch {
    return {};
  }
}

// Marks the lessons of the path in this element, and the one to go on with: the first that is not done.
page.markPath = function (path) {
  const known = visits();
  let next = true;
  for (const lesson of path.querySelectorAll("[data-lesson]")) {
    const state = known[lesson.dataset.lesson] || "",
      here = next && state !== DONE;
    lesson.dataset.state = state;
    lesson.querySelector(".lesson-state").textContent =
      { [DONE]: "· ✓ done", [BEGUN]: "· begun" }[state] || "";
    lesson.classList.toggle("next", here);
    lesson.querySelector("button, a")?.classList.toggle("primary", here);
    next &&= !here;
  }
  const done = path.querySelectorAll('[data-state="done"]').length,
    says = path.querySelector(".path-done");
  if (says) says.textContent = done ? ` · ${done} done` : "";
};

class Guide {
  constructor(app) {
    this.app = app;
    Object.assign(this, page.made(app.data.frames.guide)); // its parts, see explorer/export/frames.py
    this.whole = []; // lanes of which a stop shows the whole run, whose pictures are not there yet
    const on = (button, act) => button?.addEventListener("click", act);
    on(this.back, () => this.go(this.index - 1));
    on(this.next, () => (this.index < this.lesson.stops.length ? this.go(this.index + 1) : this.following()));
    on(this.fold, () =>
      this.fold.setAttribute("aria-expanded", String(!this.root.classList.toggle("folded"))),
    );
    on(this.close, () => this.leave());
    on(this.restart, () => this.start(this.lesson.name));
    on(this.body, ({ target }) => this.press(target.closest("button")));
    const touched = (event) => app.lanes.findIndex((lane) => lane.element.contains(event.target));
    app.main.addEventListener(
      "click",
      (event) => this.lesson && touched(event) >= 0 && app.front(touched(event)),
      true,
    );
    app.on("run", () => this.message && this.listen());
    app.on("data", () => {
      this.spread();
      this.listen();
    });
    app.on("state", () => this.listen());
  }

  // ---- from beginning to end ------------------------------------------------------------------------------

  // Decodes the lesson called `name`, as soon as the strategies of its lanes are known.
  async start(name) {
    this.list = this.list || (await page.patient("explorer_lessons", {})).lessons;
    const lesson = this.list.find((one) => one.name === name);
    while (lesson.setup.lanes.some((lane) => !this.app.strategies.has(lane.strategy)))
      await page.connection.nap(100);
    this.app.applySetup(JSON.parse(JSON.stringify(lesson.setup)));
    this.open(lesson, null);
    this.app.press("run");
    this.visited(BEGUN);
  }

  // Keeps that the lesson was begun or is done; what is done stays done.
  visited(state) {
    const known = visits(),
      { name } = this.lesson;
    page.stored(KEPT, JSON.stringify({ ...known, [name]: known[name] === DONE ? DONE : state }));
    for (const path of document.querySelectorAll(".lesson-path")) page.markPath(path);
  }

  // Shows the guide before its first stop; `message`: what is said of the run on screen, null where that
  // comes later.
  open(lesson, message) {
    Object.assign(this, { lesson, message, asked: message && this.app.run.id, cards: [], index: -1 });
    this.app.main.before(this.root);
    this.app.bar.decode.append(this.solutions);
    this.root.hidden = false;
    this.app.bar.decode.classList.add("with-guide");
    this.app.playback.setUnit("step");
    this.draw();
    window.scrollTo(0, 0);
    this.next.focus({ preventScroll: true });
  }

  leave() {
    this.lesson = null;
    this.root.hidden = true;
    this.solutions.remove();
    this.app.bar.decode.classList.remove("with-guide");
    this.outline({});
    this.app.bar.prompt.focus({ preventScroll: true });
  }

  following() {
    const { next } = this.app.data.lesson || {}; // the address of a page of the site
    if (next) return location.assign(next);
    const at = this.list.findIndex(({ name }) => name === this.lesson.name) + 1;
    if (at < this.list.length) return this.start(this.list[at].name);
    this.leave();
    this.app.showSection("lessons");
  }

  // ---- the run --------------------------------------------------------------------------------------------

  // Once the run on screen is over, asks what the lesson says of it. Another run, another telling.
  async listen() {
    const run = this.app.run;
    if (!this.lesson || !run) return;
    if (this.message && this.asked !== run.id) {
      Object.assign(this, { message: null, cards: [] });
      this.draw();
    }
    if (!this.message && this.index < 0 && this.app.bar.alert.textContent) this.draw();
    if (run.stored || !run.over || this.asked === run.id || this.app.state() === "starting") return;
    this.asked = run.id;
    const lesson = this.lesson,
      message = await page.patient("explorer_lesson", { run: run.id, lesson: lesson.name });
    if (this.lesson !== lesson || this.asked !== run.id) return;
    Object.assign(this, { message, cards: [] });
    if (this.index < 0 || message.error) this.draw();
    else this.go(this.index);
  }

  // ---- stops ----------------------------------------------------------------------------------------------

  go(index) {
    this.index = Math.max(-1, Math.min(index, this.lesson.stops.length));
    this.draw();
    if (this.index === this.lesson.stops.length) this.visited(DONE);
    const stop = this.lesson.stops[this.index],
      filled = stop && this.ready() && this.message.stops[this.index];
    if (!filled) return this.outline({});
    this.app.playback.setUnit((stop.look.find((look) => look.unit) || { unit: "step" }).unit);
    for (const { lane, view } of stop.look) {
      const pane = this.app.lanes[lane - 1];
      if (pane && pane.view !== view) pane.showView(view);
    }
    this.app.front(Math.min(stop.look[0].lane, this.app.lanes.length) - 1);
    if (filled.step !== null) this.app.playback.seekStep(this.app.lanes[filled.lane - 1], filled.step + 1);
    for (const { scene } of this.app.lanes) if (!scene.hand.follow) scene.follow();
    this.outline(filled.nodes);
    this.whole = stop.look
      .filter((look) => look.whole)
      .map((look) => this.app.lanes[look.lane - 1])
      .filter(Boolean);
    this.spread();
    if (matchMedia("(max-width: 760px)").matches)
      this.app.lanes[this.app.phoneLane].element.scrollIntoView({ block: "start" });
  }

  // The lanes of which a stop shows the whole run, as soon as their pictures are there.
  spread() {
    for (const lane of this.whole) if (lane.head) player.spread(lane.scene);
    this.whole = this.whole.filter((lane) => !lane.head);
  }

  // Outlines the stop's tokens until the next stop.
  outline(nodes) {
    this.app.lanes.forEach((lane, index) => {
      const own = nodes[index + 1] || [];
      lane.keep(own.length > 1 ? own : (own[0] ?? null));
    });
  }

  // ---- what it says ---------------------------------------------------------------------------------------

  draw() {
    const { stops, title, pages } = this.lesson,
      begun = this.index >= 0,
      over = this.index === stops.length,
      ready = this.ready();
    const problem = this.message?.error || this.app.bar.alert.textContent,
      { where, next, card } = pages[this.index + 1];
    this.title.textContent = title;
    this.where.textContent = where;
    Object.assign(this.bar, { max: stops.length, value: this.index + 1 });
    this.back.disabled = !begun;
    this.next.disabled = (!begun && !ready) || (over && !this.list && !this.app.data.lesson.next);
    this.next.textContent = next;
    this.waiting.textContent = ready ? READY : problem || WAIT;
    this.waiting.className = problem && !ready ? "problem" : "soft";
    this.waiting.hidden = over || (begun && ready);
    const filled = ready && this.message.stops[this.index]; // its card stays as it was left
    this.card.replaceChildren((this.cards[this.index] ??= page.made(filled ? filled.card : card).stop));
    this.body.scrollTop = 0;
    // For paper, see explorer/lessons/handout.py.
    const { questions = "", answers = "" } = ready ? this.message : {};
    this.paper.innerHTML = questions;
    this.solutions.innerHTML = answers;
  }

  ready() {
    return Boolean(this.message) && !this.message.error;
  }

  // A press in a stop's card: a look at its token, or an answer.
  press(button) {
    const { inspect, code, answer } = button?.dataset || {};
    if (inspect || code) {
      const { lane, step } = this.message.stops[this.index],
        pane = this.app.lanes[lane - 1];
      this.app.front(lane - 1);
      if (code) {
        this.app.playback.seekStep(pane, step + 1);
        pane.code.show(Number(code));
      } else this.app.inspector.show(pane, { node: Number(inspect) });
    } else if (answer) {
      const hidden = this.card.querySelector("template"),
        of = button.parentNode;
      hidden?.replaceWith(hidden.content);
      of.querySelectorAll("[data-answer]").forEach((one) =>
        one.setAttribute("aria-pressed", String(one === button)),
      );
      const explanation = this.card.querySelector(".answer"),
        verdict = explanation.querySelector("b");
      if (verdict) verdict.textContent = button.dataset.verdict;
      (verdict ? button : this.card.querySelector(".inspect button") || this.next).focus({
        preventScroll: true,
      });
      explanation.scrollIntoView({ block: "nearest" });
    }
  }
}

page.addPart((app) => {
  if (!app.data.saved || app.data.lesson) app.guide = new Guide(app);
  if (app.data.lesson) app.on("run", () => app.guide.open(app.data.lesson.lesson, app.data.lesson.message));
});
