// Offers the last run of this browser when the page is opened again, after it was closed, killed or restarted
// with its computer: by its id where the app still has it, else from the file that the browser kept. Nothing
// is taken up unasked, and a run that another tab shows is not offered at all. What is stored: an id, the
// page's own secret, and the trace of that one run.
const BASE = "explorer-kept";
const HERE = 400; // ms in which another tab says that it shows the run

// ---- what the browser keeps; a private window may refuse, and keeps nothing -------------------------------

// What a request of IndexedDB brings.
const result = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = reject;
  });

// One question to the store: `act(store)` gives a request; answers its result, null if that fails.
async function stored(mode, act) {
  try {
    const opening = indexedDB.open(BASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("runs");
    const base = await result(opening),
      asked = act(base.transaction("runs", mode).objectStore("runs"));
    base.close(); // as soon as it has answered
    return await result(asked);
  } catch {
    return null;
  }
}

function begins(prompt) {
  const shown = prompt.length > 40 ? prompt.slice(0, 39).trim() + "…" : prompt.trim();
  return `“${shown.replace(/\s+/g, " ")}”`;
}

class LastRun {
  constructor(app) {
    this.app = app;
    try {
      this.tabs = new BroadcastChannel(BASE);
      this.tabs.onmessage = ({ data }) => this.hear(data);
    } catch {
      /* without it two tabs may show one run, which harms neither */
    }
    app.on("run", (run) => this.began(run));
    app.on("kept", ({ run, fileName, bytes }) => this.keep({ run: run.id, name: fileName, file: bytes }));
    this.offer();
  }

  own(run) {
    return run && run.id !== this.app.data.example.run;
  }

  began(run) {
    if (!this.own(run)) return;
    this.keep({ run: run.id });
    page.notice(this.app, "before", null);
    this.tabs?.postMessage({ have: run.id });
  }

  // What there is of the run, its file too as soon as it is here, in the place of what was kept before.
  keep(last) {
    const { prompt } = JSON.parse(this.app.runKey),
      { session } = this.app;
    stored("readwrite", (runs) => runs.put({ ...last, prompt, session }, "last"));
  }

  // ---- other tabs -----------------------------------------------------------------------------------------

  hear({ ask, have }) {
    const { run } = this.app;
    if (ask && this.own(run) && run.id === ask && !run.lost) this.tabs.postMessage({ have: ask });
    if (!have || have !== this.offered) return;
    this.offered = null;
    page.notice(this.app, "before", null);
  }

  // ---- the offer ------------------------------------------------------------------------------------------

  async offer() {
    const { run, session, name, prompt, file } = (await stored("readonly", (runs) => runs.get("last"))) || {},
      { app } = this;
    if (!run) return;
    this.offered = run;
    this.tabs?.postMessage({ ask: run });
    const [answer] = await Promise.all([
      page.patient("explorer_again", { run, session }),
      page.connection.nap(HERE),
    ]);
    if (!this.offered || this.own(app.run)) return;
    if (answer.error && !file) return this.forget();
    const text = answer.error
      ? "The app no longer has your last run, " + begins(prompt) + ", but this browser kept it."
      : "Your last run, " + begins(prompt) + ", is still here.";
    const offers = answer.error
      ? [
          ["Open", "Show it again", () => app.traces.open(new File([file], name), "Opened again.")],
          ["Save", "Save it as a file (.json.gz) that Traces opens again", () => page.download(name, file)],
        ]
      : [["Continue", "Show it, and continue it if it has not ended", () => this.goOn(answer, session)]];
    offers.push(["Forget", "Nothing of it stays in this browser", () => this.forget()]);
    page.notice(app, "before", { text, offers });
  }

  forget() {
    this.offered = null;
    stored("readwrite", (runs) => runs.clear());
    page.notice(this.app, "before", null);
  }

  goOn(answer, session) {
    const { app } = this,
      run = new page.Run(app, answer.run, answer.state);
    app.session = session; // the run answers to no other
    app.traces.put(answer);
    app.show(run, answer.setup.lanes.length);
    app.status();
    run.follow();
  }
}

page.addLivePart((app) => new LastRun(app));
