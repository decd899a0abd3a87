// Which part of a scene is shown: whole columns at a least width, panels stacked, rows scrolled from row to
// row. Pure geometry: given head, history, step, size and what the user has panned, it returns where
// everything lies. No DOM.
const WIDEST = 66, // pixels a column takes at most,
  FEW = 20; // but for those of the first so many on a screen with more room than for these
const TALLEST = 80; // pixels a row takes at most
const TOP = 4,
  BOTTOM = 18,
  TITLE = 14,
  GAP = 8; // pixels above, for ticks, for the title of x, between panels
const LOW = 260; // pixels of a picture's height below which headings are short
const WIDE = 900; // from here on columns are wider than they must be
const TIGHTEST = 38; // pixels a column is narrowed to, so that a whole run fits
const SLIM = 34; // pixels of a column by depth, at least
const NARROW = 560; // below this a picture is drawn for a phone
const FOLD_SHARE = 0.6,
  SLIVERS = 0.4; // share of a panel's height kept for folded rows, and of that for those without text
const MIN_FREE = 40; // pixels for the panels that share what the others leave, before those get lower
const LOWEST = 8,
  HIGHEST = 14,
  READABLE = 25; // pixels of a folded row: without text, and with it

const positional = (head) => (!head.axis && head.axis !== null) || head.axis === "token position";

// Which pictures have a window together: those over token positions whose columns are no wider than words,
// and those over time.
player.sharing = (head) =>
  head.span ? "time" : positional(head) && (head.column || 0) <= WIDEST ? "positions" : null;

// Time is shown from zero to the end of the longest lane; while it runs, to the next round number. `unit`: of
// a column.
function timeOf(wishes, inner, hand) {
  const own = wishes[0],
    last = Math.max(...wishes.map((wish) => wish.farthest * wish.unit)) || 1;
  const round = 10 ** Math.floor(Math.log10(last)),
    ended = wishes.every((wish) => wish.ended);
  const end = ended
    ? last
    : round * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((part) => last <= part * round + 1e-9);
  const shown = hand.follow ? end / own.unit : hand.columns || end / own.unit;
  return { lo: hand.follow ? 0 : (hand.lo ?? 0), shown, width: inner / shown };
}

// What a picture asks of its columns: where the run begins, where it is at this step, where it ends (as far
// as it is known), how wide a column should and must be, the gutters, and the column of the mark that is held
// in sight.
player.wish = function (scene, step, width) {
  const { head, history, ended } = scene,
    narrow = width < NARROW,
    first = head.first ?? 0;
  const gutter = (side) => (narrow ? (head[side + "_narrow"] ?? head[side] ?? 8) : (head[side] ?? 8));
  const column = (narrow && head.column_narrow) || head.column || 44,
    tight = (!narrow && head.tight) || (narrow || column > 44 ? column : Math.min(column, TIGHTEST));
  const last =
    head.columns === "panel"
      ? Math.max(...history.ofKind("panel", step).map((panel) => panel.columns ?? first))
      : ended || head.columns === "seen"
        ? history.farthest()
        : head.columns
          ? first + head.columns - 1
          : Infinity;
  return {
    first,
    last,
    ended,
    front: history.front(step).x,
    held: scene.held(step),
    home: scene.home(step)?.y ?? null,
    tight,
    tightest: (narrow && head.tightest_narrow) || (head.tightest ?? tight),
    narrowest: (!narrow && width >= WIDE && head.wide) || column,
    widest: head.widest || WIDEST,
    reached: head.steady ? history.reached(step) : -Infinity,
    span: head.span,
    farthest: history.farthest(),
    unit: history.ofKind("panel", step).find((panel) => panel.x_unit)?.x_unit ?? 1,
    left: gutter("left"),
    right: gutter("right"),
    folded: head.fold ? gutter("left") : null,
  };
};

// One wish of several that share their window.
function agreed(wishes) {
  const max = (name) => Math.max(...wishes.map((wish) => wish[name])),
    min = (name) => Math.min(...wishes.map((wish) => wish[name]));
  return {
    first: min("first"),
    last: max("last"),
    reached: max("reached"),
    ended: wishes.every((wish) => wish.ended),
    front: max("front"),
    held: wishes.map((wish) => wish.held).find((x) => x !== null) ?? null,
    tight: max("tight"),
    tightest: max("tightest"),
    narrowest: max("narrowest"),
    widest: min("widest"),
    left: max("left"),
    right: max("right"),
    // The gutter left of a fold, where there is one.
    folded: wishes.map((wish) => wish.folded).find((left) => left !== null) ?? null,
  };
}

