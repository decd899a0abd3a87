// Drawers for trees and rounds: node, edge, tick, cell, guide, row. Each is (marks, ctx, sheet): see
// marks.js. Hue says state, width says probability; labels are in labels.js.

const smooth = Array.from({ length: 11 }, (_, i) => [i / 10, (i / 10) ** 2 * (3 - (2 * i) / 10)]);
const coarse = smooth.filter((_, i) => i % 3 === 1 || i === 0 || i === 10);

// The same curve as a piece of an SVG path, from a to b in pixels.
player.curve = ([ax, ay], [bx, by]) =>
  smooth.map(([t, s]) => `L${ax + (bx - ax) * t} ${ay + (by - ay) * s}`).join("");

const stateOf = (mark, { state }) => (mark.state in state ? mark.state : "prompt");
const isDrawn = (mark) => mark.drawn !== false;

// ---- edges ------------------------------------------------------------------------------------------------
// The palette's look, where width says more in one of its own.
function edgeLook(edge, palette) {
  const name = stateOf(edge, palette),
    look = palette.edges[name],
    weight = edge.weight ?? 0.5;
  const live = weight < 0.25 ? 1.1 : weight < 0.6 ? 1.8 : 2.6,
    chosen = edge.agreed ? 4.5 : 3.5;
  return { ...look, width: { live, chosen }[name] || look.width };
}

// From parent to child; of long edges of lost limbs only the end is drawn.
player.drawers.edge = function (marks, ctx, sheet) {
  const curve = marks.length > 1500 ? coarse : smooth;
  for (const edge of marks.filter(isDrawn)) {
    const { x0, y0, x1, y1, turn = 0, bend } = edge,
      { rank, opacity, ...line } = edgeLook(edge, ctx.palette);
    const straight = Math.abs(y1 - y0) < 1e-6,
      stub = edge.stub && edge.state === "pruned",
      points = [];
    if (turn && !straight) points.push([x0, y0]);
    for (const [t, s] of straight ? [smooth[0], smooth[10]] : curve) {
      if (stub && t < 0.5) continue;
      const y = stub ? y1 - Math.sign(y1 - y0) * 0.8 * (1 - s) : y0 + (y1 - y0) * s;
      points.push([x0 + (straight ? 0 : turn) + (bend || x1 - x0) * t, y]);
    }
    if (bend) points.push([x1, y1]);
    sheet.stroke(edge, line, rank + line.width / 10, opacity).polyline(points);
  }
};

// ---- nodes ------------------------------------------------------------------------------------------------
player.drawers.node = function (marks, ctx, sheet) {
  const dense = Number(ctx.unitOf({}) < 34),
    { nodes } = ctx.palette;
  for (const node of marks.filter(isDrawn)) {
    const name = stateOf(node, ctx.palette),
      front = node.front && (name === "live" || name === "chosen");
    const { rank, drawn } = nodes[front ? name + " front" : name === "pruned" && node.ended ? "ended" : name];
    sheet.points(node, drawn[dense], rank).point(node.x, node.y);
  }
};

// ---- candidates dropped at birth: at most five slanted strokes under their parent -------------------------
player.drawers.tick = function (marks, ctx, sheet) {
  for (const tick of marks.filter((mark) => isDrawn(mark) && mark.index < 5)) {
    const unit = ctx.unitOf(tick),
      gap = Math.min(9, unit * 0.18);
    // Not into the token of the row below.
    const long = Math.min(10, unit * 0.28, Math.max(4, unit - 21 - gap));
    const x = tick.x + (5 + tick.index * 3.4) / ctx.columnWidth,
      y = tick.y + gap / unit;
    const rejected = tick.state === "rejected",
      { color } = ctx.palette.state[rejected ? "rejected" : "pruned"];
    const stroke = sheet.stroke(tick, { color, width: 1 }, Number(rejected));
    stroke.polyline([
      [x, y],
      [x + 3 / ctx.columnWidth, y + long / unit],
    ]);
  }
};

// ---- cells: boxes with gaps -------------------------------------------------------------------------------
const GUIDES_APART = 10; // pixels: nearer ones would be a grey area
const SLIVER_GLYPH = 8; // pixels of the mark of a state where a row is too low for words
const SHADES = 6;
const HATCH = 7; // pixels between two strokes of a hatched cell

