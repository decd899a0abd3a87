// The label drawer: every free text of a picture, placed greedily so that no two overlap. Spine first, then
// by priority and probability; what does not fit is dropped and its mark stays. Widths are counted, never
// measured.
const APART = 4; // pixels free beside a text: "+5★" and "+3★" do not run together
const LINE = 15; // pixels of a line of a list
const STACKED = 0.95; // columns that a label takes at most in one line, where it may be stacked
const MAX_LABELS = 150; // text is three times as dear as marks
const TALL = 1.15,
  ROOMY = 56; // of its size, a line of text; pixels of rows that have room for two lines above their marks

// A wish: text with its anchor in pixels; `align` says which point of the text the anchor is.
function wish(text, x, y, style) {
  const width = player.textWidth(text, style.size, style.face),
    height = style.size * TALL;
  const left = style.align === "left" ? x : style.align === "right" ? x - width : x - width / 2;
  return { text, x, y, ...style, box: [left - APART, y - height / 2, left + width + APART, y + height / 2] };
}

// The whole word where it hits no other, else above its neighbours, also a little aside, else cut to its
// column.
function wordWish(text, cut, x, y, style) {
  const above = [0, 6, 12].map((aside) => wish(text, x + aside, y - style.size * TALL - 0.5, style));
  return { ...wish(text, x, y, style), others: [...above, wish(cut, x, y, style)] };
}

function nodeWishes(node, ctx, wishes) {
  const { state, surface } = ctx.palette,
    x = ctx.px(node.x),
    y = ctx.py(node.y, node);
  const weight = node.weight ?? 0,
    lost = ["pruned", "unreached", "prompt"].includes(node.state);
  if (node.text && !node.quiet) {
    const bold = Boolean(node.bold || node.state === "chosen");
    const color = bold
      ? surface.text
      : node.state === "rejected"
        ? state.rejected.color
        : lost
          ? surface.soft
          : surface.text;
    const size = bold ? 13 : 12;
    // Within its column: neighbours on a limb never touch.
    const text = player.fit(node.text, ctx.columnWidth - 8, size);
    const priority =
      node.state === "chosen" || (node.node !== undefined && node.node === ctx.held)
        ? 0
        : (node.priority ?? 5);
    const style = { size, bold, color, face: "mono", align: "center", priority, weight, mark: node };
    if (text)
      wishes.push(
        ctx.unitOf(node) < ROOMY ? wish(text, x, y - 14, style) : wordWish(node.text, text, x, y - 14, style),
      );
  }
  if (node.note) {
    const bold = node.state === "chosen" && node.front;
    const style = { size: 11, bold, color: bold ? surface.text : surface.soft, face: "sans", align: "left" };
    const noted = { ...style, priority: node.front ? 1 : (node.note_priority ?? 6), weight, mark: node };
    const both = node.note + "  " + node.note_more,
      room = ctx.head.turn ? ctx.head.turn * ctx.columnWidth - 4 : ctx.narrow ? 0 : Infinity;
    // Not where edges turn.
    const words = node.note_more && player.textWidth(both, 11, "sans") <= room ? both : node.note;
    // Below the way that goes straight on, and clear of its node.
    const under = ctx.head.notes === "under" ? 12 : 0;
    wishes.push(
      wish(words, x + (node.front || node.state === "bonus" ? 12 : 9 - under / 2), y + under, noted),
    );
  }
}