// So many columns or more: a third more as often as it takes, and all that there can be where the next third
// would be less.
function widened(fit, wanted, most) {
  let columns = fit;
  while (columns < wanted) columns = 16 * columns > 9 * most ? most : Math.ceil((4 * columns) / 3);
  return Math.max(fit, columns);
}

// Columns: as many whole ones as fit, a little narrower where the whole run then fits. The front stays in the
// last third: when it would leave the window, the window moves by a third of a screen, so that a scene stands
// still between moves and a step has one picture, whatever came before. What lies beyond the end of the run
// is not kept free: there the front is at the edge. A steady window, whose front comes and goes, widens by a
// third when it must and stays so wide. On a large screen the first columns fill the picture, so that a run
// that has just begun does not stand in its corner with its words cut.
function columnsOf(
  { first, last, reached: farthest, tight, tightest, narrowest, widest, held },
  front,
  inner,
  hand,
) {
  const whole = Math.ceil(Math.max(last, front)) - first + 1,
    most = Math.floor(inner / tightest),
    steady = farthest - first + 1;
  let fit = Math.max(1, Math.floor(inner / narrowest));
  if (widest === WIDEST && inner > FEW * WIDEST && Math.max(front, farthest) - first < FEW) fit = FEW;
  else if (whole > fit && whole <= Math.floor(inner / tight)) fit = whole;
  else if (steady > fit) fit = widened(fit, Math.min(steady, most), most);
  else if (front - first + 1 > fit && front - first + 1 <= most) fit = front - first + 1;
  let shown = Math.max(1, Math.min(fit, Math.max(whole, Math.ceil(inner / widest))));
  let lo = first;
  const reached = front - first + 1;
  if (reached > shown) {
    const third = Math.max(1, Math.round(shown / 3));
    lo = first + Math.ceil((reached - shown) / third) * third;
    lo = Math.max(first, Math.min(lo, first + whole - shown));
  }
  if (held !== null && (held < lo || held > lo + shown - 1))
    lo = Math.max(first, Math.round(held) - Math.floor(shown / 3));
  if (!hand.follow) {
    shown = hand.columns || shown;
    lo = hand.lo ?? lo;
  }
  return { lo, shown, width: inner / shown };
}

// The columns that a picture of this width opens, the gutters beside them and the fold: one window for all
// `wishes` (the first is the picture's own), so that a column stands for one position in all of them, unless
// that would leave its own front out.
player.windowOf = function (wishes, width, hand) {
  const wish = agreed(wishes),
    narrow = width < NARROW,
    { right } = wish;
  const open = (left) => {
    const inner = Math.max(40, width - left - right);
    if (wishes[0].span) return { ...timeOf(wishes, inner, hand), left, right, fold: 0 };
    const shared = columnsOf(wish, wish.front, inner, hand);
    const own =
      shared.lo <= wishes[0].front || wish.held !== null
        ? shared
        : columnsOf(wish, wishes[0].front, inner, hand);
    return { ...own, left, right, fold: 0 };
  };
  const columns = open(wish.left);
  if (wish.folded === null || columns.lo <= wish.first) return columns;
  const fold = player.foldWidth(columns.lo - wish.first, width, narrow);
  return { ...open(Math.max(wish.left, wish.folded + fold)), fold };
};

// The top of a scrolled panel: the first row from which everything down to the front is seen, in steps of a
// third.
function topOf(panel, visible, front, rows, hand) {
  if (!hand.follow && hand.top !== undefined && hand.top !== null) return Math.max(panel.y0, hand.top);
  const want = front.y + 0.15 - visible;
  if (want <= panel.y0) return panel.y0;
  const tops = rows.map((r) => r.y0);
  const stride = Math.max(1, Math.floor(tops.filter((y) => y >= want && y < front.y).length / 3));
  const whole = tops.find((y, i) => i % stride === 0 && y >= want);
  // Else the topmost row is cut, not hidden.
  return whole !== undefined && whole - want < 0.25 * visible ? whole : want;
}

// A fixed number of rows: room for labels above the first and half a row below the last; few rows are
// centred, not stretched. Rows that would be less than `min_row` pixels high keep that height, and the panel
// scrolls.
function fixedRows(panel, tall, tallest, front, hand) {
  const rows = panel.rows,
    above = rows > 1 ? 34 : 24,
    below = 8,
    span = rows - 0.5;
  const unit = Math.min(tallest, (tall - above - below) / span),
    spare = (tall - above - below) / unit - span;
  if (unit >= (panel.min_row || 0))
    return { y0: -above / unit - spare / 2, y1: rows - 0.5 + below / unit + spare / 2 };
  const first = -above / panel.min_row,
    visible = tall / panel.min_row,
    y0 = topOf({ y0: first }, visible, front, [], hand);
  return { y0, y1: y0 + visible, grow: true, first, last: rows - visible + 0.5 };
}

