// What the page says when the app cannot be reached or no longer has the run, and what it offers then: to
// save what is kept (keep.js) and to open that again.
const LATER = 15000; // ms without the app after which saving is offered
const DEAF = {
  refused: "The app was started again with another address: open the address that it printed.",
  renewed: "The app was started again as another version: reload this page.",
};
const AGAIN = "The app was started again and no longer has this run.",
  DROPPED = "The app has dropped this run to make room.";

class Rescue {
  constructor(app) {
    this.app = app;
    page.connection.on("state", () => this.reach());
    page.connection.on("restarted", () => this.restarted());
    app.on("wish", () => this.reach());
    app.on("run", (run) => {
      run.started = page.connection.started;
      page.notice(app, "run", null);
    });
    app.on("lost", (run) => this.lost(run));
  }

  get kept() {
    const kept = this.app.run?.kept;
    return kept?.steps.some(Boolean) ? kept : null;
  }

  // How much of the run can be saved: what came last before the app was gone may be missing.
  keeps() {
    const steps = Math.min(...this.kept.steps.filter(Boolean));
    return this.kept.missing()
      ? ["What you see stays; its first " + steps + " steps are kept on this page", "them"]
      : ["What you see is kept on this page", "it"];
  }

  // ---- the app cannot be reached --------------------------------------------------------------------------

  reach() {
    const { app } = this,
      { state } = page.connection;
    clearTimeout(this.timer);
    if (state === "there") {
      this.since = null;
      if (app.failedAway) app.fail("");
      return page.notice(app, "connection", null);
    }
    const since = (this.since = this.since || Date.now());
    this.timer = setTimeout(() => this.reach(), LATER);
    const wish = app.run && app.run.wish,
      pressed = wish ? " " + wish[0].toUpperCase() + wish.slice(1) + " takes effect when it is back." : "";
    const long = Date.now() - since >= LATER || state !== "away",
      keeps = long && this.kept ? " " + this.keeps()[0] + "." : "";
    const text = DEAF[state] ? DEAF[state] + keeps : "No connection; trying again …" + (pressed || keeps);
    page.notice(app, "connection", { text, offers: long && this.kept ? [this.saving()] : [] });
  }

  // Another start of the app answers: it says again what it can do, and whether it has the run.
  async restarted() {
    const { app } = this;
    if (app.run && app.run.id !== app.data.example.run) app.refresh();
    await app.greet();
    if (JSON.stringify(app.choice) === JSON.stringify(page.completeChoice(app.data.models))) return;
    app.models.facts = {}; // they are of the models that it started with, not of those that were chosen here
    app.emit("models");
  }

  // ---- the app no longer has the run ----------------------------------------------------------------------

  lost(run) {
    const { kept } = this,
      why =
        run.started !== page.connection.started
          ? AGAIN
          : run.lost === this.app.data.gone
            ? DROPPED
            : run.lost;
    if (!kept) return page.notice(this.app, "run", { text: why + " What you see stays on this page." });
    const [what, it] = this.keeps(),
      reopen = async () => this.app.traces.open(new File([await kept.file()], kept.name()), "Opened again.");
    const offers = [
      this.saving(),
      ["Reopen", "Hand it back to the app, so that views, comparison and branches work again", reopen],
    ];
    page.notice(this.app, "run", { text: `${why} ${what}: save ${it}, or open ${it} again.`, offers });
  }

  // ---- what is offered ------------------------------------------------------------------------------------

  saving() {
    return [
      "Save",
      "Save what this page has of the run as a file (.json.gz) that Traces opens again",
      () => this.save(),
    ];
  }

  async save(index) {
    const { kept } = this;
    page.download(kept.name(index), await kept.file(index));
  }
}

page.addLivePart((app) => (app.rescue = new Rescue(app)));