function labelWish(label, ctx, wishes) {
  const face = label.face || "sans",
    size = label.size || (face === "mono" ? 12 : 11);
  const fitted = (words) =>
      label.w ? player.fit(words, label.w * ctx.columnWidth - 2 * APART - 1, size) : words,
    text = label.stack ? label.text : fitted(label.text);
  if (!text || label.side) return;
  const color = player.roleColour(label.role || "soft", ctx.palette),
    align = label.align || "center";
  const style = {
    size,
    face,
    align,
    color,
    bold: Boolean(label.bold),
    priority: label.priority ?? 4,
    weight: label.weight ?? 0,
  };
  const half = player.textWidth(text, size, face) / 2,
    edge = ctx.view.size.width;
  let x = ctx.px(label.x) + (label.dx || 0);
  if (align === "center" && x > ctx.view.left && x < edge)
    x = Math.max(ctx.view.left + half, Math.min(x, edge - half)); // never cut
  const y = ctx.py(label.y, label) + (label.dy || 0),
    lines =
      label.stack && (ctx.narrow || 2 * half > STACKED * (label.w || 1) * ctx.columnWidth)
        ? text.split("  ").map(fitted)
        : [text];
  // Beside a mark they are as high above as below.
  const first = label.dy === undefined ? y - 6.5 * (lines.length - 1) : y;
  const placed = { ...style, mark: label },
    [top, ...rest] = lines.map((line, i) => wish(line, x, first + 13 * i, placed));
  wishes.push(label.rises ? wordWish(label.text, text, x, y, placed) : { ...top, rest });
}

// Words at the top of a mark's panel, `dx` pixels right of the mark.
function atTop(words, ctx, mark, dx, priority) {
  const panel = ctx.view.panelOf(mark),
    look = { size: 11, face: "sans", align: "left", color: ctx.palette.surface.soft };
  return wish(words, ctx.px(mark.x) + dx, panel.topPx + 7, { ...look, priority, weight: 0, mark });
}

// What the numbers at the front are, above the first of them.
function titleWish(ctx, nodes, wishes) {
  const front = nodes.find((node) => node.front && node.note && node.drawn !== false);
  if (!front || !ctx.head.note_title || ctx.narrow) return;
  wishes.push(atTop(ctx.head.note_title, ctx, front, 11, 9));
}

function guideWish(guide, ctx, wishes) {
  if (!guide.text || guide.x < ctx.view.range[0]) return;
  wishes.push(atTop(guide.text, ctx, guide, 5, 1));
}

const lower = (y) => `translateY(${y - 8}px)`; // a line that moves shifts nothing else

function gutterLine(side, y, width, parts) {
  const written = parts
    .filter(([text]) => text)
    .map(([text, color, bold, face]) =>
      h(
        "span",
        {
          class: face === "mono" ? "dp-mono" : null,
          style: `color:${color};font-weight:${bold ? 700 : 400}`,
        },
        text,
      ),
    );
  return h(
    "div",
    { class: "dp-gutter-" + side, style: `top:0;transform:${lower(y)};width:${width}px` },
    ...written,
  );
}

// Gutters are plain page text beside the plot: names of rows, and labels that belong to a side.
player.drawGutters = function (layer, ctx) {
  const view = ctx.view,
    surface = ctx.palette.surface,
    lines = [];
  const put = (side, y, mark, parts) => {
    const panel = view.panelOf(mark);
    if (y < panel.topPx + 4 || y > panel.topPx + panel.heightPx - 4) return;
    const width = side === "left" ? view.left - 8 : view.right - 6;
    const look = JSON.stringify([side, width, parts]);
    lines.push([
      y + look,
      () => Object.assign(gutterLine(side, y, width, parts), { look }),
      look,
      (line) => (line.style.transform = lower(y)),
    ]);
  };
  const name = (row) => (ctx.narrow ? (row.short ?? row.text) : row.text);
  for (const row of ctx.byKind.row || []) {
    const low = ctx.py(row.y1, row) - 14,
      top = view.panelOf(row).topPx + 8; // the name of a cut row stays in sight
    const y = Math.max(ctx.py(row.label_y ?? (row.y0 + row.y1) / 2, row), Math.min(low, top)),
      words = name(row);
    if (words || row.bold)
      put("left", y, row, [
        [words, surface.soft],
        [row.bold, surface.text, true],
      ]);
    const right = ctx.narrow ? (row.right_short ?? row.right) : row.right;
    if (right || row.right_bold)
      put("right", y, row, [
        [right, surface.text],
        [row.right_bold, surface.text, true],
      ]);
  }
  for (const panel of Object.values(view.panels)) {
    if (!panel.fold) continue;
    const { rows, px, kind } = panel.fold,
      slivers = kind === "stairs" ? rows.filter((one) => !player.isReadable(one)) : rows;
    const own = { panel: panel.id },
      low = slivers.length === rows.length ? px : rows[slivers.length].top;
    if (slivers.length && low >= 12) {
      const first = slivers[0].row.short,
        last = slivers[slivers.length - 1].row.short;
      put("left", panel.topPx + low / 2, own, [[first === last ? first : first + "–" + last, surface.soft]]);
    }
    for (const { row, top, tall } of kind === "stairs" ? rows.slice(slivers.length) : []) {
      put("left", panel.topPx + top + tall * 0.4, own, [
        [name(row), surface.soft],
        [row.bold, surface.text, true],
      ]);
    }
  }
  for (const label of ctx.byKind.label || []) {
    const listed = label.line !== undefined; // a line of a list stays where it is when rows scroll
    if (!label.side || label.drawn === false || (listed && ctx.narrow)) continue;
    const color = player.roleColour(label.role || "soft", ctx.palette);
    const y = listed ? view.panelOf(label).topPx + LINE * (label.line + 0.7) : ctx.py(label.y, label);
    put(label.side, y, label, [[label.text, color, label.bold, label.face]]);
  }
  player.refill(layer, lines);
};