// The top of the row at y: the next one while following (the newest row is seen whole, or at least from its
// top).
function rowTop(y, rows, next) {
  const tops = rows.map((row) => row.y0),
    below = next ? tops.find((top) => top >= y - 0.01) : undefined;
  return below ?? tops.filter((top) => next || top <= y + 0.01).pop() ?? y;
}

// Heights of so many folded rows, oldest first, in so many pixels: the newest as high as their words, above
// them slivers.
function foldedHeights(count, room) {
  if (count * READABLE <= room) return Array(count).fill(READABLE);
  const readable = Math.max(
    0,
    Math.floor((room - Math.min(count * LOWEST, Math.max(SLIVERS * room, LOWEST))) / READABLE),
  );
  const slivers = Math.min(count - readable, Math.floor((room - readable * READABLE) / LOWEST));
  const high = Math.min(HIGHEST, (room - readable * READABLE) / Math.max(1, slivers));
  return [...Array(slivers).fill(high), ...Array(readable).fill(READABLE)];
}

// Pixels of a row in a panel that scrolls: as many as fill it, between those that the head allows.
function rowHeight(head, tall, rows) {
  const usual = (head.row || 36) * (tall < 150 ? 0.9 : 1),
    fits = tall / Math.max(1, rows);
  return fits < (head.row_min || usual) ? usual : Math.min(fits, Math.max(usual, head.row_tall || 0));
}

// The first row of those in the window from which all down to the front are open, while those above it fold
// to what can be read; null where they do not fit.
function unfolded(rows, tall, lo, front, unit) {
  const seen = rows.filter((row) => (row.last ?? Infinity) >= lo && row.y0 <= front.y);
  const folded = seen.findIndex((row, i) => i * READABLE + (front.y + 0.3 - row.y0) * unit <= tall);
  return folded < 0 ? null : { y0: seen[folded].y0, folded };
}

// What a panel that scrolls shows: rows from `y0` on at their full height, and above them the folded ones.
// "stairs": low steps, as far back as the window reaches; "settled": one row of the tokens that were settled
// there.
function scroll(head, given, tall, lo, front, rows, hand) {
  // None above it is in the window.
  const first = hand.follow ? rows.find((row) => (row.last ?? Infinity) >= lo && row.y0 <= front.y) : null;
  const panel = first ? { ...given, y0: Math.max(given.y0, first.y0) } : given;
  const unit = rowHeight(head, tall, Math.max(front.y + 0.3, panel.lowest ?? front.y) - panel.y0);
  let y0 = topOf(panel, tall / unit, front, rows, hand);
  const open = hand.follow && head.fold_rows === "stairs" ? unfolded(rows, tall, lo, front, unit) : null;
  if (hand.follow && !open && front.home !== null && front.home < y0 + tall / unit / 3) {
    // The run is over, all of it does not fit with words, and the window is at what it is about.
    y0 = Math.max(panel.y0, rowTop(front.home - tall / unit / 3, rows, false));
    return { y0, y1: y0 + tall / unit };
  }
  const whole = { y0, y1: y0 + tall / unit };
  if (!head.fold_rows || y0 <= panel.y0) return whole;
  if (open && !open.folded) return { y0: open.y0, y1: open.y0 + tall / unit };
  const settled = head.fold_rows === "settled",
    newest = rows.length ? rows[rows.length - 1].y0 : y0;
  const left = tall - (front.y + 0.3 - newest) * unit; // what the newest row leaves
  const room = settled ? unit : Math.max(3 * LOWEST, Math.min(FOLD_SHARE * tall, left));
  y0 = open?.y0 ?? rowTop(topOf(panel, (tall - room) / unit, front, rows, hand), rows, hand.follow);
  const past = rows.filter((row) => row.y0 < y0 - 0.3 && (row.folds_to ?? Infinity) >= lo);
  if (!past.length) return whole;
  const roomAbove = Math.max(room, tall - Math.max(1, front.y + 0.3 - y0) * unit); // what the open rows leave
  const heights = settled ? past.map(() => unit) : foldedHeights(past.length, roomAbove);
  const folded = past.slice(past.length - heights.length);
  let px = 0;
  const shown = folded.map((row, i) => ({ row, tall: heights[i], top: (px += heights[i]) - heights[i] }));
  if (settled) px = unit;
  const fold = { kind: head.fold_rows, open: y0, from: folded[0].y0, rows: shown, px };
  return { y0: y0 - px / unit, y1: y0 + (tall - px) / unit, fold };
}