// How a cell of a state looks, and what it is in the strip.
player.cellLook = function ({ cells }, state, fill) {
  const looks = cells[state] || cells.prompt;
  return looks[fill] || looks.tint;
};

// The grey of a cell with an amount.
const shade = ({ weight = 0 }, { amount }) =>
  amount[Math.max(0, Math.min(SHADES - 1, Math.floor(weight * SHADES)))];

// Slanted strokes through a cell from half-width w and half-height h, in data units.
function hatch(cell, w, h, ctx, stroke) {
  const wide = 2 * w * ctx.columnWidth,
    unit = ctx.unitOf(cell),
    tall = 2 * h * unit;
  for (let at = HATCH - tall; at < wide; at += HATCH) {
    const down = (right) => cell.y - h + (tall - (right - at)) / unit,
      ends = [Math.max(0, at), Math.min(wide, at + tall)];
    stroke.polyline(ends.map((right) => [cell.x - w + right / ctx.columnWidth, down(right)]));
  }
}

player.drawers.cell = function (marks, ctx, sheet) {
  for (const cell of marks.filter(isDrawn)) {
    const unit = ctx.unitOf(cell),
      w = Math.max(cell.w / 2 - 1 / ctx.columnWidth, 0.5 / ctx.columnWidth); // 2 px between cells
    const h = cell.tall ? cell.tall / 2 / unit : cell.h / 2 - 1 / unit;
    const {
      color = shade(cell, ctx.palette),
      ink,
      line,
      rank,
    } = player.cellLook(ctx.palette, cell.state, cell.fill);
    if (cell.fill === "hatched") hatch(cell, w, h, ctx, sheet.stroke(cell, line, rank));
    else sheet.area(cell, color, rank, line).box(cell.x - w, cell.x + w, cell.y - h, cell.y + h);
    cellText(cell, ctx, sheet, ink);
  }
};

// Its token in the middle of what is seen of it, its glyph at the left edge; below 34 px columns 10 px, below
// 14 px 9, the floor: a letter fits into 11.
function cellText(cell, ctx, sheet, ink) {
  const size = ctx.columnWidth >= 44 ? 12 : ctx.columnWidth >= 34 ? 11 : ctx.columnWidth >= 14 ? 10 : 9,
    tall = cell.h * ctx.unitOf(cell);
  // Soft words need a pale ground.
  const color = cell.fill === "amount" && cell.weight >= 0.3 ? ctx.palette.surface.text : ink;
  const y = ctx.py(cell.y, cell),
    shift = cell.glyph ? 13 : 0,
    font = Math.min(size, Math.floor(tall - 3));
  const left = ctx.px(Math.max(cell.x - cell.w / 2, ctx.view.range[0])),
    right = ctx.px(Math.min(cell.x + cell.w / 2, ctx.view.range[1]));
  if (cell.glyph && (tall >= 11 || cell.sliver)) {
    const x = ctx.px(cell.x - cell.w / 2) + 8,
      look = { size: cell.sliver ? SLIVER_GLYPH : 11, bare: cell.sliver };
    sheet.write(cell, { x, y, text: cell.glyph, color, ...look });
  }
  const text = cell.text && font >= 9 ? player.fit(cell.text, right - left - 5 - shift, font) : "";
  if (text)
    sheet.write(cell, {
      x: (left + right + shift) / 2,
      y,
      text,
      color,
      size: font,
      bare: true,
      face: "mono",
    });
}

// ---- guides: dotted verticals over the whole panel; their words are labels --------------------------------
player.drawers.guide = function (marks, ctx, sheet) {
  const before = new Map(),
    look = { color: ctx.palette.surface.text, width: 1.2, dash: "2 3" };
  for (const guide of marks) {
    const panel = ctx.view.panelOf(guide),
      { x } = guide,
      last = before.get(panel) ?? -Infinity;
    if (x < ctx.view.range[0] || (x >= last && (x - last) * ctx.columnWidth < GUIDES_APART)) continue;
    before.set(panel, x);
    sheet.stroke(guide, look).polyline([
      [x, panel.y0],
      [x, panel.y1],
    ]);
  }
};

// ---- rows: a thin rule below each -------------------------------------------------------------------------
player.drawers.row = function (marks, ctx, sheet) {
  const look = { color: ctx.palette.surface.grid, width: 1 };
  for (const row of marks)
    if (row.rule !== false) sheet.stroke(row, look).polyline(ctx.view.range.map((x) => [x, row.y1]));
};
