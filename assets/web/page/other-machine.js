// "On another machine", below the comparison: what the lanes' forwards would take on a device and with models of a size that a
// person says. Draws what visualizers/analysis/roofline.py answers; asks only while it is open.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const OFTEN = 500; // milliseconds between two questions
  const ABOUT = "Derived, not measured: the forwards of these lanes, as if target and draft had the sizes below, on a device with "
    + "these figures. A forward takes as long as the slower of reading weights and cache and of two operations a parameter and "
    + "token. The figures of each class of machine are round ones to begin from; change any.";
  const GROUPS = [["device", "the device"], ["target", "the target"], ["draft", "the draft"]];
  const HEADS = [["lane", "What the lanes are called"], ["ms a token", "Seconds in all, over the tokens"],
    ["× plain", "Seconds of the same tokens with one forward of the target each, over this lane's"],
    ["mJ a token", "Energy in all, over the tokens"], ["× energy", "This lane's energy over that of plain decoding: below 1 saves"],
    ["waits for memory", "Share of the seconds in which memory was the slower part"]];

  const digits = (value) => (value >= 100 ? Math.round(value).toLocaleString("en-US") : Number(value.toPrecision(3)).toString());

  class OtherMachine {
    constructor(app) {
      this.app = app;
      this.chart = new page.Chart(app.data.palette);
      this.fields = {};
      this.device = h("select", { "aria-label": "Class of machine", onchange: () => this.take(this.device.value) });
      this.apart = h("input", { type: "checkbox", onchange: () => this.ask() });
      this.form = h("div", { class: "machine-form" });
      this.sentence = h("p", { class: "machine-said", role: "status" });
      this.table = h("div", { class: "by-class", tabindex: "0", role: "region", "aria-label": "On another machine" });
      this.drawn = h("div", { class: "compare-grid", hidden: true }, this.chart.element, this.table);
      this.element = h("details", { class: "compare comparison machine", ontoggle: () => this.opened() },
        h("summary", {}, "On another machine"), h("p", { class: "soft" }, ABOUT), this.form, this.sentence, this.drawn);
      app.below.append(this.element);
      for (const name of ["run", "data", "shown", "lanes"]) app.on(name, () => this.changed());
    }

    async opened() {
      if (!this.element.open) return;
      if (!this.known) this.fill(await page.patient("explorer_machines", {}));
      this.ask();
    }

    // One text field a figure; the first class of machine to begin with.
    fill(known) {
      if (this.known) return;
      this.known = known;
      this.device.append(...Object.keys(known.devices).map((name) => h("option", { value: name }, name)));
      const figures = { device: Object.values(known.devices)[0], target: known.target, draft: known.draft };
      for (const [key, title] of GROUPS) {
        this.fields[key] = {};
        const row = h("div", { class: "machine-row", role: "group", "aria-label": title }, h("b", {}, title));
        if (key === "device") row.append(this.device);
        for (const [name, value] of Object.entries(figures[key])) if (name in known.words) row.append(this.field(key, name, value));
        if (key === "draft") row.append(h("label", { class: "field check" }, this.apart, h("span", {}, "on a device of its own")));
        this.form.append(row);
      }
    }

    field(group, name, value) {
      const [words, unit] = this.known.words[name];
      const input = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value: String(value),
        "aria-label": `${group}: ${words}, in ${unit}`, onchange: () => this.ask() });
      this.fields[group][name] = input;
      return h("label", { class: "field" }, h("span", {}, words), input, h("span", { class: "soft" }, unit));
    }

    // The figures of a class of machine, written into the fields.
    take(name) {
      for (const [figure, input] of Object.entries(this.fields.device)) input.value = String(this.known.devices[name][figure]);
      this.ask();
    }

    // Something may be different: asks, at most twice a second.
    changed() {
      clearTimeout(this.timer);
      if (!this.element.open || !this.known) return;
      this.timer = setTimeout(() => this.ask(), Math.max(0, (this.asked || 0) + OFTEN - performance.now()));
    }

    request() {
      const read = (group) => Object.fromEntries(Object.entries(this.fields[group]).map(([name, input]) =>
        [name, input.value.trim() ? Number(input.value.replace(",", ".")) : null]));
      const lanes = this.app.lanes.map((lane, i) => ({ lane: lane.runIndex, number: i + 1, shown: lane.shown, rows: lane.rows.length }));
      return { run: this.app.run && this.app.run.id, lanes: lanes.filter((lane) => lane.lane !== null && lane.rows),
        device: { ...read("device"), apart: this.apart.checked }, target: read("target"), draft: read("draft") };
    }

    async ask() {
      if (!this.known || !this.app.run) return;
      const request = this.request();
      if (!request.lanes.length) return this.say("Press Run: there is no lane yet.");
      this.asked = performance.now();
      this.last = request;
      const answer = await page.call("explorer_other_machine", request);
      if (this.last !== request) return;
      if (answer.error) return this.say(answer.error, true);
      this.sentence.textContent = answer.sentence;
      this.sentence.classList.remove("wrong");
      this.drawn.hidden = false;
      this.draw(answer.lanes);
      this.tabulate(answer.lanes);
    }

    say(sentence, wrong) {
      this.sentence.textContent = sentence;
      this.sentence.classList.toggle("wrong", Boolean(wrong));
      this.drawn.hidden = true;
    }

    draw(lanes) {
      const long = Math.max(...lanes.map((lane) => lane.seconds)), [unit, scale] = long < 1 ? ["milliseconds", 1e3] : ["seconds", 1];
      const until = (race, value) => race.filter(([seconds]) => seconds * scale <= value + 1e-9).at(-1)[1];
      this.chart.draw({
        title: ["tokens there", `by ${unit}, derived; steeper is faster`],
        x: { words: unit, max: long * scale || 1 }, y: { min: 0, max: Math.max(1, ...lanes.map((lane) => lane.tokens)) },
        lines: lanes.map((lane) => ({ lane: lane.lane, index: lane.lane - 1, stairs: true,
          points: lane.race.map(([seconds, tokens]) => [seconds * scale, tokens]) })),
        read: (value) => `At ${digits(value)} ${unit}: ${lanes.map((lane) => `lane ${lane.lane} ${until(lane.race, value)}`).join(", ")} tokens.`,
      });
    }

    tabulate(lanes) {
      const cell = (text) => h("td", {}, text);
      const line = (lane) => h("tr", {}, h("th", { scope: "row" }, `${lane.lane} ${this.app.lanes[lane.lane - 1].declaration().title}`),
        ...(lane.tokens ? [digits((1e3 * lane.seconds) / lane.tokens), digits(lane.plain.seconds / lane.seconds),
          digits((1e3 * lane.joules) / lane.tokens), lane.plain.joules ? digits(lane.joules / lane.plain.joules) : "—",
          `${Math.round(100 * lane.waited)} %`] : ["—", "—", "—", "—", "—"]).map(cell));
      this.table.replaceChildren(page.smallTable(["what it would take there", "derived; plain: one target forward a token"],
        HEADS, lanes.map(line)));
    }
  }

  page.addPart((app) => {
    if (!app.data.saved) app.otherMachine = new OtherMachine(app);
  });
})(window.ExplorerPage);
