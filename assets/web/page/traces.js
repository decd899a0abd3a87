// The Traces section: saves the run on the page, opens what was saved, and makes a link of the settings. Files are made and read
// by the server; nothing of the page is lost when one cannot be read.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const GRAPHS = ["tokens", "drafts", "beams", "search", "lattice", "walk", "attention", "dependencies"];
  const ENDINGS = [["graphml", "GraphML"], ["gexf", "GEXF"], ["dot", "DOT"], ["json", "JSON"]];
  const MOST = 16 * 2 ** 20; // bytes of a file that is opened

  class Traces {
    constructor(app) {
      this.app = app;
      this.said = h("p", { class: "said", role: "status" });
      this.run = h("p", { class: "about" });
      this.whole = [
        ["Save page", "One HTML file that replays the run from the disk: slider, hover, inspector; no server, no network.", "page"],
        ["Save run", "All lanes and their settings as data (.json.gz), to be opened here again or read by a program.", "run"],
        ["Save costs", "The cost table (.csv), one row for each lane.", "costs"],
      ].map(([text, says, form]) => [this.saver(text, says, form), says]);
      this.lanes = h("div", { class: "saved-lanes" });
      this.ending = h("select", { "aria-label": "Format of graphs" }, ...ENDINGS.map(([ending, name]) => h("option", { value: ending }, name)));
      const chosen = () => {
        if (this.file.files[0]) this.open(this.file.files[0]);
        this.file.value = "";
      };
      this.file = h("input", { type: "file", "aria-label": "Choose a file", accept: ".json,.gz,.html,.htm", onchange: chosen });
      this.link = h("input", { type: "text", readonly: "", "aria-label": "Link", hidden: true, onfocus: () => this.link.select() });
      this.element = h("section", { class: "section traces", "aria-label": "Traces" }, this.said,
        h("h2", {}, "Save"), this.run,
        ...this.whole.map(([button, says]) => h("div", { class: "row" }, button, h("span", { class: "says" }, says))), this.lanes,
        h("label", { class: "row" }, h("span", { class: "says" }, "Graphs are saved as"), this.ending),
        h("h2", {}, "Open"),
        h("label", { class: "drop" },
          h("span", {}, "A trace, a run, a saved page, or a server's JSON answer with log-probabilities: "
            + "drop it anywhere on this page, or choose it."), this.file),
        h("h2", {}, "Share"),
        h("p", { class: "about" }, "A link carries the prompt, the lanes with their parameters and seeds, and the names of the models. "
          + "It holds no trace and runs nothing by itself."),
        h("div", { class: "row" }, h("button", { type: "button", onclick: () => this.copy() }, "Copy link"), this.link));
      for (const event of ["run", "data", "lanes"]) app.on(event, () => app.section === "traces" && this.shown());
    }

    say(sentence, wrong) {
      this.said.textContent = sentence || "";
      this.said.classList.toggle("wrong", Boolean(wrong));
      if (wrong && this.app.section !== "traces") this.app.fail(sentence);
    }

    saver(text, title, form, lane) {
      return h("button", { type: "button", title, disabled: lane ? lane.runIndex === null || !lane.rows.length : false,
        onclick: (event) => this.save(event.currentTarget, form, lane) }, text);
    }

    // A lane's graphs, one to choose.
    graphs(lane) {
      const save = async (event) => {
        const select = event.currentTarget, kind = select.value;
        select.value = "";
        await this.save(select, "graph", lane, { kind, ending: this.ending.value });
      };
      return h("select", { "aria-label": "Graph", title: "The lane as a graph, for Gephi, Cytoscape, Graphviz or NetworkX", onchange: save },
        h("option", { value: "" }, "Graph …"), ...GRAPHS.map((kind) => h("option", { value: kind }, kind)));
    }

    async save(button, form, lane, how) {
      button.disabled = true;
      this.say("Making the file …");
      const wrong = await page.save(this.app, form, lane, how);
      button.disabled = false;
      this.say(wrong || "Saved. Your browser has put it where it puts downloads.", wrong);
    }

    // A picture shows what is on the screen: the lane comes there first.
    async picture(lane, kind) {
      this.app.phoneLane = this.app.lanes.indexOf(lane);
      this.app.drawLaneButtons();
      await this.app.showSection("decode");
      await page.drawn(lane);
      this.app.fail(await page.savePicture(lane, kind) || "");
    }

    // What can be saved of the run as it stands.
    shown() {
      const { run, lanes, data } = this.app, decoded = lanes.filter((lane) => lane.runIndex !== null && lane.rows.length);
      const going = run && !run.over ? " It is still going on: what is saved is what is there so far." : "";
      const which = run && run.id === data.example.run ? "The stored run: " : "The run on the page: ";
      this.run.textContent = !decoded.length ? "Nothing is decoded yet."
        : which + decoded.length + (decoded.length === 1 ? " lane." : " lanes.") + going;
      for (const [button] of this.whole) button.disabled = !decoded.length;
      this.lanes.replaceChildren(...decoded.map((lane) => {
        const number = lanes.indexOf(lane) + 1, title = lane.declaration().title;
        const picture = (kind, says) =>
          h("button", { type: "button", title: says, onclick: () => this.picture(lane, kind) }, kind.toUpperCase());
        return h("div", { class: "row", role: "group", "aria-label": "Lane " + number },
          h("span", { class: "disc", "aria-hidden": "true" }, String(number)), h("span", { class: "name" }, title),
          h("span", { class: "row" }, this.saver("Trace", "The lane's record as data (.json.gz)", "trace", lane),
            this.saver("Page", "One HTML file that replays this lane from the disk", "page", lane),
            this.graphs(lane),
            picture("png", "What is on the screen of this lane"), picture("svg", "The same as lines and letters, for print")));
      }));
    }

    // Puts a saved run in the place of the one on the page; if that fails, all stays as it is.
    async open(file) {
      const large = file.name + " is larger than " + (MOST >> 20) + " MiB; open a shorter run.";
      if (file.size > MOST) return this.say(large, true);
      this.say("Opening " + file.name + " …");
      const bytes = new Uint8Array(await file.arrayBuffer());
      const found = await page.call("explorer_open", { data: page.toBase64(bytes) });
      if (found.error) return this.say(file.name + " was not opened. " + found.error, true);
      this.show(found, "Opened " + file.name + ".");
      this.say("");
    }

    // Shows a run that the server has opened, in the place of the one on the page.
    show(found, says) {
      const app = this.app, before = app.run && !app.run.over ? app.run : null;
      if (before) page.call("explorer_control", { run: before.id, action: "stop" });
      this.put(found);
      app.adopt(found.run, found.answer);
      app.run.says = says + " Drag the slider to replay it" + (found.setup.models ? ", or press Run to decode it anew." : ".");
      app.status();
      app.run.follow();
    }

    // The settings of a run that the server knows come into the page's controls.
    put(found) {
      const { app } = this, { models, ...setup } = found.setup;
      for (const one of found.declarations) if (!app.strategies.has(one.name)) app.strategies.set(one.name, one);
      app.applySetup(models && this.other(models) ? found.setup : setup);
    }

    // Whether a file was made with other models than those of the page; one that used no draft does not mind one.
    other(models) {
      const here = this.app.choice || this.app.data.models;
      return models.target !== here.target || (models.draft !== undefined && models.draft !== here.draft);
    }

    async copy() {
      const link = await page.linkOf(this.app.setup());
      this.link.value = link;
      this.link.hidden = false;
      try {
        await navigator.clipboard.writeText(link);
        this.say("The link is copied.");
      } catch {
        this.link.focus();
        this.say("This browser lets no page write to the clipboard here; copy the link from the field.");
      }
    }

    // Files may be dropped anywhere.
    listen(root) {
      const carries = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
      const mark = (on) => root.classList.toggle("dropping", on);
      document.addEventListener("dragover", (event) => {
        if (!carries(event)) return;
        event.preventDefault();
        mark(true);
      });
      document.addEventListener("dragleave", (event) => event.relatedTarget || mark(false));
      document.addEventListener("drop", (event) => {
        if (!carries(event)) return;
        event.preventDefault();
        mark(false);
        if (event.dataTransfer.files.length > 1) this.say("One file at a time: a run of several lanes is one file.", true);
        else if (event.dataTransfer.files.length) this.open(event.dataTransfer.files[0]);
      });
    }
  }

  // Opens a decoding of a stored experiment in a lane (explorer/page/tabs/experiments.py).
  page.openCall = async function (name, number, title) {
    const { app } = page, opened = await page.call("explorer_call", { name, number });
    await app.showSection("decode");
    if (opened.error) return app.fail("Call " + number + " was not opened. " + opened.error);
    app.traces.show(opened, "Call " + number + " of “" + title + "”.");
    app.lanes[0].element.scrollIntoView({ block: "start" });
    app.lanes[0].picker.focus({ preventScroll: true });
  };

  page.addPart((app) => {
    if (app.data.saved) return;
    const traces = new Traces(app);
    app.addSection("traces", traces.element, () => {
      traces.say("");
      traces.shown();
    });
    traces.listen(app.root);
    app.traces = traces;
  });
})(window.ExplorerPage);
