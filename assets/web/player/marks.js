// The marks of a picture as one SVG: one path for all marks of a style, cut off at the edges of their panel. A path an element
// would cost a redraw of a thousand nodes as many times as much. Knows traces (below) and where panels lie; no kinds of marks.
//
// A trace is a plain object: { mode: "lines" or "markers", x: [], y: [] in data units with null between two lines, yaxis: its
// panel's, opacity, line: {width, color, dash}, fill: "toself" and fillcolor for polygons, marker: {symbol, size in pixels, color,
// line: {width, color}}, each a value or a list with one for each point; cliponaxis: false for markers that may stick out }.
window.DecodingPlayer = window.DecodingPlayer || {};
(function (player) {
  "use strict";
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

  // A style's dash as SVG has it; "4px,3px" stays as it is.
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

  const stroke = (line) => (line.width ? { stroke: line.color, "stroke-width": line.width, "stroke-dasharray": dashes(line) } : {});

  function lines(parent, trace, px, py) {
    const parts = [], end = trace.fill ? "Z" : "";
    let open = false;
    for (let i = 0; i < trace.x.length; i++) {
      if (trace.x[i] === null) {
        if (open) parts.push(end);
        open = false;
        continue;
      }
      parts.push(open ? "L" : "M", tenth(px(trace.x[i])), " ", tenth(py(trace.y[i])));
      open = true;
    }
    if (open) parts.push(end);
    path(parent, parts.join(""), { fill: trace.fill ? trace.fillcolor : "none", opacity: trace.opacity, ...stroke(trace.line) });
  }

  // Points that look alike are one path; lists of looks make as many as there are different ones.
  function markers(parent, { x, y, marker, opacity }, px, py, [low, high]) {
    const looks = new Map(), at = (value, i) => (Array.isArray(value) ? value[i] : value);
    for (let i = 0; i < x.length; i++) {
      if (x[i] < low || x[i] > high) continue;
      const symbol = at(marker.symbol, i), color = at(marker.color, i), size = at(marker.size, i);
      const line = { width: at(marker.line?.width, i), color: at(marker.line?.color, i) ?? color };
      const hollow = symbol === "circle-open" || symbol === "x-thin";
      const look = hollow ? { fill: "none", ...stroke({ width: line.width || 1, color }) } : { fill: color, ...stroke(line) };
      const key = JSON.stringify(look), parts = looks.get(key) || looks.set(key, []).get(key);
      parts.push(SYMBOLS[symbol](px(x[i]), py(y[i]), size / 2));
    }
    for (const [key, parts] of looks) path(parent, parts.join(""), { opacity, ...JSON.parse(key) });
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
        const free = trace.cliponaxis === false, [low, high] = view.range;
        const parent = free ? player.svg("g", player.svg("svg", svg, { ...box, overflow: "visible" }), { class: "dp-slides" }) : sliding;
        if (trace.mode === "lines") lines(parent, trace, px, py);
        else markers(parent, trace, px, py, [free ? low : low - (view.slide || 0) / view.columnWidth, high]);
      }
      const low = topPx + heightPx;
      if (panel.rule) path(svg, `M${view.left} ${low}H${right}`, { stroke: surface.text, "stroke-width": RULE });
    }
  };
})(window.DecodingPlayer);
