// The folded past of a tree: what lies left of the window as one straight spine of a few pixels per token.
// What died there hangs below as a tick as long as it lived; limbs that live on leave the spine where they
// parted. Plain SVG in the gutter.
const WIDEST = 120,
  NARROWEST = 36,
  SHARE = 0.12; // pixels for the whole fold on a wide screen and a phone; of the width
const PER_TOKEN = 6; // pixels a token takes at most
const LONGEST = 9; // tokens a hanging tick shows at most

// How wide the fold is when `columns` columns lie left of the window.
player.foldWidth = (columns, width, narrow) =>
  Math.round(Math.min(narrow ? NARROWEST : WIDEST, SHARE * width, PER_TOKEN * columns) + 12);

// Every node left of the window belongs to the spine or to the limb that left it: {from, lived, enters:
// [marks]}.
function limbsOf(scene, lo, step) {
  const limbOf = new Map(),
    limbs = [];
  let entry = null; // the last node of the spine, in the window's first column if it reaches that
  for (const node of scene.history.ofKind("node", step)) {
    const { id, x, parent, state } = node;
    if (x > lo) continue;
    if (state === "chosen" || state === "prompt") {
      if (!entry || x >= entry.x) entry = node;
      continue;
    }
    let limb = limbOf.get(parent);
    if (!limb) limbs.push((limb = { from: x - 1, lived: 0, enters: [] }));
    limbOf.set(id, limb);
    if (x < lo) limb.lived = Math.max(limb.lived, x - limb.from);
    else if (state === "live") limb.enters.push(node);
  }
  return { entry, limbs };
}

// One stroke for each pixel of the spine that limbs hang from, as long as the longest of them.
function strokes(limbs, x, y, unit) {
  const longest = new Map();
  for (const limb of limbs) {
    const at = Math.round(x(limb.from));
    if (limb.lived) longest.set(at, Math.max(longest.get(at) || 0, Math.min(LONGEST, limb.lived)));
  }
  return [...longest].map(([at, lived]) => `M${at} ${y + 6}v${3 + lived * unit}`).join("");
}

player.drawFold = function (layer, scene, ctx) {
  const view = ctx.view,
    fold = view.fold;
  const { surface, state } = ctx.palette,
    first = scene.head.first ?? 0;
  if (!fold || view.lo <= first) return; // lanes with one window may begin at different columns
  const x = (column) => 8 + ((column - first) / (view.lo - first)) * (fold.width - 12);
  const edge = view.left,
    panel = Object.values(view.panels)[0],
    bottom = panel.topPx + panel.heightPx;
  const svg = player.svg("svg", layer, { width: edge, height: view.size.height });
  player.svg("rect", svg, { x: 0, y: 0, width: edge - 4, height: bottom, fill: surface.panel });
  const { entry, limbs } = limbsOf(scene, view.lo, ctx.step);
  if (!entry) return;
  const above = (node) => (node.parent ? scene.history.byId.get(node.parent)?.base.y : undefined) ?? node.y;
  // Where its edge crosses into the window.
  const enters = (node) => view.py(scene.head.turn ? above(node) : (above(node) + node.y) / 2, node);
  const y = view.py(above(entry), entry);
  const dead = strokes(limbs, x, y, (bottom - y - 12) / 24);
  let alive = "";
  for (const limb of limbs) {
    for (const node of limb.enters) {
      const start = Math.min(x(limb.from), edge - 6);
      alive += "M" + start + " " + y + player.curve([start, y], [edge, enters(node)]);
    }
  }
  player.svg("path", svg, {
    d: dead,
    stroke: state.pruned.color,
    "stroke-width": 1.2,
    opacity: 0.7,
    fill: "none",
  });
  player.svg("path", svg, { d: alive, stroke: state.live.color, "stroke-width": 1.4, fill: "none" });
  const bend = player.curve([edge - 12, y], [edge, enters(entry)]);
  player.svg("path", svg, {
    d: `M${x(first)} ${y}H${edge - 12}${bend}`,
    stroke: state.chosen.color,
    "stroke-width": 4.5,
    fill: "none",
  });
  const write = (text, at, down, anchor) => {
    const word = player.svg("text", svg, {
      x: at,
      y: down,
      "font-size": 11,
      "text-anchor": anchor,
      fill: surface.soft,
    });
    word.textContent = text;
  };
  const last = Math.ceil(view.lo) - 1,
    span = `${Math.max(1, first)}–${last}`;
  write(view.narrow || fold.width < 90 ? span : "folded: " + span, 6, 13, "start");
  write(String(first), x(first), view.size.height - view.bottom + 13, "middle");
};
