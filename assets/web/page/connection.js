// Whether the app can be reached. Notices when it cannot, tries until it can, and tells a network that is cut
// from an app that was started again, is another version or turns this page away.
const ALIVE = "explorer-alive"; // see explorer/alive.py
const SOON = 500,
  LATEST = 5000; // ms between two tries: longer and longer
const LONG = 6000; // ms after which a call that brings nothing makes the page look whether the app is there
const PATIENCE = 10000; // ms that the app has to say so
const TICK = 2000,
  ASLEEP = 10000; // a clock that stood still for so long was that of a closed laptop
const MESSAGES = {
  there: "The answer was lost on its way; try again.",
  away: "There is no connection to the app; try again when it is back.",
  refused: "The app does not answer this page any more.",
  renewed: "The app is another version now: reload this page.",
};

class Connection extends page.Emitter {
  // tells "state" when it is another one and "restarted" when another start of the app answers
  constructor() {
    super();
    // "there", "away", "refused" (something answers, but not to this page) or "renewed" (another version).
    this.state = "there";
    // Which start of the app answered last; the version that this page understands.
    this.started = this.version = null;
    this.looked = 0; // when the app was last asked whether it is there
    this.calls = new Set(); // what is asked and not yet answered
  }

  // The first look at the clock, and all that may mean that the network or the page was away.
  watch({ started, version }) {
    Object.assign(this, { started, version });
    let last = Date.now();
    setInterval(() => {
      const now = Date.now(),
        slept = now - last > ASLEEP;
      last = now;
      if (slept) this.wake();
      else if (this.oldest() < now - LONG && this.looked < now - LONG) this.look();
    }, TICK);
    for (const event of ["online", "pageshow"]) window.addEventListener(event, () => this.wake());
    window.addEventListener("offline", () => this.look());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
  }

  // What a call brings; nothing as soon as it is clear that it cannot bring anything.
  through(asked) {
    const call = { since: Date.now() };
    const lost = new Promise((resolve) => (call.giveUp = resolve));
    this.calls.add(call);
    return Promise.race([asked, lost]).finally(() => this.calls.delete(call));
  }

  oldest() {
    return Math.min(Infinity, ...[...this.calls].map((call) => call.since));
  }

  // A call brought nothing: what its caller gets instead of an answer. `away`: it is worth asking again when
  // the app is back.
  async missed() {
    await this.look();
    return { error: MESSAGES[this.state], unheard: true, away: this.state !== "there" };
  }

  // Asks the app whether it is there; many who ask at once get one answer.
  look() {
    this.looking = this.looking || this.probe().finally(() => (this.looking = null));
    return this.looking;
  }

  async probe() {
    const begun = (this.looked = Date.now());
    let state = "away",
      said = {};
    try {
      const answer = await fetch(ALIVE, {
        cache: "no-store",
        redirect: "manual",
        signal: AbortSignal.timeout(PATIENCE),
      });
      if (answer.status < 500) state = "refused";
      if (answer.ok) said = (await answer.json()) || {};
    } catch {
      /* no network, no app, or an answer that was cut: away, or none of ours */
    }
    if (said.started) state = said.version === this.version ? "there" : "renewed";
    if (state !== "there") for (const call of this.calls) if (call.since <= begun) call.giveUp();
    const before = { state: this.state, started: this.started };
    Object.assign(this, { state, started: state === "there" ? said.started : before.started });
    if (before.state === "there" && state !== "there") this.returned = this.retry();
    if (state !== before.state) this.emit("state");
    if (before.started && this.started !== before.started) this.emit("restarted");
  }

  async retry() {
    for (let wait = SOON; this.state !== "there"; wait = Math.min(2 * wait, LATEST)) {
      await this.nap(wait);
      await this.look();
    }
  }

  // Resolves when the app is there (again).
  async back() {
    while (this.state !== "there") await this.returned;
  }

  // A pause that ends early when there is reason to think that things have changed.
  nap(wait) {
    return new Promise((end) => {
      this.addEventListener("wake", end, { once: true, signal: AbortSignal.timeout(wait) });
      setTimeout(end, wait);
    });
  }

  wake() {
    if (this.oldest() < Date.now() - TICK) this.look();
    this.emit("wake");
  }
}

page.connection = new Connection();

page.addLivePart((app) => page.connection.watch(app.data));
