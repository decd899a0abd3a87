// Drawers for trees and rounds: node, edge, tick, cell, row. Each returns traces, one a style.
// Hue says state, width says probability; labels are in labels.js. Knows the palette, no view.
window.DecodingPlayer = window.DecodingPlayer || {};
(function (player) {
  "use strict";
  player.drawers = player.drawers || {};

  const STATES = ["prompt", "unreached", "pruned", "finished", "rejected", "live", "bonus", "resampled", "tolerated",
    "accepted", "forced", "chosen"];
  const smooth = Array.from({ length: 11 }, (_, i) => [i / 10, (i / 10) ** 2 * (3 - (2 * i) / 10)]);
  const coarse = smooth.filter((_, i) => i % 3 === 1 || i === 0 || i === 10);

  // The same curve as a piece of an SVG path, from a to b in pixels.
  player.curve = ([ax, ay], [bx, by]) => smooth.map(([t, s]) => `L${ax + (bx - ax) * t} ${ay + (by - ay) * s}`).join("");

  const stateOf = (mark) => (STATES.includes(mark.state) ? mark.state : "prompt");
  const yaxes = (ctx) => Object.values(ctx.panels).map((p) => p.yaxis);

  // One bucket per style and y axis.
  function buckets(kind, marks, ctx, styles, styleOf) {
    const axes = ctx.axesOf(kind), byStyle = {};
    for (const axis of axes) for (const style of styles) byStyle[axis + " " + style] = [];
    for (const mark of marks) {
      if (mark.drawn === false) continue;
      const list = byStyle[ctx.yaxisOf(mark) + " " + styleOf(mark)];
      if (list) list.push(mark);
    }
    return axes.flatMap((axis) => styles.map((style) => [axis, style, byStyle[axis + " " + style]]));
  }

  // ---- edges -------------------------------------------------------------------------------------------------
  const EDGES = STATES.flatMap((s) => (s === "live" ? ["live 0", "live 1", "live 2"] : s === "chosen" ? ["chosen 0", "chosen 1"] : [s]));
  const WIDTHS = { "live 0": 1.1, "live 1": 1.8, "live 2": 2.6, "chosen 0": 3.5, "chosen 1": 4.5, finished: 1, prompt: 2 };

  function edgeStyle(mark) {
    const state = stateOf(mark), weight = mark.weight ?? 0.5;
    if (state === "live") return "live " + (weight < 0.25 ? 0 : weight < 0.6 ? 1 : 2);
    if (state === "chosen") return "chosen " + (mark.agreed ? 1 : 0);
    return state;
  }

  player.drawers.edge = function (marks, ctx) {
    const curve = marks.length > 1500 ? coarse : smooth;
    return buckets("edge", marks, ctx, EDGES, edgeStyle).map(([axis, style, list]) => {
      const name = style.split(" ")[0], state = ctx.palette.state[name];
      const x = [], y = [];
      for (const edge of list) {
        const straight = Math.abs(edge.y1 - edge.y0) < 1e-6;
        const stub = edge.stub && name === "pruned" ? 0.5 : 0; // long edges of lost limbs: only their end is drawn
        if (edge.turn && !straight) x.push(edge.x0), y.push(edge.y0);
        for (const [t, s] of straight ? [smooth[0], smooth[10]] : curve) {
          if (t < stub) continue;
          x.push(edge.x0 + (straight ? 0 : edge.turn || 0) + (edge.bend || edge.x1 - edge.x0) * t);
          y.push(stub ? edge.y1 - Math.sign(edge.y1 - edge.y0) * 0.8 * (1 - s) : edge.y0 + (edge.y1 - edge.y0) * s);
        }
        if (edge.bend) x.push(edge.x1), y.push(edge.y1);
        x.push(null);
        y.push(null);
      }
      const color = name === "finished" ? ctx.palette.state.pruned.color : state.color;
      return {
        mode: "lines", x, y, yaxis: axis, opacity: name === "pruned" || name === "finished" ? 0.7 : 1,
        line: { color, width: WIDTHS[style] || state.edge.width || 1, dash: state.edge.dash || "solid" },
      };
    });
  };

  // ---- nodes -------------------------------------------------------------------------------------------------
  const NODES = [...STATES.filter((s) => s !== "live"), "ended", "live", "live front", "chosen front"];

  function nodeStyle(mark) {
    const state = stateOf(mark);
    if (mark.front && (state === "live" || state === "chosen")) return state + " front";
    return state === "pruned" && mark.ended ? "ended" : state;
  }

  function marker(style, ctx) {
    const dense = ctx.rowHeight < 34;
    const { state, surface } = ctx.palette, color = (state[style.split(" ")[0]] || state.pruned).color;
    const open = (symbol, size, width) => ({ symbol, size, color: surface.bg, line: { color, width } });
    const full = (symbol, size) => ({ symbol, size, color, line: { color, width: 0 } });
    const cross = (hue, size, width) => ({ symbol: "x-thin", size, color: hue, line: { color: hue, width } });
    const made = {
      prompt: full("circle", 4), unreached: open("circle", 5.5, 1.2), pruned: full("circle", 4),
      ended: cross(state.pruned.color, dense ? 5 : 8, dense ? 1.2 : 1.8), rejected: cross(color, 9, 2.2),
      finished: full("square", dense ? 6 : 9), bonus: full("star", 13), resampled: full("diamond", 11),
      accepted: full("circle", 9), tolerated: full("circle", 9), forced: full("pentagon", 11), chosen: full("circle", dense ? 5 : 7),
      live: open("circle", dense ? 5 : 7, 1.8), "live front": full("circle", dense ? 7 : 10), "chosen front": full("circle", dense ? 8 : 11),
    };
    return made[style];
  }

  player.drawers.node = function (marks, ctx) {
    return buckets("node", marks, ctx, NODES, nodeStyle).map(([axis, style, list]) => ({
      mode: "markers", x: list.map((m) => m.x), y: list.map((m) => m.y), yaxis: axis, marker: marker(style, ctx),
    }));
  };

  // ---- candidates dropped at birth: at most five slanted strokes under their parent -----------------------------
  player.drawers.tick = function (marks, ctx) {
    const kinds = ["pruned", "rejected"];
    return buckets("tick", marks, ctx, kinds, (m) => (m.state === "rejected" ? "rejected" : "pruned")).map(([axis, kind, list]) => {
      const x = [], y = [];
      for (const tick of list) {
        if (tick.index >= 5) continue;
        const unit = ctx.unitOf(tick), gap = Math.min(9, unit * 0.18);
        const long = Math.min(10, unit * 0.28, Math.max(4, unit - 21 - gap)); // not into the token of the row below
        const left = tick.x + (5 + tick.index * 3.4) / ctx.columnWidth;
        x.push(left, left + 3 / ctx.columnWidth, null);
        y.push(tick.y + gap / unit, tick.y + (gap + long) / unit, null);
      }
      return { mode: "lines", x, y, yaxis: axis, line: { color: ctx.palette.state[kind].color, width: 1 } };
    });
  };

  // ---- cells: boxes as polygons with gaps, one trace per state and fill ------------------------------------------
  const FILLS = ["tint", "amount", "none", "hatched", "dotted", "dashed", "outline", "filled"];
  const GUIDES_APART = 10; // pixels: nearer ones would be a grey area
  const SLIVER_GLYPH = 8; // pixels of the mark of a state where a row is too low for words
  const SHADES = 6;
  const HATCH = 7; // pixels between two strokes of a hatched cell
  const CELLS = FILLS.flatMap((fill) =>
    fill === "amount" ? Array.from({ length: SHADES }, (_, i) => "amount " + i) : STATES.map((state) => fill + " " + state));

  function cellStyle(mark) {
    if (mark.fill === "amount") return "amount " + Math.max(0, Math.min(SHADES - 1, Math.floor((mark.weight ?? 0) * SHADES)));
    return (FILLS.includes(mark.fill) ? mark.fill : "tint") + " " + stateOf(mark);
  }

  function cellLook(style, ctx) {
    const [fill, name] = style.split(" "), { state, amount, surface } = ctx.palette;
    if (fill === "amount") return { fillcolor: amount[+name], line: { width: 0, color: surface.bg } };
    const hue = state[name], clear = "rgba(0,0,0,0)", line = { color: hue.color, width: 1.4, dash: "solid" };
    if (fill === "filled") return { fillcolor: hue.color, line: { ...line, width: 0 } };
    if (fill === "outline") return { fillcolor: surface.bg, line: { ...line, width: 2 } };
    if (fill === "dashed") return { fillcolor: clear, line: { ...line, dash: "4px,3px" } };
    if (fill === "dotted") return { fillcolor: clear, line: { ...line, width: 1.2, dash: "1.5px,2px" } };
    if (fill === "hatched") return { fillcolor: clear, line: { ...line, color: surface.line, width: 1 } };
    if (fill === "none") return { fillcolor: clear, line: { ...line, width: 0 } };
    const border = name === "rejected" || name === "tolerated" ? 1.4 : 0; // outlined, filled or not
    return { fillcolor: hue.tint, line: { ...line, width: border } };
  }

  // Slanted strokes through a cell from half-width w and half-height h, in data units.
  function hatch(cell, w, h, ctx, x, y) {
    const wide = 2 * w * ctx.columnWidth, unit = ctx.unitOf(cell), tall = 2 * h * unit;
    const put = (right, down) => (x.push(cell.x - w + right / ctx.columnWidth), y.push(cell.y - h + down / unit));
    for (let at = HATCH - tall; at < wide; at += HATCH) {
      const low = Math.max(0, at), high = Math.min(wide, at + tall);
      put(low, tall - (low - at));
      put(high, tall - (high - at));
      x.push(null);
      y.push(null);
    }
  }

  player.drawers.cell = function (marks, ctx) {
    const boxes = buckets("cell", marks, ctx, CELLS, cellStyle).map(([axis, style, list]) => {
      const x = [], y = [];
      for (const cell of list) {
        const unit = ctx.unitOf(cell), w = Math.max(cell.w / 2 - 1 / ctx.columnWidth, 0.5 / ctx.columnWidth); // a gap of 2 px between cells
        const h = cell.tall ? cell.tall / 2 / unit : cell.h / 2 - 1 / unit;
        if (cell.fill === "hatched") {
          hatch(cell, w, h, ctx, x, y);
          continue;
        }
        x.push(cell.x - w, cell.x + w, cell.x + w, cell.x - w, cell.x - w, null);
        y.push(cell.y - h, cell.y - h, cell.y + h, cell.y + h, cell.y - h, null);
      }
      return { mode: "lines", fill: "toself", x, y, yaxis: axis, ...cellLook(style, ctx) };
    });
    return [...boxes, ...cellTexts(marks, ctx)];
  };

  function cellInk(mark, ctx) {
    const { state, surface } = ctx.palette;
    if (mark.fill === "filled") return surface.on_fill;
    if (mark.state === "rejected") return state.rejected.color;
    if (mark.fill === "amount" && mark.weight >= 0.3) return surface.text; // soft words need a pale ground
    return ["tint", "outline"].includes(mark.fill) && mark.state !== "prompt" && mark.state !== "pruned" ? surface.text : surface.soft;
  }

  // Tokens in the middle, glyphs at the left edge; below 34 px columns 10 px, and 9 is the floor.
  function cellTexts(marks, ctx) {
    const size = ctx.columnWidth >= 44 ? 12 : ctx.columnWidth >= 34 ? 11 : 10;
    return ctx.axesOf("cell").flatMap((axis) => {
      const texts = [], glyphs = [];
      for (const cell of marks) {
        if (cell.drawn === false || ctx.yaxisOf(cell) !== axis) continue;
        const seen = Math.min(cell.x + cell.w / 2, ctx.view.range[1]) - Math.max(cell.x - cell.w / 2, ctx.view.range[0]);
        const width = seen * ctx.columnWidth, tall = cell.h * ctx.unitOf(cell), color = cellInk(cell, ctx);
        const shift = cell.glyph ? 13 : 0, font = Math.min(size, Math.floor(tall - 3));
        if (cell.glyph && (tall >= 11 || cell.sliver)) {
          const size = cell.sliver ? SLIVER_GLYPH : 11;
          glyphs.push({ x: cell.x - cell.w / 2 + 8 / ctx.columnWidth, y: cell.y, text: cell.glyph, color, size, bare: cell.sliver });
        }
        const text = cell.text && font >= 9 ? ctx.fit(cell.text, width - 5 - shift, font) : "";
        const left = Math.max(cell.x - cell.w / 2, ctx.view.range[0]), right = Math.min(cell.x + cell.w / 2, ctx.view.range[1]);
        if (text) texts.push({ x: (left + right + shift / ctx.columnWidth) / 2, y: cell.y, text, color, size: font, bare: true });
      }
      return [{ yaxis: axis, face: "mono", items: texts }, { yaxis: axis, face: "sans", items: glyphs }];
    });
  }

  // ---- guides: dotted verticals over the whole panel; their words are labels ---------------------------------------------------------------
  player.drawers.guide = function (marks, ctx) {
    return yaxes(ctx).map((axis) => {
      const x = [], y = [];
      let before = -Infinity;
      for (const guide of marks) {
        if (ctx.yaxisOf(guide) !== axis || guide.x < ctx.view.range[0]) continue;
        if ((guide.x - before) * ctx.columnWidth < GUIDES_APART && guide.x >= before) continue;
        before = guide.x;
        const panel = ctx.view.panelOf(guide);
        x.push(guide.x, guide.x, null);
        y.push(panel.y0, panel.y1, null);
      }
      return { mode: "lines", x, y, yaxis: axis, line: { color: ctx.palette.surface.text, width: 1.2, dash: "2px,3px" } };
    });
  };

  // ---- rows: a thin rule below each ------------------------------------------------------------------------------
  player.drawers.row = function (marks, ctx) {
    return yaxes(ctx).map((axis) => {
      const x = [], y = [];
      for (const row of marks) {
        if (row.rule === false || ctx.yaxisOf(row) !== axis) continue;
        x.push(ctx.view.range[0], ctx.view.range[1], null);
        y.push(row.y1, row.y1, null);
      }
      return { mode: "lines", x, y, yaxis: axis, line: { color: ctx.palette.surface.grid, width: 1 } };
    });
  };
})(window.DecodingPlayer);
