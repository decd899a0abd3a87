// Where lanes part: the token of a lane at which its text first differs from another lane's, marked ≠ in its
// chips and its picture, in ink; the words are added to what a hover says.

// The mark that gets the sign is the first of these that the node has.
const KINDS = ["node", "cell", "symbol"];

// Draws the sign over a scene that has just been drawn.
player.drawParting = function (scene) {
  if (!scene.parting) return;
  const { node } = scene.parting,
    view = scene.view,
    here = scene.drawn.filter((mark) => mark.node === node && mark.drawn !== false);
  const band = scene.drawn.find((mark) => mark.parts === node),
    kind = KINDS.find((name) => here.some((mark) => mark.kind === name));
  const mark = band || here.filter((other) => other.kind === kind).pop(),
    panel = mark && view.panelOf(mark);
  if (!mark) return;
  const [x0, y0, x1, y1] = band
    ? [view.px(band.x0), view.py(band.y0, band), view.px(band.x1), view.py(band.y1, band)]
    : player.boxOf(mark, view);
  if (x1 < view.left || x0 > view.size.width || y1 < panel.topPx || y0 > panel.topPx + panel.heightPx) return;
  const layer = player.svg("svg", scene.extras, { class: "dp-parting" }),
    pad = kind === "node" ? 4 : 1;
  player.svg("rect", layer, {
    x: x0 - pad,
    y: y0 - pad,
    width: x1 - x0 + 2 * pad,
    height: y1 - y0 + 2 * pad,
    rx: 3,
  });
  // In a row: where nothing is written.
  const at = band ? { x: x1 - 4, y: (y0 + y1) / 2 + 5 } : { x: x0 - pad - 2, y: y1 + pad + 3 };
  player.svg("text", layer, { ...at, "text-anchor": "end" }).textContent = "≠";
};

// Dresses a chip, or undoes it; `prose`: a word of a text, where the sign is the style sheet's.
player.dressParting = function (element, mark, parting, prose) {
  const here = Boolean(parting && mark.node === parting.node);
  element.classList.toggle("dp-parted", here);
  if (here) {
    element.title = parting.words;
    element.setAttribute("aria-label", element.getAttribute("aria-label") + ", " + parting.words);
    if (!prose) element.append(h("span", { class: "dp-parted-mark", "aria-hidden": "true" }, "≠"));
  }
};