player.isReadable = (folded) => folded.tall >= READABLE;

// A mark of a folded row as it is drawn in the fold, null if it is not; others stay as they are. A row as
// high as its words keeps them; in a sliver the marks of the states stay, so that they are told apart without
// colour.
player.folded = function (mark, panel) {
  const fold = panel.fold;
  if (!fold || mark.kind === "panel") return mark;
  const y =
    mark.kind === "row"
      ? mark.y0 + 0.01
      : (mark.y ?? mark.y1 ?? (mark.points ? mark.points[0][1] : fold.open));
  if (y >= fold.open)
    return mark.kind === "hook" && mark.y0 < fold.open ? { ...mark, y0: fold.open - 0.5 } : mark;
  if (mark.kind !== "cell" || y < fold.from) return null;
  // The path; below it what was tried.
  const given = mark.fill === "filled" || (mark.state === "tolerated" && mark.fill === "tint");
  if (fold.kind === "settled") {
    return given && mark.state === "accepted" ? { ...mark, y: fold.open - 0.5, fill: "tint" } : null;
  }
  if (!given && mark.state !== "rejected" && mark.state !== "live") return null;
  const own = fold.rows.findLast((folded) => folded.row.y0 <= y),
    at = fold.open - (fold.px - own.top) / panel.unit;
  const readable = player.isReadable(own),
    [down, share] = given ? [readable ? 0.4 : 0.38, 0.7] : [0.87, readable ? 0.16 : 0.2];
  const place = {
    y: at + (down * own.tall) / panel.unit,
    h: (share * own.tall) / panel.unit,
    tall: share * own.tall,
  };
  if (!given) return { ...mark, ...place, fill: "filled", glyph: "", text: "" };
  return readable ? { ...mark, ...place } : { ...mark, ...place, fill: "filled", text: "", sliver: true };
};

// The row of what a shared window holds in sight, where the picture's own front lies beyond the window.
function heldRow(history, step, front, { lo, shown }, wishes) {
  const held = wishes.map((wish) => wish.held).find((x) => x !== null) ?? null;
  return held === null || front.x < lo + shown ? null : (history.placeIn(Math.round(held), step)?.y ?? null);
}

// A panel with a height of its own for phones: the scale stays, there is more or less of it.
function onPhone(panel) {
  const share = panel.px_narrow / panel.px;
  return share ? { ...panel, px: panel.px_narrow, y1: panel.y0 + (panel.y1 - panel.y0) * share } : panel;
}

// Stacks panels top to bottom; returns {id: {y0, y1, index, topPx, heightPx, unit, ...panel}}.
function stack(head, panels, lo, front, rows, height, bottom, hand) {
  const room = Math.max(40, height - TOP - bottom);
  const gap = head.gap ?? GAP,
    gaps = gap * (panels.length - 1);
  const fixed = panels.reduce((sum, p) => sum + (p.px || 0), 0);
  const shares = panels.reduce((sum, p) => sum + (p.px ? 0 : p.share || 1), 0) || 1;
  const firm = (panel) => panel.px && !panel.heading,
    firmly = panels.filter(firm).reduce((sum, p) => sum + p.px, 0);
  const lacks = fixed + gaps + (panels.some((p) => !p.px) ? MIN_FREE : 0) - room,
    squeeze = firmly ? Math.max(0.5, 1 - Math.max(0, lacks) / firmly) : 1;
  const free = Math.max(20, room - gaps - fixed + (1 - squeeze) * firmly);
  const placed = {};
  let y = 0;
  panels.forEach((panel, index) => {
    const tall = panel.px ? panel.px * (firm(panel) ? squeeze : 1) : (free * (panel.share || 1)) / shares;
    const own = panel.grow
      ? scroll(head, panel, tall, lo, front, rows, hand)
      : panel.rows
        ? fixedRows(panel, tall, head.row_tall || TALLEST, front, hand)
        : {};
    const { y0, y1 } = { ...panel, ...own };
    placed[panel.id || ""] = {
      ...panel,
      fold: null,
      ...own,
      index,
      topPx: TOP + y,
      heightPx: tall,
      unit: tall / Math.abs(y1 - y0),
    };
    y += tall + gap;
  });
  return placed;
}

// The panel of a view whose rows scroll, if there is one.
player.scrolling = (view) => Object.values(view.panels).find((panel) => panel.grow);

