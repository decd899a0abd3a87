// Drawers for the chart-like marks: band, bar, step, stem, symbol, arc, hook, path, and the heading of a panel.
// Each is (marks, ctx) => traces, empty where there is nothing to draw. Knows marks and colours, nothing of views, strategies or steps.
window.DecodingPlayer = window.DecodingPlayer || {};
(function (player) {
  "use strict";

  player.drawers = player.drawers || {};
  const drawers = player.drawers;

  const STATES = ["accepted", "live", "rejected", "resampled", "bonus"]; // states that a band may be tinted with
  const ARC_WIDTHS = [1.5, 2.5, 3.5, 5, 7, 9]; // px, by weight
  const ARC_WEIGHTS = [0.03, 0.06, 0.11, 0.17, 0.23]; // upper bounds of the first five widths
  const LINE = 16.9; // pixels between two lines of a heading
  const GLYPHS = { dot: "circle", diamond: "diamond", triangle: "triangle-down", ring: "circle-open", star: "star", square: "square" };
  const SIZES = { dot: 8, diamond: 10, triangle: 10, ring: 9, star: 11, square: 9 };

  function trace(axis, more) {
    return { mode: "lines", x: [], y: [], yaxis: axis, ...more };
  }

  function fill(axis, colour, line) {
    return trace(axis, { fill: "toself", fillcolor: colour, line: line || { width: 0, color: colour } });
  }

  // Appends a polyline, with a gap before it unless it goes on where the last one ended.
  function draw(target, xs, ys) {
    const n = target.x.length;
    if (n && target.x[n - 1] === xs[0] && target.y[n - 1] === ys[0]) {
      xs = xs.slice(1);
      ys = ys.slice(1);
    } else if (n) {
      target.x.push(null);
      target.y.push(null);
    }
    target.x.push(...xs);
    target.y.push(...ys);
  }

  function box(target, x0, x1, y0, y1) {
    if (target.x.length) {
      target.x.push(null);
      target.y.push(null);
    }
    target.x.push(x0, x1, x1, x0, x0);
    target.y.push(y0, y0, y1, y1, y0);
  }

  // One trace per style and axis on which the kind occurs, in fixed order: `styles` maps a style's name to a maker.
  function layers(kind, ctx, styles) {
    const result = {}, order = [];
    for (const axis of ctx.axesOf(kind)) {
      for (const [name, make] of Object.entries(styles)) {
        const made = make(axis);
        result[axis + name] = made;
        order.push(made);
      }
    }
    return { of: (mark, name) => result[ctx.yaxisOf(mark) + name], order };
  }

  // From where to where a band runs; one without y0 and y1 covers its panel, however that grows.
  function span(mark, ctx) {
    if (mark.y0 !== undefined) return [mark.y0, mark.y1];
    const panel = ctx.view.panelOf(mark);
    return [panel.y0, panel.y1];
  }

  drawers.band = function (marks, ctx) {
    const { surface, state } = ctx.palette;
    const styles = { panel: (axis) => fill(axis, surface.panel), amber: (axis) => fill(axis, state.live.tint) };
    for (const name of STATES) styles[name] = (axis) => fill(axis, state[name].tint);
    styles.grid = (axis) => trace(axis, { line: { width: 2, color: surface.bg } });
    const made = layers("band", ctx, styles), gaps = new Map();
    for (const mark of marks) {
      const [y0, y1] = span(mark, ctx), [low, high] = [ctx.x[0] - 40, ctx.x[1] + 40];
      const x0 = Math.max(mark.x0, low), x1 = Math.min(mark.x1, high);
      const target = made.of(mark, mark.role);
      if (!target || x1 <= x0) continue;
      box(target, x0, x1, y0, y1);
      if (!mark.columns) continue;
      for (let x = Math.ceil(x0 - 0.5) + 0.5; x < x1; x += 1) {
        if (x <= x0) continue;
        const known = gaps.get(x) || [mark, y0, y1];
        gaps.set(x, [mark, Math.min(known[1], y0), Math.max(known[2], y1)]);
      }
    }
    // Columns stay visible in long bands: one line in the colour of the ground between two columns, through all rows.
    for (const [x, [mark, y0, y1]] of gaps) draw(made.of(mark, "grid"), [x, x], [y0, y1]);
    return made.order;
  };

  drawers.bar = function (marks, ctx) {
    const styles = {};
    ctx.palette.ranks.forEach((colour, rank) => {
      styles[rank] = (axis) => fill(axis, colour, { width: 1, color: ctx.palette.surface.bg });
    });
    const made = layers("bar", ctx, styles);
    for (const mark of marks) {
      const rank = Math.min(mark.rank, ctx.palette.ranks.length - 1), half = mark.w / 2;
      box(made.of(mark, rank), mark.x - half, mark.x + half, mark.y0, mark.y1);
    }
    return made.order;
  };

  drawers.step = function (marks, ctx) {
    const { amount, surface } = ctx.palette;
    const made = layers("step", ctx, {
      area: (axis) => fill(axis, amount[1]),
      line: (axis) => trace(axis, { line: { width: 1.6, color: surface.text } }),
    });
    const sorted = [...marks].sort((a, b) => a.x - b.x);
    let before = null;
    for (const mark of sorted) {
      const [x0, x1] = [mark.x - 0.5, mark.x + 0.5];
      box(made.of(mark, "area"), x0, x1, 0, mark.y);
      const line = made.of(mark, "line");
      if (before && before.x === mark.x - 1) {
        line.x.push(x0, x1);
        line.y.push(mark.y, mark.y);
      } else {
        draw(line, [x0, x1], [mark.y, mark.y]);
      }
      before = mark;
    }
    return made.order;
  };

  drawers.stem = function (marks, ctx) {
    const made = layers("stem", ctx, { stem: (axis) => trace(axis, { line: { width: 1, color: ctx.palette.surface.soft } }) });
    for (const mark of marks) draw(made.of(mark, "stem"), [mark.x, mark.x], [mark.y0, mark.y1]);
    return made.order;
  };

  drawers.symbol = function (marks, ctx) {
    const bg = ctx.palette.surface.bg;
    const made = layers("symbol", ctx, {
      symbol: (axis) =>
        trace(axis, {
          mode: "markers",
          cliponaxis: false,
          marker: { symbol: [], size: [], color: [], line: { width: [], color: [] } },
        }),
    });
    for (const mark of marks) {
      const target = made.of(mark, "symbol"), colour = player.roleColour(mark.role, ctx.palette);
      const hollow = mark.glyph === "diamond", small = mark.size !== undefined && mark.size < 6;
      target.x.push(mark.x);
      target.y.push(mark.y);
      target.marker.symbol.push(GLYPHS[mark.glyph] || "circle");
      target.marker.size.push(mark.size || SIZES[mark.glyph] || 8);
      target.marker.color.push(hollow ? bg : colour);
      target.marker.line.width.push(hollow ? 1.8 : small ? 0 : 1.2);
      target.marker.line.color.push(hollow ? colour : bg);
    }
    return made.order;
  };

  function joined(target, mark) {
    const points = player.linkPoints(mark);
    draw(target, points.map(([x]) => x), points.map(([, y]) => y));
  }

  drawers.arc = function (marks, ctx) {
    const { surface, amount } = ctx.palette;
    const styles = { thin: (axis) => trace(axis, { line: { width: 1, color: amount[3] } }) };
    ARC_WIDTHS.forEach((width, i) => {
      const colour = player.mix(surface.bg, surface.text, 0.45 + 0.11 * i);
      styles[i] = (axis) => trace(axis, { line: { width, color: colour } });
    });
    const made = layers("arc", ctx, styles), far = [];
    for (const mark of marks) {
      if (mark.strong && mark.x0 < ctx.view.range[0]) far.push(mark);
      const heavier = ARC_WEIGHTS.findIndex((bound) => mark.weight < bound);
      const style = !mark.strong ? "thin" : heavier < 0 ? ARC_WIDTHS.length - 1 : heavier;
      joined(made.of(mark, style), mark);
    }
    if (far.length) {
      // Sources left of the window are counted, not dropped silently: in the margin, where no arc runs.
      const share = far.reduce((sum, mark) => sum + mark.weight, 0), words = far.length > 1 ? "sources" : "source";
      const panel = ctx.view.panelOf(far[0]), look = { x: ctx.view.range[0], y: panel.y1, dx: -6, color: surface.soft, size: 11, anchor: "end" };
      const percent = `${Math.round(100 * share)} %`, lines = ctx.narrow ? [`◂ ${far.length}`, "further", percent] : [`◂ ${far.length} ${words}`, `further: ${percent}`];
      const items = lines.map((text, i) => ({ ...look, dy: -10 + 14 * (i + 1 - lines.length), text }));
      made.order.push({ yaxis: panel.yaxis, face: "sans", free: true, items });
    }
    return made.order;
  };

  drawers.hook = function (marks, ctx) {
    const { link, surface } = ctx.palette;
    const faint = player.mix(surface.bg, link, 0.55);
    const made = layers("hook", ctx, {
      thin: (axis) => trace(axis, { line: { width: 1.2, color: faint } }),
      strong: (axis) => trace(axis, { line: { width: 2.4, color: link } }),
      head: (axis) => trace(axis, { mode: "markers", marker: { symbol: "triangle-up", size: 8, color: link } }),
    });
    for (const mark of marks) {
      joined(made.of(mark, mark.strong ? "strong" : "thin"), mark);
      if (!mark.strong) continue;
      const head = made.of(mark, "head");
      head.x.push(mark.x1);
      head.y.push(mark.y1 + 0.5);
    }
    return made.order;
  };

  const PATH_WIDTHS = { ink: 3, soft: 1.5 }, HEAD = 8; // pixels: lines of their own width, the head of an arrow

  // The head of an arrow at the end of a path: a triangle of so many pixels in the direction of its last piece.
  function head(target, mark, ctx) {
    const at = mark.points.slice(-2).map(([x, y]) => [ctx.px(x), ctx.py(y, mark)]), [[ax, ay], [bx, by]] = at;
    const long = Math.hypot(bx - ax, by - ay) || 1, [ux, uy] = [(bx - ax) / long, (by - ay) / long];
    const [x, y] = mark.points[mark.points.length - 1], unit = ctx.unitOf(mark), half = HEAD / 2.4;
    const corners = [[0, 0], [-HEAD, half], [-HEAD, -half]].map(([along, aside]) =>
      [x + (ux * along - uy * aside) / ctx.columnWidth, y + (uy * along + ux * aside) / unit]);
    draw(target, corners.map((c) => c[0]), corners.map((c) => c[1]));
  }

  drawers.path = function (marks, ctx) {
    const lines = new Map(), heads = new Map();
    const of = (known, key, make) => known.get(key) || known.set(key, make()).get(key);
    for (const mark of marks) {
      if (mark.drawn === false) continue;
      const axis = ctx.yaxisOf(mark), color = player.roleColour(mark.role, ctx.palette);
      const line = { width: mark.width || PATH_WIDTHS[mark.role] || 1, color, dash: mark.dash };
      const target = of(lines, [axis, color, line.width, mark.dash].join(), () => trace(axis, { line }));
      draw(target, mark.points.map((p) => p[0]), mark.points.map((p) => p[1]));
      if (mark.head) head(of(heads, axis + color, () => fill(axis, color)), mark, ctx);
    }
    const thinnest = [...lines.values()].sort((a, b) => a.line.width - b.line.width);
    return [...thinnest, ...heads.values()];
  };

  // Breaks a sentence into lines that fit a width in px, at spaces only; line feeds stay.
  function wrap(text, width, size) {
    const lines = [];
    for (const paragraph of text.split("\n")) {
      let line = "";
      for (const word of paragraph.split(" ")) {
        const longer = line ? line + " " + word : word;
        if (line && player.textWidth(longer, size, "sans") > width) {
          lines.push(line);
          line = word;
        } else {
          line = longer;
        }
      }
      lines.push(line);
    }
    return lines;
  }

  // The heading of a panel, a sentence at the top left of the window; `lead`, its first words, in bold. Scales of panels are
  // drawn by the axes. Where the panel is too low for the `heading`, its `short` form is used.
  drawers.panel = function (marks, ctx) {
    const { surface } = ctx.palette, result = [];
    for (const mark of marks) {
      if (!mark.heading) continue;
      const panel = ctx.view.panelOf(mark), width = ctx.view.size.width - ctx.view.left - 8, lead = mark.lead || "";
      const room = Math.max(1, Math.floor(panel.heightPx / LINE + 0.2)); // lines that fit; the words before the first full stop do last
      const forms = [mark.heading, mark.short, mark.heading.match(/^[^;:.]*/)[0]].filter((words) => words !== undefined);
      const tried = forms.map((words) => wrap(lead + words, width, 13)), lines = tried.find((one) => one.length <= room) || tried.pop().slice(0, room);
      const look = { x: ctx.view.range[0], y: mark.y0, dx: 2, color: surface.soft, size: 13, anchor: "start" };
      const items = lines.map((text, i) => ({ ...look, dy: 9 + LINE * i, text }));
      if (items[0].text.startsWith(lead)) Object.assign(items[0], { lead, text: items[0].text.slice(lead.length) });
      result.push({ yaxis: panel.yaxis, face: "sans", free: true, items });
    }
    return result;
  };
})(window.DecodingPlayer);
