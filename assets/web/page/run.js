// Talks to the server: starts and steers the run, and polls for what comes after its cursor. A slow browser
// only asks less often.
const OVER = new Set(["done", "stopped", "failed"]);
const KEEP_ALIVE = 60000; // a finished run is asked for once a minute, so that its other views stay at hand
let attached;
const server = new Promise((resolve) => (attached = resolve));

// Gradio has mounted: from here on the server can be asked.
page.connect = (functions) => attached(functions);

// One call; a sentence in `error` if it failed, `unheard` if nobody answered. Says whose it is: runs answer
// only to the page that started them.
page.call = async function (name, request) {
  const functions = await server,
    app = page.app,
    own = app.run && request.run === app.run.id ? app.run : null;
  if (!functions[name])
    return { error: "A saved page can only replay; open it in Decoding Explorer to do this." };
  if (own && own.lost) return { error: "The app no longer has this run.", unheard: true, lost: true };
  const text = await page.connection.through(functions[name]({ session: app.session, ...request }));
  if (text === undefined || text === null) return page.connection.missed();
  const answer = JSON.parse(text);
  // Another pull finds out more.
  if (own && own === app.run && answer.error === app.data.gone && name !== "explorer_pull") own.pull(0);
  return answer;
};

// A call that can wait: asked again when the app is back.
page.patient = async function (name, request) {
  for (let tries = 0; ;) {
    const answer = await page.call(name, request);
    if (answer.lost || !(answer.away || (answer.unheard && tries < 5))) return answer;
    tries += answer.away ? 0 : 1;
    await page.connection.nap(300 * tries);
    await page.connection.back();
  }
};

// Until what has just been taken is on the screen: asking earlier would only make the next step wait for this
// one.
function painted(app) {
  // No frames, and timers of pages that nobody sees are slowed down.
  if (document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () =>
      app.lanes.some((lane) => lane.drawing()?.waiting) ? requestAnimationFrame(look) : resolve();
    requestAnimationFrame(look);
    setTimeout(resolve, 400); // whatever happens to the frames
  });
}

page.Run = class {
  constructor(app, id, state) {
    this.app = app;
    this.id = id;
    this.state = state;
    // The models; of what was opened, those of the page, and its own are in `models`.
    this.choice = app.choice;
    this.models = null;
    this.wish = null; // what was pressed while the app could not be reached
    this.lost = null; // why the app answers for this run no more
  }

  get over() {
    return OVER.has(this.state);
  }

  // One pull; false if it failed.
  async pull(wait) {
    const panes = this.app.lanes,
      count = this.count;
    // Lanes that were removed.
    const cursors = Array.from({ length: count }, () => ({ view: "text", ops: 1e9, rows: 1e9 }));
    for (const pane of panes) if (pane.runIndex !== null) cursors[pane.runIndex] = pane.cursor();
    const answer = await page.call("explorer_pull", { run: this.id, cursors, wait, state: this.state });
    if (this.app.run !== this) return false;
    if (answer.error) {
      for (const pane of panes) pane.keepView();
      if (!answer.unheard) await this.lose(answer.error);
      return false;
    }
    this.state = answer.state;
    this.app.take(answer);
    player.drawAhead();
    return true;
  }

  // Pulls until the run is over, then now and then; where the app cannot be reached, as soon as it can.
  async follow() {
    for (let misses = 0; this.app.run === this && !this.lost;) {
      if (this.wish) await this.control(this.wish);
      const got = await this.pull(this.over ? 0 : 1);
      misses = got ? 0 : misses + 1;
      if (page.connection.state !== "there") await page.connection.back();
      else if (!got) await page.connection.nap(Math.min(250 * misses ** 2, 5000));
      else if (!this.over) await painted(this.app);
      else await page.connection.nap(KEEP_ALIVE);
    }
  }

  // The app answers for this run no more. What is drawn stays.
  async lose(why) {
    if (this.lost) return;
    this.lost = why;
    this.state = "stopped";
    await page.connection.look(); // whether it was started again
    if (this.app.run === this) this.app.emit("lost", this);
  }

  async control(action) {
    const answer = await page.call("explorer_control", { run: this.id, action });
    this.wish = answer.unheard && !this.lost && (action === "pause" || action === "stop") ? action : null;
    if (answer.error && !this.wish) this.app.fail(answer.error);
    else if (!answer.error && this.app.run === this) this.state = answer.state;
    this.app.emit("wish");
    this.app.status();
  }
};

// While a start waits for models that had made room for others: which they are, and how far.
async function sayLoading(app, models, started) {
  let open = true;
  const over = () => (open = false);
  started.then(over, over);
  for (app.loads = ""; open;) {
    await new Promise((resolve) => setTimeout(resolve, 200)); // models that are there need no sentence
    const progress = open && (await page.call("explorer_models_progress", { models, sentence: app.loads }));
    if (!open || progress.state !== "loading" || progress.sentence === app.loads) continue;
    app.loads = progress.sentence;
    app.status();
  }
  app.loads = "";
}

// Starts a run of the lanes' settings; null and a sentence in the page if that is not possible.
page.start = async function (app, state) {
  const request = app.request(),
    stop_when = app.stopWhen.conditions,
    started = page.call("explorer_start", { ...request, stop_when, state, session: app.session });
  sayLoading(app, request.models, started);
  const { error, run, refused = [] } = await started;
  app.refused = { key: JSON.stringify(request), lanes: refused };
  if (error) app.fail(error);
  return error ? null : new page.Run(app, run, state);
};

// A page that closes says so, and its run stands still at once. If it comes back, it pulls again and the run
// continues.
window.addEventListener("pagehide", () => {
  if (!page.app || !page.app.run || page.app.run.over) return;
  const message = JSON.stringify({ session: page.app.session });
  navigator.sendBeacon("explorer-leave", new Blob([message], { type: "application/json" }));
});
