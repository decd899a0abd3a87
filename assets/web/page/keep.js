// Keeps the trace of the run on the page as far as it has come, in pieces of JSON text that are only joined: so the page can save
// the run when the app is gone. Asks in the background, seldom; explorer/page/keeping.py answers. Knows nothing of what a trace says.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const OFTEN = 1000, SELDOM = 3000; // ms between two questions while the run goes on; of a long one it is asked less often
  const LONG = 4e6; // letters
  const REST = 50; // ms between two pieces of what has gathered
  const MAX_SIZE = 30e6; // letters; what comes after them can only be seen
  const VERSION = 1, KIND = "decoding-explorer-run"; // see docs/trace.md
  const GROWS = [["vocabulary", "{", "}"], ["steps", "[", "]"], ["checkpoints", "[", "]"]];

  class Kept {
    constructor(app, run) {
      this.app = app;
      this.run = run;
      this.lanes = Array.from({ length: run.count }, () => ({ steps: 0, words: 0, head: "", grown: { vocabulary: [], steps: [], checkpoints: [] } }));
      this.size = 0;
      this.asked = 0; // when that was last done
      this.asOf = null; // the state of the run of which all is here
    }

    // Whether the page shows steps that are not here.
    missing() {
      const rows = (index) => Math.max(0, ...this.app.lanes.filter((lane) => lane.runIndex === index).map((lane) => lane.rows.length));
      return this.lanes.some((lane, index) => lane.steps < rows(index));
    }

    get full() {
      return this.size > MAX_SIZE;
    }

    // Whether there is anything to save.
    get some() {
      return this.lanes.every((lane) => lane.head) && this.lanes.some((lane) => lane.steps);
    }

    take(answer, state) {
      if (answer.setup) this.setup = answer.setup;
      answer.lanes.forEach((piece, index) => {
        const lane = this.lanes[index];
        Object.assign(lane, { head: piece.head, steps: piece.steps, words: piece.words });
        for (const [name, text] of Object.entries(piece.grown)) {
          if (text) lane.grown[name].push(text);
          this.size += text.length;
        }
      });
      this.asOf = answer.more ? null : state;
    }

    // All that is new, piece by piece; false if the app did not say.
    async ask() {
      this.asked = performance.now();
      for (let more = true; more && !this.full && this.app.run === this.run; ) {
        const since = this.lanes.map(({ steps, words }) => ({ steps, words })), { state } = this.run;
        const answer = await page.call("explorer_steps", { run: this.run.id, since });
        if (answer.error) return false;
        this.take(answer, state);
        more = answer.more;
        if (more) await new Promise((resolve) => setTimeout(resolve, REST));
      }
      return true;
    }

    trace(lane) {
      const grown = GROWS.map(([name, open, close]) => `,"${name}":${open}${lane.grown[name].join(",")}${close}`);
      return "{" + lane.head + grown.join("") + "}";
    }

    // The bytes of the file of the run, or of one lane of it; the form is that of Save run and Save trace.
    file(index = null) {
      const setup = { ...this.setup, lanes: this.setup.lanes.map((lane, i) => {
        const pane = this.app.lanes.find((other) => other.runIndex === i);
        return pane ? { ...lane, view: pane.view } : lane;
      }) };
      const whole = () => `{"version":${VERSION},"kind":"${KIND}","setup":${JSON.stringify(setup)},"traces":[${this.lanes.map((lane) => this.trace(lane)).join(",")}]}`;
      const text = index === null ? whole() : this.trace(this.lanes[index]);
      return page.through(new CompressionStream("gzip"), new TextEncoder().encode(text));
    }

    // once-upon-a-time.run.json.gz, as the app names it.
    name(index = null) {
      const words = this.setup.prompt.slice(0, 40).toLowerCase().match(/[\p{L}\p{N}]+/gu) || ["run"];
      return words.join("-") + (index === null ? ".run.json.gz" : ".lane-" + (index + 1) + ".trace.json.gz");
    }
  }

  page.addPart((app) => {
    if (app.data.saved) return;
    let timer = null, busy = false;

    async function ask() {
      const { kept } = app.run;
      busy = true;
      const got = await kept.ask();
      busy = false;
      if (app.run && app.run.kept !== kept) changed();
      else if (got) app.emit("kept", kept);
    }

    // Something came: it is asked for a while later, at once if nothing follows it.
    function changed() {
      const { run } = app;
      if (!run || run.id === app.data.example.run || run.lost) return;
      run.kept = run.kept || new Kept(app, run);
      if (busy || run.kept.full || !(run.kept.missing() || run.kept.asOf !== run.state)) return;
      const pause = run.state !== "running" ? 0 : run.kept.size > LONG ? SELDOM : OFTEN;
      clearTimeout(timer);
      timer = setTimeout(ask, Math.max(0, run.kept.asked + pause - performance.now()));
    }
    for (const event of ["run", "data", "kept"]) app.on(event, changed);
  });
})(window.ExplorerPage);
