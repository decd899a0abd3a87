// The Experiments section: what the shipped models answered to repeatable questions, each a table and perhaps a chart.
// Knows no experiment by name.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;

  const said = (value, whole) => (value === null ? "—" : typeof value === "string" || whole ? String(value) : value.toFixed(3));

  function table(found) {
    const head = found.columns.map((name) => h("th", { scope: "col" }, name));
    const whole = found.columns.map((_, at) => found.rows.every((row) => Number.isInteger(row[at])));
    const cell = (value, at) => h(at ? "td" : "th", at ? { class: typeof value === "number" ? "number" : null } : { scope: "row" },
      said(value, whole[at]));
    const rows = found.rows.map((row) => h("tr", {}, ...row.map(cell)));
    return h("div", { class: "experiment-table", tabindex: "0", role: "region", "aria-label": "Table: " + found.title },
      h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows)));
  }

  // Opens the decoding behind a message in a lane.
  async function openCall(app, found, number) {
    const opened = await page.call("explorer_open", { data: found.calls[number - 1] });
    app.showSection("decode");
    if (opened.error) return app.fail("Call " + number + " was not opened. " + opened.error);
    app.traces.show(opened, "Call " + number + " of “" + found.title + "”.");
    const [lane] = app.lanes;
    lane.element.scrollIntoView({ block: "start" });
    lane.picker.focus({ preventScroll: true });
  }

  // Who told whom what in one run: a lane for each part, in the order in which they speak, and downwards an arrow a message.
  // Words of a message that asks for a stored call, or answers it, open that call.
  function exchange(app, found) {
    const lanes = [...new Set(found.messages.flatMap((m) => [m.sender, m.receiver]))];
    const placed = (element, rows, from, to) => {
      Object.assign(element.style, { gridRow: rows, gridColumn: from + " / " + to });
      return element;
    };
    const heads = lanes.map((name, at) => placed(h("div", { class: "exchange-lane", "aria-hidden": "true" }, name),
      "1 / span " + (found.messages.length + 1), 2 * at + 1, 2 * at + 3)); // its line is in the middle of two columns
    const arrows = found.messages.map((m, at) => {
      const ends = [m.sender, m.receiver].map((name) => 2 * lanes.indexOf(name) + 2), back = ends[1] < ends[0];
      const words = m.sender + " to " + m.receiver + " after " + m.seconds.toFixed(2) + " s: " + m.says;
      const said = !m.call ? h("span", {}, m.says) : h("button", { type: "button", class: "exchange-call",
        "aria-label": "Open call " + m.call + " in a lane: " + words, onclick: () => openCall(app, found, m.call) },
        h("b", {}, "▸ call " + m.call), " " + m.says);
      return placed(h("div", { class: "exchange-arrow" + (back ? " back" : ""), role: "listitem", title: words, "aria-label": words },
        said), String(at + 2), Math.min(...ends), Math.max(...ends));
    });
    const grid = h("div", { class: "exchange", role: "list" }, ...heads, ...arrows);
    grid.style.gridTemplateColumns = "repeat(" + 2 * lanes.length + ", minmax(60px, 1fr))";
    return h("div", { class: "exchange-frame", tabindex: "0", role: "region", "aria-label": "Messages: " + found.title },
      h("p", { class: "soft" }, "One run, message by message; what goes back to the left is dashed."
        + ((found.calls || []).length ? " Press ▸ to see how a call was decoded." : "")), grid);
  }

  // The curves of a chart as page.Chart takes them, read in words; values that lie together far from 0 get an axis of their own.
  function spec({ title, x, y, lines, log }) {
    const points = lines.flatMap((line) => line.points).filter((point) => point[1] !== null);
    const xs = [...new Set(points.map((point) => point[0]))].sort((a, b) => a - b), ys = points.flatMap((point) => point.slice(1));
    const low = Math.min(...ys), high = Math.max(...ys), whole = xs.every(Number.isInteger) && xs.length > xs[xs.length - 1] - xs[0];
    const read = (at) => x + " " + said(at, Number.isInteger(at)) + ": " + lines.flatMap((line) => {
      const near = line.points.find((point) => point[0] === at);
      if (!near || near[1] === null) return [];
      return [line.label + " " + said(near[1]) + (near.length > 2 ? " (" + said(near[2]) + " to " + said(near[3]) + ")" : "")];
    }).join(", ") + ".";
    return { title: [title, "(" + y + ")"], x: { words: x, min: xs[0], max: xs[xs.length - 1], whole, log, at: xs },
      y: { min: low < 0 || low > 0.4 * high ? low - 0.08 * (high - low) : 0, max: high + 0.05 * Math.abs(high) }, read,
      lines: lines.map((line, index) => ({ lane: index + 1, index, points: line.points, marked: line.points.length < 13 })) };
  }

  class Experiments {
    constructor(app) {
      this.app = app;
      this.list = h("div", { class: "experiments" }, h("p", { class: "soft" }, "Reading what is stored …"));
      this.element = h("section", { class: "section", "aria-label": "Experiments" }, this.list);
    }

    async shown() {
      if (!this.asked) {
        this.asked = true;
        const answer = await page.patient("explorer_experiments", {});
        if (answer.error) {
          this.asked = false;
          this.list.replaceChildren(h("p", { class: "soft" }, answer.error));
          return;
        }
        this.list.replaceChildren(...answer.experiments.map((found) => this.card(found)));
      }
    }

    card(found) {
      const parts = [table(found)]; // chart beside table where there is room
      let draw = () => {};
      if (found.chart) {
        const chart = new page.Chart(this.app.data.palette), drawn = spec(found.chart);
        draw = () => chart.draw(drawn);
        const key = found.chart.lines.map((line, index) =>
          h("li", {}, page.laneKey(this.app.data.palette, index), " " + (index + 1) + " " + line.label));
        parts.unshift(h("div", { class: "experiment-chart" }, chart.element, h("ul", { class: "experiment-key" }, ...key)));
      }
      const models = Object.entries(found.models).map(([role, name]) => role + " " + name).join(", ");
      const card = h("details", { class: "experiment", "aria-label": found.title },
        h("summary", {}, h("h3", {}, found.title), h("span", { class: "experiment-first" }, found.says[0])),
        h("p", {}, found.asks), h("div", { class: "experiment-body" }, ...parts),
        (found.pictures || []).length ? h("div", { class: "figures" }, ...found.pictures.map((one) => page.figure(one, found))) : null,
        (found.messages || []).length ? exchange(this.app, found) : null,
        h("ul", { class: "experiment-says" }, ...found.says.map((sentence) => h("li", {}, sentence))),
        h("p", { class: "soft" }, "Asked of " + models + ". Again: ",
          h("code", {}, "python -m explorer experiment " + found.name + (found.corpus ? " --corpus FOLDER" : ""))));
      card.addEventListener("toggle", () => card.open && draw());
      return card;
    }
  }

  page.addPart((app) => {
    if (app.data.saved) return; // what is stored lies with the app
    const experiments = new Experiments(app);
    app.addSection("experiments", "Experiments", experiments.element, () => experiments.shown());
  });
})(window.ExplorerPage);
