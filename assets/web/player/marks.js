// The marks of a picture as one SVG: one path for all marks of a look, cut off at the edges of their panel. One path per element
// would make a redraw of a thousand nodes a thousand times as expensive. Knows where panels lie; no kinds of marks.
//
// A drawer is (marks, ctx, sheet) for one kind of mark: it draws them on the sheet, as strokes, areas, points and words. `marks`:
// plain objects at the shown step, inside the window plus a margin; ctx is the view, with step, head and palette (Scene.draw). x and y
// are in data units, widths and sizes in pixels. What has the least `rank` of its kind is drawn first. `free` points may stick out.
const DASHES = { dot: [1, 1], dash: [3, 3], longdash: [5, 5] }; // in line widths, of three pixels at least
const RULE = 1.6; // pixels of the line below a panel that has one

const tenth = (value) => Math.round(value * 10) / 10;
const polygon = (points) => (x, y, r) => "M" + points.map(([u, v]) => tenth(x + u * r) + " " + tenth(y + v * r)).join("L") + "Z";
const wheel = (n, radius) => Array.from({ length: n }, (_, i) => {
  const angle = (2 * Math.PI * i) / n - Math.PI / 2, r = typeof radius === "function" ? radius(i) : radius;
  return [r * Math.cos(angle), r * Math.sin(angle)];
});
const disc = (x, y, r) => `M${tenth(x - r)} ${tenth(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
const SYMBOLS = {
  circle: disc,
  "circle-open": disc,
  square: polygon([[-1, -1], [1, -1], [1, 1], [-1, 1]]),
  diamond: polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]),
  "triangle-up": polygon([[-1.15, 0.5], [1.15, 0.5], [0, -1]]),
  "triangle-down": polygon([[-1.15, -0.5], [1.15, -0.5], [0, 1]]),
  pentagon: polygon(wheel(5, 1)),
  star: polygon(wheel(10, (i) => (i % 2 ? 0.54 : 1.4))),
  "x-thin": (x, y, r) => `M${tenth(x - r)} ${tenth(y - r)}l${2 * r} ${2 * r}M${tenth(x - r)} ${tenth(y + r)}l${2 * r} ${-2 * r}`,
};

// A style's dash as SVG has it; "4px,3px" stays unchanged.
function dashes({ dash, width }) {
  if (!dash || dash === "solid") return null;
  const known = DASHES[dash];
  return known ? known.map((n) => n * Math.max(3, width)).join(" ") : dash.replace(/px/g, "");
}

function path(parent, d, look) {
  if (!d) return;
  const made = player.svg("path", parent, { d });
  for (const name in look) if (look[name] !== null && look[name] !== undefined) made.setAttribute(name, look[name]);
}

const stroke = (line) => (line?.width ? { stroke: line.color, "stroke-width": line.width, "stroke-dasharray": dashes(line) } : {});

// All marks of one look on one panel: lines (with `fill` polygons), or points. Between two of them x and y are null.
class Trace {
  constructor(mode, yaxis, look) {
    Object.assign(this, { mode, yaxis, x: [], y: [], ...look });
  }

  // A polyline, which continues the last one where that ends at its beginning, or where it is said.
  polyline(xs, ys, on) {
    const last = this.x.length - 1, meets = last >= 0 && this.x[last] === xs[0] && this.y[last] === ys[0];
    if (last >= 0 && !meets && !on) this.point(null, null);
    for (let i = Number(meets); i < xs.length; i++) this.point(xs[i], ys[i]);
  }

  box(x0, x1, y0, y1) {
    this.polyline([x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0]);
  }

  point(x, y) {
    this.x.push(x);
    this.y.push(y);
  }
}

player.Sheet = class {
  constructor(view) {
    Object.assign(this, { view, made: new Map(), words: [] });
  }

  // The trace of a look on the panel of a mark.
  trace(mode, mark, rank, key, look) {
    const { yaxis } = this.view.panelOf(mark), name = [mode, yaxis, rank, ...key].join();
    return this.made.get(name) || this.made.set(name, new Trace(mode, yaxis, { rank, ...look })).get(name);
  }

  stroke(mark, line, rank = 0, opacity = 1) {
    return this.trace("lines", mark, rank, [line.color, line.width, line.dash], { line, opacity });
  }

  area(mark, fillcolor, rank = 0, line = null) {
    return this.trace("lines", mark, rank, ["area", fillcolor, line?.color, line?.width, line?.dash], { fill: "toself", fillcolor, line });
  }

  points(mark, marker, rank = 0) {
    const { symbol, size, color, line } = marker;
    return this.trace("markers", mark, rank, [symbol, size, color, line?.color, line?.width], { marker });
  }

  // Words, see texts.js.
  write(mark, words) {
    this.words.push({ yaxis: this.view.panelOf(mark).yaxis, ...words });
  }

  traces() {
    return [...this.made.values()].sort((a, b) => a.rank - b.rank);
  }
};

function lines(parent, trace, px, py) {
  const end = trace.fill ? "Z" : "";
  let d = "", open = false;
  for (let i = 0; i < trace.x.length; i++) {
    const x = trace.x[i];
    if (x !== null) d += (open ? "L" : "M") + tenth(px(x)) + " " + tenth(py(trace.y[i]));
    else d += end;
    open = x !== null;
  }
  path(parent, d + end, { fill: trace.fill ? trace.fillcolor : "none", opacity: trace.opacity, ...stroke(trace.line) });
}

function points(parent, { x, y, marker }, px, py, [low, high]) {
  const { symbol, size, color, line } = marker, hollow = symbol === "circle-open" || symbol === "x-thin";
  const look = hollow ? { fill: "none", ...stroke({ width: line.width || 1, color }) } : { fill: color, ...stroke(line) };
  const parts = x.map((at, i) => (at < low || at > high ? "" : SYMBOLS[symbol](px(at), py(y[i]), size / 2)));
  path(parent, parts.join(""), look);
}

// Draws all traces in their order, panel by panel, over the lines of the panels' scales.
player.drawMarks = function (svg, traces, view, surface) {
  const right = view.size.width - (view.clip ? view.right : 0), wide = Math.max(0, right - view.left);
  const px = (x) => view.px(x) - view.left;
  svg.replaceChildren();
  svg.setAttribute("width", view.size.width);
  svg.setAttribute("height", view.size.height);
  for (const panel of Object.values(view.panels)) {
    const { topPx, heightPx } = panel, py = (y) => view.py(y, { panel: panel.id }) - topPx;
    const box = { x: view.left, y: topPx, width: wide, height: heightPx };
    const inside = player.svg("svg", svg, { ...box, overflow: "hidden" });
    const sliding = player.svg("g", null, { class: "dp-slides" });
    const ticks = (panel.ticks || []).map((tick) => py(Array.isArray(tick) ? tick[0] : tick));
    path(inside, ticks.map((y) => `M0 ${tenth(y)}H${wide}`).join(""), { stroke: surface.grid });
    inside.append(sliding);
    for (const trace of traces) {
      if (trace.yaxis !== panel.yaxis) continue;
      const free = trace.marker?.free, [low, high] = view.range;
      const parent = free ? player.svg("g", player.svg("svg", svg, { ...box, overflow: "visible" }), { class: "dp-slides" }) : sliding;
      if (trace.mode === "lines") lines(parent, trace, px, py);
      else points(parent, trace, px, py, [free ? low : low - (view.slide || 0) / view.columnWidth, high]);
    }
    const low = topPx + heightPx;
    if (panel.rule) path(svg, `M${view.left} ${low}H${right}`, { stroke: surface.text, "stroke-width": RULE });
  }
};