// Greedy placement on a grid of rows of boxes; marks of nodes are obstacles for everything but the spine.
player.place = function (wishes, obstacles) {
  const lanes = new Map(),
    lane = (y) => Math.floor(y / 12);
  const rowsOf = (box) => Array.from({ length: lane(box[3]) - lane(box[1]) + 1 }, (_, i) => lane(box[1]) + i);
  const touch = (one, other) =>
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];
  const hits = (box) => rowsOf(box).some((i) => (lanes.get(i) || []).some((other) => touch(box, other)));
  const add = (box) => rowsOf(box).forEach((i) => (lanes.get(i) || lanes.set(i, []).get(i)).push(box));
  // The spine from left to right.
  const order = [...wishes].sort((a, b) => a.priority - b.priority || (a.priority && b.weight - a.weight));
  const placed = [];
  let seeded = false;
  for (const item of order) {
    if (!seeded && item.priority > 0) {
      obstacles.forEach(add);
      seeded = true;
    }
    if (placed.length >= MAX_LABELS) break;
    // All of its lines or none.
    const ways = [item, ...(item.others || [])].map((way) => [way, ...(item.rest || [])]);
    const lines = ways.find((way) => !way.some((line) => hits(line.box)));
    if (!lines) continue;
    lines.forEach((line) => add(line.box));
    placed.push(...lines);
  }
  return placed;
};

player.drawers.label = function (marks, ctx, sheet) {
  const wishes = [],
    obstacles = [],
    nodes = ctx.byKind.node || [],
    view = ctx.view;
  for (const node of nodes) {
    if (node.drawn === false) continue;
    nodeWishes(node, ctx, wishes);
    const x = ctx.px(node.x),
      y = ctx.py(node.y, node),
      r = node.state === "pruned" && !node.ended ? 2 : 4.5;
    obstacles.push([x - r, y - r, x + r, y + r]);
  }
  for (const label of marks) if (label.drawn !== false) labelWish(label, ctx, wishes);
  for (const guide of ctx.byKind.guide || []) guideWish(guide, ctx, wishes);
  titleWish(ctx, nodes, wishes);
  const seen = wishes.filter(
    (w) =>
      w.box[2] > view.left && w.box[0] < view.size.width && (w.priority === 0 || w.box[0] > view.left - 6),
  );
  const placed = (ctx.placed = player.place(seen, obstacles));
  const anchors = { left: "start", right: "end", center: "middle" };
  for (const { mark, x, y, text, size, face, color, bold, align } of placed) {
    sheet.write(mark, { x, y, text, size, face, color, bold, anchor: anchors[align] });
  }
};
