// Keeps the file of the run on the page, as the tab Traces makes it, so that the page can save the run when
// the app is gone. Asks for it in the background, less often when it takes longer.
const OFTEN = 1000,
  SHARE = 15; // ms between two questions at least; and this many times as long as the answer took
const MAX_SIZE = 20e6; // bytes of the file of a run that continues; a larger one is asked for when it rests

// The file of the run `run`; `steps`: how many of each lane it holds, `asOf`: the state of the run when it
// was asked for.
class Kept {
  constructor(app, run, asOf, { name, data, steps }) {
    Object.assign(this, { app, run, asOf, steps, fileName: name, bytes: page.fromBase64(data) });
  }

  // Whether the page shows steps that are not here.
  missing() {
    return this.app.lanes.some(
      (lane) => lane.runIndex !== null && lane.rows.length > (this.steps[lane.runIndex] ?? 0),
    );
  }

  // The bytes of the file of the run, or of one lane of it.
  async file(index = null) {
    if (index === null) return this.bytes;
    const whole = await page.through(new DecompressionStream("gzip"), this.bytes),
      { traces } = JSON.parse(new TextDecoder().decode(whole));
    return page.packed(traces[index]);
  }

  // once-upon-a-time.run.json.gz, as the app names it.
  name(index = null) {
    return index === null ? this.fileName : this.fileName.replace(".run.", `.lane-${index + 1}.trace.`);
  }
}

page.addLivePart((app) => {
  let timer = null,
    busy = false,
    asked = 0,
    took = 0;

  async function ask() {
    const { run } = app,
      { state } = run;
    busy = true;
    asked = performance.now();
    const answer = await page.call("explorer_save", { run: run.id, form: "run", views: page.viewsOf(app) });
    // The first answer may be slow for once: the app loads what makes files.
    took = run.kept ? performance.now() - asked : 0;
    busy = false;
    if (app.run !== run) return changed();
    if (answer.error) return;
    run.kept = new Kept(app, run, state, answer);
    app.emit("kept", run.kept);
  }

  // Something came: it is asked for a while later, at once if nothing follows it.
  function changed() {
    const { run } = app,
      going = run?.state === "running",
      { kept } = run || {};
    if (!run || run.id === app.data.example.run || run.lost || busy) return;
    if (kept && ((!kept.missing() && kept.asOf === run.state) || (going && kept.bytes.length > MAX_SIZE)))
      return;
    clearTimeout(timer);
    timer = setTimeout(
      ask,
      going ? Math.max(0, asked + took + Math.max(OFTEN, SHARE * took) - performance.now()) : 0,
    );
  }
  for (const event of ["run", "data", "kept"]) app.on(event, changed);
});
