// The code that runs: a drawer in a lane with the strategy's own functions. The line that recorded an event
// is lit, beside the numbers that the event holds and the step of the algorithm that it belongs to; the token
// is outlined in the picture. What is shown is made by explorer/inspector/code_drawer.py.
const NOWHERE = -1;
const BETWEEN = "No line of the strategy recorded anything in this step.";

page.Code = class {
  constructor(lane) {
    this.lane = lane;
    this.asked = false;
    this.forget();
    this.toggle = page.disclose(lane.codeButton, lane.codePanel, () => this.open());
    new MutationObserver(() => this.turned()).observe(lane.codePanel, { attributeFilter: ["hidden"] });
    lane.codeEarlier.addEventListener("click", () => this.walk(-1));
    lane.codeLater.addEventListener("click", () => this.walk(1));
    lane.codeStack.addEventListener("click", ({ target }) => this.lookAt(target));
  }

  // Of a new run nothing is known yet.
  forget() {
    Object.assign(this, { functions: [], places: [], steps: [], algorithm: [], problem: "" });
    Object.assign(this, { at: null, count: null, depth: null, wanted: null, enter: null, walked: false });
  }

  open() {
    this.draw();
    return this.lane.codeLines;
  }

  // The drawer was opened or closed: the picture has another height.
  turned() {
    const { codePanel, element } = this.lane;
    element.classList.toggle("with-code", !codePanel.hidden);
    if (codePanel.hidden) this.lane.keep(null, "code");
  }

  // Asks for the steps that are missing, one request at a time.
  async fetch() {
    const { app, runIndex } = this.lane,
      { steps, functions, places } = this;
    if (this.asked || runIndex === null || !app.run) return;
    this.asked = true;
    const had = { steps: steps.length, functions: functions.length, places: places.length },
      answer = await page.call("explorer_code", { run: app.run.id, lane: runIndex, ...had });
    this.asked = false;
    if (steps !== this.steps) return this.draw(); // meanwhile another run has begun
    this.problem = answer.problem || answer.error || "";
    if (!this.problem) {
      this.algorithm = answer.algorithm;
      steps.push(...answer.steps);
      functions.push(...answer.functions);
      places.push(...answer.places);
    }
    if (this.problem || steps.length > had.steps) this.draw();
  }

  // The events of the step on show; null if they are not known yet.
  events() {
    return this.lane.shown && !this.problem ? (this.steps[this.lane.shown - 1] ?? null) : [];
  }

  // Which of them is lit when a step comes on show: that about the token that was pointed at, or the last one
  // about a token.
  usual(events) {
    const { wanted, enter } = this,
      pointed = wanted === null ? -1 : events.findLastIndex((event) => event[4] === wanted),
      last = events.findLastIndex((event) => event[4] !== null);
    Object.assign(this, { wanted: null, enter: null, walked: enter !== null });
    if (enter) return enter === "first" ? 0 : events.length - 1;
    return pointed >= 0 ? pointed : last >= 0 ? last : events.length - 1;
  }

  // One event on, or back; at the end of a step to the next one.
  walk(by) {
    const events = this.events();
    if (this.lane.codePanel.hidden) return this.toggle(true);
    if (events === null) return;
    const at = this.at + by;
    if (at >= 0 && at < events.length) {
      this.at = at;
      this.depth = null;
      return this.draw();
    }
    const { app, shown } = this.lane,
      step = shown + by;
    if (step < 0 || step > this.lane.rows.length) return;
    this.enter = by > 0 ? "first" : "last";
    app.playback.seekStep(this.lane, step);
  }

  // From now on the event about this token is lit, if the step on show has one.
  point(node) {
    if (this.lane.codePanel.hidden || node === undefined) return;
    Object.assign(this, { wanted: node, count: null });
    this.draw();
  }

  // A moment is on show that is about this token; who walks event by event stays where they are.
  tell(node) {
    if (!this.walked) this.point(node);
  }

  // Opens the drawer at the event about a token.
  show(node) {
    this.toggle(true);
    this.point(node);
  }

  // Another function of the stack.
  lookAt(button) {
    if (!button.dataset.depth) return;
    this.depth = Number(button.dataset.depth);
    this.draw();
    this.lane.codeStack.querySelector("[aria-pressed=true]").focus();
  }

  draw() {
    const { lane } = this;
    if (lane.codePanel.hidden) return;
    const events = this.events();
    if (events === null) return this.fetch();
    if (lane.shown !== this.count) {
      this.at = this.usual(events);
      Object.assign(this, { count: lane.shown, depth: null });
    }
    const event = events[this.at];
    lane.codeEarlier.disabled = lane.shown === 0;
    lane.codeLater.disabled = lane.shown === lane.rows.length && this.at >= events.length - 1;
    lane.codeCount.textContent = event ? `${this.at + 1} of ${events.length}` : "";
    const [place = NOWHERE, step = NOWHERE, what = this.missing(), values = [], node = null, why] =
      event || [];
    lane.codeEvent.textContent = what;
    lane.codeWhy.textContent = lane.codeWhy.title = why || "";
    lane.codeValues.replaceChildren(
      ...values.map(([name, value]) => h("span", {}, h("i", {}, name), " " + value)),
    );
    this.drawAlgorithm(step);
    this.drawStack(this.places[place] || []);
    lane.keep(node, "code");
  }

  missing() {
    if (this.problem) return this.problem;
    return this.lane.shown
      ? BETWEEN
      : "Before the first step: press . to step through the code event by event.";
  }

  drawAlgorithm(step) {
    const { codeAlgorithm } = this.lane;
    codeAlgorithm.hidden = !this.algorithm.length;
    if (codeAlgorithm.childElementCount !== this.algorithm.length)
      codeAlgorithm.innerHTML = this.algorithm.map((one, at) => `<li value="${at + 1}">${one}</li>`).join("");
    [...codeAlgorithm.children].forEach((item, at) => {
      if (at === step) item.setAttribute("aria-current", "step");
      else item.removeAttribute("aria-current");
    });
    codeAlgorithm.children[step]?.scrollIntoView({ block: "nearest" });
  }

  // The functions that run, outermost first, and the lines of the one that is looked at.
  drawStack(stack) {
    const depth = Math.min(this.depth ?? stack.length - 1, stack.length - 1);
    this.lane.codeStack.replaceChildren(
      ...stack.map(([number, line], at) =>
        h(
          "button",
          {
            type: "button",
            "data-depth": String(at),
            "aria-pressed": String(at === depth),
            title: this.file([number, line]),
          },
          this.functions[number].name,
        ),
      ),
      ...(stack.length ? [h("span", { class: "code-file" }, this.file(stack[depth]))] : []),
    );
    this.lane.codeStack.scrollLeft = this.lane.codeStack.scrollWidth;
    this.drawLines(stack[depth]);
  }

  file([number, line]) {
    return `${this.functions[number].file}:${line}`;
  }

  drawLines(place) {
    const { codeLines } = this.lane;
    if (!place) return codeLines.replaceChildren();
    const [number, first, last] = place;
    if (codeLines.dataset.of !== String(number) || !codeLines.firstChild) {
      codeLines.innerHTML = `<ol>${this.functions[number].html}</ol>`;
      codeLines.dataset.of = String(number);
    }
    let lit = null;
    for (const item of codeLines.firstChild.children) {
      const on = item.value >= first && item.value <= last;
      item.classList.toggle("lit", on);
      if (on && !lit) lit = item;
    }
    if (lit) codeLines.scrollTop = lit.offsetTop - (codeLines.clientHeight - lit.offsetHeight) / 2;
  }
};
