// What only the page knows of the tab Traces (explorer/page/tabs/traces.py): what is on screen when something
// is saved, how a run that was opened comes into the lanes, the link of the settings, and files that are
// dropped.
const INPUT = '[data-testid="Dropped file-upload-button"]';
const KEPT = "data"; // the form that the page can make of what it has been told

const MOST = 11 * 2 ** 20, // bytes of several files: a third larger as text, they are one upload
  MOST_FILES = 2000;

class Traces {
  constructor(app) {
    this.app = app;
  }

  // The inputs of an event that saves: what is on screen, with the chosen lane, form and view in it, since
  // Gradio refuses a choice that has gone. None ever where the page saves by itself, as the app is away or
  // has the run no more. `number`: of the lane, 0 for the whole run.
  async wish(number, form, view, ...rest) {
    const { app } = this,
      pane = app.lanes[number - 1];
    if (!app.run) return new Promise(() => {}); // nothing is there to save
    if (page.connection.state !== "there" || !app.run.lost) await page.connection.look();
    if (app.run.lost || page.connection.state !== "there") {
      if (app.rescue.kept && form === KEPT) app.rescue.save(pane?.runIndex);
      else app.fail(app.run.lost || (await page.connection.missed()).error);
      return new Promise(() => {});
    }
    const chosen = { lane: number || null, form, view },
      lesson = app.guide.lesson?.name ?? null;
    const click = { ...page.onScreen(app), views: page.viewsOf(app), look: app.theme, lesson, chosen };
    return [JSON.stringify(click), null, null, null, ...rest];
  }

  // The input of an event that opens: whose run it will be, and where the uploaded file lies.
  visit(file) {
    return JSON.stringify({
      session: this.app.session,
      look: this.app.theme,
      file: { path: file.path, name: file.orig_name },
    });
  }

  // The figure on show as a picture file, all of it, by Plotly's own camera.
  picture(format) {
    const plot = document.querySelector("#traces-figure .js-plotly-plot"),
      { width, height, meta } = plot._fullLayout;
    Plotly.downloadImage(plot, {
      format,
      filename: meta.file,
      width,
      height,
      scale: format === "png" ? 2 : 1,
    });
  }

  // ---- opening --------------------------------------------------------------------------------------------

  // Hands a file to the button that nobody sees; `message` stands in the place of its name when it has been
  // opened.
  open(file, message) {
    const input = document.querySelector(INPUT),
      carried = new DataTransfer();
    if (!input) return this.app.fail("The page is still starting: try again in a moment.");
    this.waiting = { run: this.app.run, message };
    carried.items.add(file);
    input.files = carried.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // Several files, or folders with all that is in them, go up as one: explorer/export/opened_files.py takes
  // them apart.
  async openMany(entries, files) {
    const found = entries.length ? await page.filesIn(entries) : files.map((file) => [file.name, file]);
    const size = found.reduce((sum, [, file]) => sum + file.size, 0);
    if (!found.length) return this.app.fail("There is no file in this folder.");
    if (size > MOST || found.length > MOST_FILES)
      return this.app.fail(
        "These files are more than the page takes at once: use the command decoding-explorer open.",
      );
    const packed = await Promise.all(
      found.map(async ([name, file]) => ({ name, data: await page.base64(file) })),
    );
    const bundle = JSON.stringify({ kind: "decoding-explorer-files", files: packed });
    this.open(new File([bundle], found.length + " files.json", { type: "application/json" }));
  }

  // The app has read a file; what is on the page stays if it could not.
  opened(result) {
    const { app, waiting } = this,
      other = waiting && waiting.message && waiting.run !== app.run;
    this.waiting = null;
    if (result.listed) app.showSection("traces"); // a table or a card there, and no run
    if (result.record) {
      app.showSection("decode"); // a row of a table, as lanes
      window.scrollTo(0, 0);
    }
    if (app.section !== "traces") app.fail(result.error || "");
    if (!result.error && result.run && !other)
      this.show(result, (waiting && waiting.message) || result.says || "Opened " + result.file + ".");
  }

  // Shows a run that the server has opened, in the place of the one on the page.
  show(result, message) {
    const { app } = this;
    this.put(result);
    app.adopt(result.run, result.answer);
    const again = result.setup.models ? ", or press Run to decode it again." : ".";
    app.run.following = Boolean(result.following);
    app.run.stored = !result.following;
    if (result.following) app.run.state = "running";
    app.run.message = message + (result.following ? "" : " Drag the slider to replay it" + again);
    app.status();
    app.run.follow();
  }

  // The settings of a run that the server knows come into the page's controls.
  put(result) {
    const { app } = this,
      { models, ...setup } = result.setup;
    Object.assign(app.data.fields, result.fields);
    for (const one of result.strategies)
      if (one.family === "elsewhere" || !app.strategies.has(one.name)) app.strategies.set(one.name, one);
    const { target, draft } = { ...app.choice, ...models }; // a file that used no draft does not mind one
    app.applySetup(target === app.choice.target && draft === app.choice.draft ? setup : result.setup);
  }

  // The link of the settings, and what is said of it.
  async link() {
    const link = await page.linkOf(this.app.setup());
    const said = (await page.copied(link))
      ? "The link is copied."
      : "This browser does not let pages write to the clipboard here; copy the link from the field.";
    return [link, [said, ...page.linkWarnings(this.app)].join(" ")];
  }

  // Files may be dropped anywhere.
  listen(root) {
    const over = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      root.classList.toggle("dropping", event.type === "dragover");
      const { files, items } = event.dataTransfer; // none before they are dropped
      const entries = [...items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      if (files.length > 1 || entries.some((entry) => entry.isDirectory)) this.openMany(entries, [...files]);
      else if (files.length) this.open(files[0]);
    };
    for (const name of ["dragover", "drop"]) document.addEventListener(name, over);
    document.addEventListener(
      "dragleave",
      (event) => event.relatedTarget || root.classList.remove("dropping"),
    );
  }
}

// [path, file] of all files in dropped entries and their folders, without those that are hidden.
page.filesIn = async function (entries, before = "") {
  const found = [];
  for (const entry of entries.filter(({ name }) => !name.startsWith("."))) {
    const path = before + entry.name;
    if (entry.isFile) {
      found.push([path, await new Promise((done, failed) => entry.file(done, failed))]);
      continue;
    }
    const reader = entry.createReader();
    for (;;) {
      // it lists a hundred at a time
      const some = await new Promise((done, failed) => reader.readEntries(done, failed));
      if (!some.length || found.length > MOST_FILES) break;
      found.push(...(await page.filesIn(some, path + "/")));
    }
  }
  return found;
};

page.base64 = function (file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
};

// Opens a decoding of a stored experiment in a lane (explorer/page/tabs/experiments.py).
page.openCall = async function (name, number, title) {
  const { app } = page,
    opened = await page.call("explorer_call", { name, number });
  await app.showSection("decode");
  if (opened.error) return app.fail("Call " + number + " was not opened. " + opened.error);
  app.traces.show(opened, "Call " + number + " of “" + title + "”.");
  app.goTo(app.lanes[0], app.lanes[0].picker, "start");
};

page.addLivePart((app) => {
  app.traces = new Traces(app);
  app.traces.listen(app.root);
});
