// Talks to the server: starts and steers the run and pulls what is new, forever asking "what comes after my cursor?". A slow
// browser only asks less often. Knows nothing of how anything looks.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";

  const OVER = new Set(["done", "stopped", "failed"]);
  const KEEP_ALIVE = 60000; // a finished run is asked for once a minute, so that its other views stay at hand
  let attached;
  const server = new Promise((resolve) => (attached = resolve));

  // Gradio has mounted: from here on the server can be asked.
  page.connect = (functions) => attached(functions);

  // One call; a sentence in `error` if it failed. Says whose it is: runs answer only to the page that started them.
  page.call = async function (name, request) {
    const functions = await server;
    if (!functions[name]) return { error: "A saved run can only be replayed; Decoding Explorer itself can do this." };
    const text = await functions[name]({ session: page.app.session, ...request });
    if (text === undefined || text === null) return { error: "The app does not answer. Is it still running?", silent: true };
    return JSON.parse(text);
  };

  // Until what has just been taken is on the screen: asking earlier would only make the next step wait for this one.
  function painted(app) {
    if (document.hidden) return Promise.resolve(); // no frames, and timers of pages that nobody sees are slowed down
    return new Promise((resolve) => {
      const look = () => {
        const busy = app.lanes.some((lane) => lane.drawing() && lane.drawing().waiting);
        if (busy) requestAnimationFrame(look);
        else setTimeout(resolve, 0);
      };
      requestAnimationFrame(look);
      setTimeout(resolve, 400); // whatever happens to the frames
    });
  }

  class Run {
    constructor(app, id, state) {
      this.app = app;
      this.id = id;
      this.state = state;
      this.misses = 0;
    }

    get over() {
      return OVER.has(this.state);
    }

    // One pull; false if it failed.
    async pull(wait) {
      const panes = this.app.lanes, count = this.count;
      const cursors = Array.from({ length: count }, () => ({ view: "text", ops: 1e9, rows: 1e9 })); // lanes that were removed
      for (const pane of panes) if (pane.runIndex !== null) cursors[pane.runIndex] = pane.cursor();
      const answer = await page.call("explorer_pull", { run: this.id, cursors, wait, state: this.state });
      if (this.app.run !== this) return false;
      if (answer.error) {
        this.misses += 1;
        if (!answer.silent || this.misses > 5) this.app.fail(answer.error);
        if (!answer.silent) this.state = "stopped";
        return false;
      }
      this.misses = 0;
      this.state = answer.state;
      this.app.take(answer);
      return true;
    }

    // Pulls until the run is over, then now and then.
    async follow() {
      while (this.app.run === this) {
        const got = await this.pull(this.over ? 0 : 1);
        if (!got && (this.state === "stopped" || this.misses > 5)) return;
        if (!got) await new Promise((resolve) => setTimeout(resolve, 500));
        else if (!this.over) await painted(this.app);
        else await new Promise((resolve) => setTimeout(resolve, KEEP_ALIVE));
      }
    }

    async control(action) {
      const answer = await page.call("explorer_control", { run: this.id, action });
      if (answer.error) this.app.fail(answer.error);
      else if (this.app.run === this) this.state = answer.state;
      this.app.status();
    }
  }

  // While a start waits for models that had made room for others: which they are, and how far.
  async function sayLoading(app, models, started) {
    let open = true;
    const over = () => (open = false);
    started.then(over, over);
    for (app.loads = ""; open; ) {
      await new Promise((resolve) => setTimeout(resolve, 200)); // models that are there need no sentence
      const found = open && await page.call("explorer_models_progress", { models, sentence: app.loads });
      if (!open || found.state !== "loading" || found.sentence === app.loads) continue;
      app.loads = found.sentence;
      app.status();
    }
    app.loads = "";
  }

  // Starts a run of the lanes' settings; null and a sentence in the page if that is not possible.
  page.start = async function (app, state) {
    const request = app.request(), started = page.call("explorer_start", { ...request, state, session: app.session });
    sayLoading(app, request.models, started);
    const answer = await started;
    if (answer.error) {
      app.fail(answer.error);
      return null;
    }
    return new Run(app, answer.run, state);
  };

  // A page that closes says so, and its run stands still at once. If it comes back, it pulls again and the run goes on.
  window.addEventListener("pagehide", () => {
    if (!page.app || !page.app.run || page.app.run.over) return;
    const told = JSON.stringify({ session: page.app.session });
    navigator.sendBeacon("explorer-leave", new Blob([told], { type: "application/json" }));
  });

  page.Run = Run;
})(window.ExplorerPage);
