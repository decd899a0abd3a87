// Drawers for the chart-like marks: band, bar, step, stem, symbol, arc, hook, path, and the heading of a
// panel. Each is (marks, ctx, sheet): see marks.js.
const ARC_WEIGHTS = [0.03, 0.06, 0.11, 0.17, 0.23]; // upper bounds of the first five looks of an arc
const LINE = 16.9; // pixels between two lines of a heading
const BOLD = 1.08; // how much wider bold letters are

player.drawers.band = function (marks, ctx, sheet) {
  const { surface, state, part } = ctx.palette,
    gaps = new Map();
  for (const mark of marks) {
    const panel = ctx.view.panelOf(mark),
      { y0 = panel.y0, y1 = panel.y1, role } = mark; // without y it covers its panel
    const x0 = Math.max(mark.x0, ctx.lo - 40),
      x1 = Math.min(mark.x1, ctx.lo + ctx.columns + 39);
    if (x1 <= x0) continue;
    const colour =
      role === "panel" ? surface.panel : (part[role] ?? state[role === "amber" ? "live" : role]).tint;
    sheet.area(mark, colour, ["panel", "amber"].indexOf(role) - 2).box(x0, x1, y0, y1);
    if (!mark.columns) continue;
    for (let x = Math.ceil(x0 - 0.5) + 0.5; x < x1; x += 1) {
      if (x <= x0) continue;
      const known = gaps.get(x) || [mark, y0, y1];
      gaps.set(x, [mark, Math.min(known[1], y0), Math.max(known[2], y1)]);
    }
  }
  // Columns stay visible in long bands: one line in the colour of the ground between two columns, through all
  // rows.
  for (const [x, [mark, y0, y1]] of gaps) {
    sheet.stroke(mark, { width: 2, color: surface.bg }).polyline([
      [x, y0],
      [x, y1],
    ]);
  }
};

player.drawers.bar = function (marks, ctx, sheet) {
  const { ranks, surface } = ctx.palette;
  for (const mark of marks) {
    const rank = Math.min(mark.rank, ranks.length - 1),
      half = mark.w / 2;
    const bar = sheet.area(mark, ranks[rank], rank, { width: 1, color: surface.bg });
    bar.box(mark.x - half, mark.x + half, mark.y0, mark.y1);
  }
};

player.drawers.step = function (marks, ctx, sheet) {
  const { amount, surface } = ctx.palette;
  let before = null;
  for (const mark of [...marks].sort((a, b) => a.x - b.x)) {
    const x0 = mark.x - 0.5,
      x1 = mark.x + 0.5,
      line = sheet.stroke(mark, { width: 1.6, color: surface.text }, 1);
    sheet.area(mark, amount[1]).box(x0, x1, 0, mark.y);
    line.polyline(
      [
        [x0, mark.y],
        [x1, mark.y],
      ],
      before && before.x === mark.x - 1,
    );
    before = mark;
  }
};

player.drawers.stem = function (marks, ctx, sheet) {
  const look = { width: 1, color: ctx.palette.surface.soft };
  for (const mark of marks)
    sheet.stroke(mark, look).polyline([
      [mark.x, mark.y0],
      [mark.x, mark.y1],
    ]);
};

player.drawers.symbol = function (marks, ctx, sheet) {
  const { glyphs, surface } = ctx.palette;
  for (const mark of marks) {
    const colour = player.roleColour(mark.role, ctx.palette),
      { symbol, size, hollow } = glyphs[mark.glyph] || glyphs.dot;
    const line = { width: hollow ? 1.8 : mark.size < 6 ? 0 : 1.2, color: hollow ? colour : surface.bg };
    const look = { symbol, size: mark.size || size, color: hollow ? surface.bg : colour, line, free: true };
    sheet.points(mark, look).point(mark.x, mark.y);
  }
};

player.drawers.arc = function (marks, ctx, sheet) {
  const { surface, amount, arcs } = ctx.palette,
    far = [];
  for (const mark of marks) {
    if (mark.strong && mark.x0 < ctx.view.range[0]) far.push(mark);
    const heavier = ARC_WEIGHTS.findIndex((bound) => mark.weight < bound),
      i = heavier < 0 ? ARC_WEIGHTS.length : heavier;
    const look = mark.strong ? arcs[i] : { width: 1, color: amount[3] };
    sheet.stroke(mark, look, mark.strong ? i : -1).polyline(player.linkPoints(mark));
  }
  if (!far.length) return;
  // Sources left of the window are counted, not dropped silently: in the margin, where no arc runs.
  const share = `${Math.round(100 * far.reduce((sum, mark) => sum + mark.weight, 0))} %`;
  const words = far.length > 1 ? "sources" : "source",
    count = `◂ ${far.length}`;
  const lines = ctx.narrow ? [count, "further", share] : [`${count} ${words}`, `further: ${share}`];
  const x = ctx.view.left - 6,
    low = ctx.py(ctx.view.panelOf(far[0]).y1, far[0]) - 10;
  lines.forEach((text, i) =>
    sheet.write(far[0], {
      x,
      y: low + 14 * (i + 1 - lines.length),
      text,
      color: surface.soft,
      size: 11,
      anchor: "end",
      free: true,
    }),
  );
};

