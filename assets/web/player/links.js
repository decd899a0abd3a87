// Links between marks: the arcs over a line of tokens, the hooks below a grid. Where a link runs, how far a
// point is from it, and which links lead to a mark. Its drawers are in charts.js; `to` of a link is the node
// or the cell that it leads to.
const RUNS = {
  // Half a sine from x0 to x1, `height` above y.
  arc(mark) {
    const count = Math.min(32, 8 + 2 * Math.abs(mark.x1 - mark.x0));
    return Array.from({ length: count + 1 }, (_, i) => [
      mark.x0 + ((mark.x1 - mark.x0) * i) / count,
      mark.y + mark.height * Math.sin((Math.PI * i) / count),
    ]);
  },
  // Under the cells: down from the one waited for, along below the later row, up to the one that waited.
  hook(mark) {
    const low = mark.y1 + 0.6 + 0.06 * (Math.abs(Math.round(mark.x1)) % 4),
      dx = 0.1;
    return [
      [mark.x0, mark.y0 + 0.46],
      [mark.x0, low - 0.08],
      [mark.x0 + dx, low],
      [mark.x1 - dx, low],
      [mark.x1, low - 0.08],
      [mark.x1, mark.y1 + 0.46],
    ];
  },
};

player.isLink = (mark) => mark.kind in RUNS;

// The points of a link, in data units.
player.linkPoints = (mark) => RUNS[mark.kind](mark);

// The same in pixels of the frame.
player.linkPixels = (mark, view) => player.linkPoints(mark).map(([x, y]) => [view.px(x), view.py(y, mark)]);

// Pixels from (x, y) to a link.
player.linkDistance = function (mark, view, x, y) {
  const points = player.linkPixels(mark, view);
  let nearest = Infinity;
  for (let i = 1; i < points.length; i++) {
    const [ax, ay] = points[i - 1],
      dx = points[i][0] - ax,
      dy = points[i][1] - ay;
    const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    nearest = Math.min(nearest, Math.hypot(x - ax - along * dx, y - ay - along * dy));
  }
  return nearest;
};

// The box of the middle of what is seen of a link: there its card hangs.
player.linkBox = function (mark, view) {
  const seen = player.linkPixels(mark, view).filter(([x]) => x >= view.left && x <= view.size.width);
  const [x, y] = seen[seen.length >> 1] || [view.left, view.py(mark.y ?? mark.y1, mark)];
  return [x - 5, y - 5, x + 5, y + 5];
};

const same = (a, b) =>
  a.node !== undefined ? a.node === b.node : Boolean(a.cell && b.cell) && String(a.cell) === String(b.cell);

// The links that lead to a mark, or to where a link leads, one after the other, then the mark itself; null
// without links.
player.nextLink = function (drawn, from) {
  const end = from.to || from,
    links = drawn.filter((mark) => mark.to && mark.hover && same(mark.to, end));
  const ring = links.length
    ? [...links, ...drawn.filter((mark) => !mark.to && mark.hover && same(mark, end)).slice(0, 1)]
    : [];
  return ring[(ring.findIndex((mark) => mark.id === from.id) + 1) % ring.length] || null;
};
