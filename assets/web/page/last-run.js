// Offers the last run of this browser when the page is opened again, after it was closed, killed or restarted with its computer: by
// its id where the app still has it, else from the file that the browser kept. Nothing is taken up unasked, and a run that another
// tab shows is not offered at all. What is stored: an id, the page's own secret, and the trace of that one run.
const KEY = "explorer-last-run", BASE = "explorer-kept";
const HERE = 400; // ms in which another tab says that it shows the run

// ---- what the browser keeps; a private window may refuse, and keeps nothing -----------------------------------------

function remembered() {
  try {
    const { run, session } = JSON.parse(page.stored(KEY)) || {};
    return typeof run === "string" && typeof session === "string" ? { run, session } : null;
  } catch {
    return null;
  }
}

// What a request of IndexedDB brings.
const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = request.onblocked = reject;
});

// One question to the store of files: `act(store)` gives a request; answers its result, null if that fails.
async function stored(mode, act) {
  try {
    const opening = indexedDB.open(BASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("runs");
    const base = await result(opening), asked = act(base.transaction("runs", mode).objectStore("runs"));
    base.close(); // as soon as it has answered
    return await result(asked);
  } catch {
    return null;
  }
}

const begins = (prompt) => "“" + (prompt.length > 40 ? prompt.slice(0, 39).trim() + "…" : prompt.trim()).replace(/\s+/g, " ") + "”";

class LastRun {
  constructor(app) {
    this.app = app;
    try {
      this.tabs = new BroadcastChannel(KEY);
      this.tabs.onmessage = ({ data }) => this.hear(data);
    } catch { /* without it two tabs may show one run, which harms neither */ }
    app.on("run", (run) => this.began(run));
    app.on("kept", (kept) => this.copy(kept));
    this.offer();
  }

  own(run) {
    return run && run.id !== this.app.data.example.run;
  }

  began(run) {
    if (!this.own(run)) return;
    page.stored(KEY, JSON.stringify({ run: run.id, session: this.app.session }));
    page.notice(this.app, "before", null);
    this.tabs?.postMessage({ have: run.id });
  }

  // The file of the run, in the place of the one before.
  copy({ run, fileName: name, bytes: file }) {
    const { prompt } = JSON.parse(this.app.runKey);
    stored("readwrite", (runs) => runs.put({ run: run.id, name, prompt, file }, "last"));
  }

  // ---- other tabs -------------------------------------------------------------------------------------------------

  hear({ ask, have }) {
    const { run } = this.app;
    if (ask && this.own(run) && run.id === ask && !run.lost) this.tabs.postMessage({ have: ask });
    if (!have || have !== this.offered) return;
    this.offered = null;
    page.notice(this.app, "before", null);
  }

  // ---- the offer --------------------------------------------------------------------------------------------------

  async offer() {
    const last = remembered(), { app } = this;
    if (!last) return;
    this.offered = last.run;
    this.tabs?.postMessage({ ask: last.run });
    const [answer] = await Promise.all([page.patient("explorer_again", last), new Promise((resolve) => setTimeout(resolve, HERE))]);
    const kept = answer.error ? await stored("readonly", (runs) => runs.get("last")) : null;
    if (!this.offered || this.own(app.run)) return;
    if (answer.error && kept?.run !== last.run) return this.forget();
    const text = kept ? "The app no longer has your last run, " + begins(kept.prompt) + ", but this browser kept it."
      : "Your last run, " + begins(answer.setup.prompt) + ", is still here.";
    const offers = kept ? [["Open", "Show it again", () => app.traces.open(new File([kept.file], kept.name), "Opened again.")],
      ["Save", "Save it as a file (.json.gz) that Traces opens again", () => page.download(kept.name, kept.file)]]
      : [["Continue", "Show it, and continue it if it has not ended", () => this.goOn(answer, last.session)]];
    offers.push(["Forget", "Nothing of it stays in this browser", () => this.forget()]);
    page.notice(app, "before", { text, offers });
  }

  forget() {
    this.offered = null;
    page.stored(KEY, null);
    stored("readwrite", (runs) => runs.clear());
    page.notice(this.app, "before", null);
  }

  goOn(answer, session) {
    const { app } = this, run = new page.Run(app, answer.run, answer.state);
    app.session = session; // the run answers to no other
    app.traces.put(answer);
    app.show(run, answer.setup.lanes.length);
    app.status();
    run.follow();
  }
}

page.addLivePart((app) => new LastRun(app));
