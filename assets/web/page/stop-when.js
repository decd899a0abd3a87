// Breakpoints: the conditions at which a run stops, their panel, and the steps at which they hold in the run
// on show, which are moments (moments.js). The server reads and asks them (decoders/trace/breakpoints.py).
page.StopWhen = class {
  constructor(app) {
    this.app = app;
    this.conditions = [];
    const { bar } = app,
      { stopWhen: button, stopPanel: panel, stopForm: form } = bar;
    this.open = page.disclose(button, panel, () => form.kind);
    form.addEventListener("change", () => this.shape());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.add(form.kind.value + " " + (form.value.hidden ? "" : form.value.value));
    });
    bar.stops.addEventListener("click", ({ target }) => {
      if (target.value) this.set(this.conditions.filter((one) => one !== target.value));
    });
    app.on("run", () => (this.asked = null));
    app.on("state", () => this.ask());
    this.shape();
    this.draw();
  }

  // The field has room for a value where the condition has one.
  shape() {
    const { kind, value } = this.app.bar.stopForm,
      { example } = kind.selectedOptions[0].dataset;
    value.hidden = example === undefined;
    value.placeholder = example ?? "";
  }

  add(typed) {
    return this.set([...this.conditions, typed]);
  }

  // Other conditions, if the server can read them; it gives them back as they are written.
  async set(conditions) {
    const { app } = this,
      { stopFault: fault, stopForm: form } = app.bar;
    const answer = await this.call(conditions);
    page.write(fault, answer.error || "");
    if (answer.error) return;
    this.conditions = answer.stop_when;
    form.value.value = "";
    this.take(answer);
    this.draw();
  }

  call(conditions) {
    const { run } = this.app,
      known = run && !run.lost && run.id !== this.app.data.example.run;
    return page.call("explorer_stop_when", { run: known ? run.id : null, stop_when: conditions });
  }

  // Those of a setup that was opened.
  restore(conditions) {
    if (String(conditions) === String(this.conditions)) return;
    this.conditions = conditions;
    this.draw();
  }

  // Where they hold in the run on show: asked once it rests.
  async ask() {
    const { app } = this,
      { run } = app;
    const rests = run && (run.over || run.state === "paused") && !run.lost && this.conditions.length;
    const key = rests
      ? JSON.stringify([run.id, run.state, this.conditions, app.lanes.map((l) => l.rows.length)])
      : null;
    if (!rests || key === this.asked) return;
    this.asked = key;
    const answer = await this.call(this.conditions);
    if (app.run === run && !answer.error) this.take(answer);
  }

  take({ lanes }) {
    const { moments, lanes: panes } = this.app;
    moments.stops = new Map(panes.map((pane) => [pane, lanes[pane.runIndex] || []]));
    moments.show();
  }

  draw() {
    const { stops, stopWhen: button } = this.app.bar,
      { length } = this.conditions;
    page.write(button, "Stop when …" + (length ? ` (${length})` : ""));
    stops.replaceChildren(
      ...this.conditions.map((one) =>
        h("li", {}, one, h("button", { type: "button", value: one, "aria-label": "Remove: " + one }, "×")),
      ),
    );
  }
};

page.addLivePart((app) => (app.stopWhen = new page.StopWhen(app)));