// By depth all rounds begin at the left, so a column gets narrower rather than that the deepest tokens leave
// the picture.
const depthColumn = (head, inner) => Math.min(head.column, Math.max(SLIM, Math.floor(inner / head.by_depth)));

// `wishes`: what this picture and those that share its window ask of the columns, its own first. On a phone
// rounds are drawn by draft depth instead of token position.
player.viewport = function (head, history, step, size, hand, wishes) {
  const narrow = size.width < NARROW,
    byDepth = Boolean(head.by_depth && narrow),
    first = head.first ?? 0;
  const front = { ...history.front(step), ...(byDepth ? { x: first } : {}) };
  let asked = wishes;
  if (byDepth) {
    const column = depthColumn(head, size.width - wishes[0].left - wishes[0].right),
      last = first + head.by_depth - 1;
    asked = [
      { ...wishes[0], front: first, last, held: null, tight: column, tightest: column, narrowest: column },
    ];
  }
  const columns = player.windowOf(asked, size.width, hand),
    { left, right } = columns;
  front.home = wishes[0].home ?? heldRow(history, step, front, columns, wishes);
  const fold = head.fold && columns.fold ? { width: left - (wishes[0].folded ?? 0) } : null;
  const axis = head.axis !== null;
  const bottom = axis ? BOTTOM + (size.height > 220 ? TITLE : 0) : 4;
  let panels = history.ofKind("panel", step);
  if (!panels.length) {
    const rows = head.rows;
    panels = [rows ? { id: "", y0: 0, y1: rows, rows } : { id: "", y0: -0.5, y1: 1, grow: true }];
  }
  panels = panels.filter(
    ({ from_px, below_px }) => size.height >= (from_px || 0) && size.height < (below_px ?? Infinity),
  );
  panels = panels.map((panel) =>
    panel.px_low && size.height < LOW ? { ...panel, px: panel.px_low } : panel,
  );
  if (byDepth) panels = panels.filter((panel) => panel.grow || panel.heading); // others have positions
  const rows = history.ofKind("row", step),
    lo = columns.lo - 0.5;
  const over = head.clip ? 0 : right,
    from = head.span ? columns.lo : lo; // clip: nothing but names of rows in the right gutter
  const range = [from, from + columns.shown + over / columns.width];
  if (narrow) panels = panels.map(onPhone);
  if (head.row_tall || head.row_min)
    panels = panels.map((panel) =>
      panel.grow ? { ...panel, lowest: history.lowest(panel.id, step) } : panel,
    );
  const placed = stack(head, panels, byDepth ? -Infinity : lo, front, rows, size.height, bottom, hand);
  const panelOf = (mark) => placed[mark.panel ?? ""] || Object.values(placed)[0];
  return {
    span: head.span,
    titled: axis && bottom > BOTTOM,
    narrow,
    byDepth,
    fold,
    left,
    right,
    front,
    axis,
    bottom,
    size,
    range,
    lo: columns.lo,
    columns: columns.shown,
    columnWidth: columns.width,
    edge: size.width - right + over, // marks end there
    unit: wishes[0].unit, // what a column stands for at the ticks of x
    panels: placed,
    panelOf,
    px: (x) => left + (x - range[0]) * columns.width, // data to pixels of the frame
    py: (y, mark) => {
      const p = panelOf(mark);
      return p.topPx + ((y - p.y0) / (p.y1 - p.y0)) * p.heightPx;
    },
    unitOf: (mark) => panelOf(mark).unit, // pixels per unit of y
  };
};

// Round numbers of time, eight at most.
function timeTicks(view) {
  const { unit } = view,
    span = view.columns * unit;
  const ten = 10 ** Math.floor(Math.log10(span / 8)),
    every = ten * [1, 2, 5, 10].find((part) => part * ten * 8 >= span - 1e-9);
  const first = Math.ceil((view.lo * unit) / every - 1e-9),
    count = Math.floor(((view.lo + view.columns) * unit) / every + 1e-9) - first;
  return Array.from({ length: count + 1 }, (_, i) => ((first + i) * every) / unit);
}

// Ticks of x: every fifth column, or each one where few are shown.
player.xTicks = function (view) {
  if (view.span) return timeTicks(view);
  const every = view.columns <= 12 ? 1 : view.columns <= 60 ? 5 : view.columns <= 150 ? 10 : 50;
  const ticks = [];
  for (let x = Math.ceil(view.range[0] / every) * every; x <= view.range[1]; x += every)
    if (x >= 0) ticks.push(x);
  return ticks;
};