player.drawers.hook = function (marks, ctx, sheet) {
  const { link, faint } = ctx.palette;
  for (const mark of marks) {
    const look = mark.strong ? { width: 2.4, color: link } : { width: 1.2, color: faint };
    sheet.stroke(mark, look, look.width).polyline(player.linkPoints(mark));
    if (mark.strong)
      sheet.points(mark, { symbol: "triangle-up", size: 8, color: link }, 3).point(mark.x1, mark.y1 + 0.5);
  }
};

const PATH_WIDTHS = { ink: 3, soft: 1.5 },
  HEAD = 8; // pixels: lines of their own width, the head of an arrow
const DASH = "9 9"; // pixels of a dashed path, and between them

// The corners of an arrow's head at the end of a path: a triangle of `HEAD` pixels in the direction of its
// last piece.
function corners(mark, ctx) {
  const at = mark.points.slice(-2).map(([x, y]) => [ctx.px(x), ctx.py(y, mark)]),
    [[ax, ay], [bx, by]] = at;
  const long = Math.hypot(bx - ax, by - ay) || 1,
    [ux, uy] = [(bx - ax) / long, (by - ay) / long];
  const [x, y] = mark.points.at(-1),
    unit = ctx.unitOf(mark),
    half = HEAD / 2.4;
  return [
    [0, 0],
    [-HEAD, half],
    [-HEAD, -half],
  ].map(([along, aside]) => [
    x + (ux * along - uy * aside) / ctx.columnWidth,
    y + (uy * along + ux * aside) / unit,
  ]);
}

player.drawers.path = function (marks, ctx, sheet) {
  for (const mark of marks) {
    if (mark.drawn === false) continue;
    const color = player.roleColour(mark.role, ctx.palette),
      width = mark.width || PATH_WIDTHS[mark.role] || 1;
    sheet.stroke(mark, { width, color, dash: mark.dash && DASH }, width).polyline(mark.points);
    if (mark.head) sheet.area(mark, color, Infinity).polyline(corners(mark, ctx));
  }
};

// Breaks a sentence into lines that fit a width in px, at spaces only; line feeds stay.
function wrap(text, width, size) {
  return text.split("\n").flatMap((paragraph) =>
    paragraph.split(" ").reduce((lines, word) => {
      const longer = lines.length ? lines.at(-1) + " " + word : word;
      if (lines.length && player.textWidth(longer, size, "sans") <= width)
        return [...lines.slice(0, -1), longer];
      return [...lines, word];
    }, []),
  );
}

// The heading of a panel, a sentence at the top left of the window; `lead`, its first words, in bold. Scales
// of panels are drawn by the axes. Where the panel is too low for the `heading`, its `short` form is used.
player.drawers.panel = function (marks, ctx, sheet) {
  for (const mark of marks) {
    if (!mark.heading) continue;
    const { left, size } = ctx.view,
      panel = ctx.view.panelOf(mark),
      lead = mark.lead || "";
    // Lines that fit; else the first clause, or the lead alone.
    const room = Math.max(1, Math.floor(panel.heightPx / LINE + 0.2));
    const clause = mark.heading.match(/^([^;:.]|\.\d)*/)[0]; // 6.9 is one number
    const forms = [mark.heading, mark.short, clause, lead ? "" : undefined].filter(
      (words) => words !== undefined,
    );
    const width = (size.width - left - 8) / (lead && ctx.narrow ? BOLD : 1); // where a line may be all bold
    const tried = forms.map((words) => wrap(lead + words, width, 13));
    const lines = tried.find((one) => one.length <= room) || tried.pop().slice(0, room);
    const look = { x: left + 2, color: ctx.palette.surface.soft, size: 13, anchor: "start", free: true };
    let bold = lead.length; // letters of the lead in this line and the following ones
    lines.forEach((text, i) => {
      const leads = bold > 0 ? { lead: text.slice(0, bold), text: text.slice(bold) } : { text };
      sheet.write(mark, { ...look, y: ctx.py(mark.y0, mark) + 9 + LINE * i, ...leads });
      bold -= text.length + 1; // and the space between
    });
  }
};
