// The marks of a picture as one SVG: one path for all marks of a look, cut off at the edges of their panel.
// One path per element would make a redraw of a thousand nodes a thousand times as expensive.
//
// A drawer is (marks, ctx, sheet) for one kind of mark: it draws them on the sheet, as strokes, areas, points
// and words. `marks`: plain objects at the shown step, inside the window plus a margin; ctx is the view, with
// step, head and palette (Scene.draw). x and y are in data units, widths and sizes in pixels. What has the
// least `rank` of its kind is drawn first. `free` points may stick out.
const RULE = 1.6; // pixels of the line below a panel that has one

const tenth = (value) => Math.round(value * 10) / 10;
const disc = (x, y, r) =>
  `M${tenth(x - r)} ${tenth(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
// A symbol of the palette: its polygons, which are for a radius of one, or a disc where it has none.
const polygon = (corners, x, y, r) =>
  "M" + corners.map(([u, v]) => tenth(x + u * r) + " " + tenth(y + v * r)).join("L") + "Z";
const shape = (polygons, ...place) =>
  polygons?.map((corners) => polygon(corners, ...place)).join("") ?? disc(...place);

function path(parent, d, look) {
  if (d) player.svg("path", parent, { d, ...look });
}

const drawn = (line) =>
  line?.width ? { stroke: line.color, "stroke-width": line.width, "stroke-dasharray": line.dash } : {};

// All marks of one look on one panel: the path that draws them, in pixels of the panel.
class Trace {
  constructor(view, panel, rank, { polygons, size, free, ...look }) {
    const place = { panel: panel.id },
      [low, high] = view.range;
    Object.assign(this, { panel, rank, look, polygons, free, d: "", end: [] });
    this.px = (x) => view.px(x) - view.left;
    this.py = (y) => view.py(y, place) - panel.topPx;
    // A point that slides in is drawn before it is there.
    this.seen = [free ? low : low - (view.slide || 0) / view.columnWidth, high];
    this.radius = size / 2;
  }

  at(points) {
    return points.map(([x, y]) => tenth(this.px(x)) + " " + tenth(this.py(y))).join("L");
  }

  // A polyline, which continues the last one where that ends at its beginning, or where it is said.
  polyline(points, on) {
    const [x, y] = this.end,
      meets = x === points[0][0] && y === points[0][1];
    this.d += (meets || (on && this.d) ? "L" : "M") + this.at(meets ? points.slice(1) : points);
    this.end = points.at(-1);
  }

  box(x0, x1, y0, y1) {
    const left = tenth(this.px(x0)),
      right = tenth(this.px(x1)),
      top = tenth(this.py(y0)),
      low = tenth(this.py(y1));
    this.d += `M${left} ${top}L${right} ${top}L${right} ${low}L${left} ${low}L${left} ${top}Z`;
  }

  point(x, y) {
    if (x >= this.seen[0] && x <= this.seen[1])
      this.d += shape(this.polygons, this.px(x), this.py(y), this.radius);
  }
}

player.Sheet = class {
  constructor(view, { symbols }) {
    Object.assign(this, { view, symbols, made: new Map(), words: [] });
  }

  // The trace of a look on the panel of a mark: `look` is made once for all marks with the same `key`.
  trace(mark, rank, key, look) {
    const panel = this.view.panelOf(mark),
      name = [panel.index, rank, ...key].join();
    return this.made.get(name) || this.made.set(name, new Trace(this.view, panel, rank, look())).get(name);
  }

  stroke(mark, line, rank = 0, opacity = 1) {
    return this.trace(mark, rank, [line.color, line.width, line.dash], () => ({
      fill: "none",
      opacity,
      ...drawn(line),
    }));
  }

  area(mark, fill, rank = 0, line = null) {
    return this.trace(mark, rank, ["area", fill, line?.color, line?.width, line?.dash], () => ({
      fill,
      ...drawn(line),
    }));
  }

  points(mark, { symbol, size, color, line, free }, rank = 0) {
    return this.trace(mark, rank, [symbol, size, color, line?.color, line?.width], () => {
      const place = { polygons: this.symbols[symbol], size, free },
        hollow = symbol === "circle-open" || symbol === "x-thin";
      return hollow
        ? { ...place, fill: "none", ...drawn({ width: line.width || 1, color }) }
        : { ...place, fill: color, ...drawn(line) };
    });
  }

  // Words, see texts.js.
  write(mark, words) {
    this.words.push({ panel: this.view.panelOf(mark), ...words });
  }

  traces() {
    return [...this.made.values()].sort((a, b) => a.rank - b.rank);
  }
};

// Draws all traces in their order, panel by panel, over the lines of the panels' scales.
player.drawMarks = function (svg, traces, view, surface) {
  const wide = Math.max(0, view.edge - view.left);
  svg.replaceChildren();
  svg.setAttribute("width", view.size.width);
  svg.setAttribute("height", view.size.height);
  for (const panel of Object.values(view.panels)) {
    const { topPx, heightPx } = panel,
      py = (y) => view.py(y, { panel: panel.id }) - topPx;
    const box = { x: view.left, y: topPx, width: wide, height: heightPx };
    const inside = player.svg("svg", svg, { ...box, overflow: "hidden" });
    const sliding = player.svg("g", null, { class: "dp-slides" });
    const ticks = (panel.ticks || []).map((tick) => py(Array.isArray(tick) ? tick[0] : tick));
    path(inside, ticks.map((y) => `M0 ${tenth(y)}H${wide}`).join(""), { stroke: surface.grid });
    inside.append(sliding);
    for (const trace of traces.filter((one) => one.panel === panel)) {
      const free = trace.free && player.svg("svg", svg, { ...box, overflow: "visible" });
      path(free ? player.svg("g", free, { class: "dp-slides" }) : sliding, trace.d, trace.look);
    }
    const low = topPx + heightPx;
    if (panel.rule)
      path(svg, `M${view.left} ${low}H${view.edge}`, { stroke: surface.text, "stroke-width": RULE });
  }
};
