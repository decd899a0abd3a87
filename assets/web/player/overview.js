// The whole run in a strip under the picture: one small box per place, coloured by state, and a frame around
// the part that is open. The strip is drawn on a canvas, so that it costs a run of thousands of nodes a few
// milliseconds, and not at every step. Enlarged to the size of the picture it is the way to see everything.
// Reads marks, states and a view's `overview`: "rows" (boxes where their marks are), "piled" (the marks of a
// column on top of each other), "amount" (a grey for each step).
const TALLEST = 40,
  LOWEST = 20,
  NARROW = 32,
  SHARE = 0.11; // pixels of the strip, and its part of the scene's height
const PILE = 5; // marks of a column that are piled at most
const MAX_BITS = 8; // entropy with the darkest grey
const AXIS = 18; // pixels for the numbers below, where the strip is the picture
const CALM = 150; // milliseconds between two paintings at least
// The kinds of marks that a strip shows.
const KINDS = { rows: ["band", "cell", "node"], piled: ["cell", "node"], amount: ["step"] };

// All columns of the run in the picture itself, until Follow is pressed.
player.spread = function (scene) {
  const { first, last } = player.wish(scene, scene.step(), scene.size.width);
  scene.hand = { ...scene.hand, follow: false, lo: first, columns: last - first + 1, top: null };
  scene.schedule();
};

player.Overview = class {
  constructor(scene) {
    const { strips: root, strip, canvas, open } = scene;
    Object.assign(this, { scene, root, strip, canvas, open });
    scene.wholeButton.addEventListener("click", () => scene.showWhole(!scene.whole));
    this.attach();
    this.reset();
  }

  reset() {
    Object.assign(this, { painted: "", drawnAt: 0 });
    this.root.hidden = true;
    this.canvas.width = 0; // the run before is not seen under the next one
  }

  // Shows the strip when the run is, or will be, longer than the window; true if the picture's height has
  // changed by that.
  fit(view) {
    const { head, history, root } = this.scene,
      reach = history.front(Infinity).x - (head.first ?? 0) + 1;
    const known = Math.max(reach, head.columns || 0);
    if (
      !this.root.hidden ||
      !head.overview ||
      known <= view.columns ||
      !KINDS[head.overview].some((kind) => history.byKind.has(kind))
    )
      return false;
    this.root.hidden = false;
    const height = view.narrow
      ? NARROW
      : Math.round(Math.max(LOWEST, Math.min(TALLEST, SHARE * root.clientHeight)));
    this.root.style.height = height + "px";
    return true;
  }

  // The columns of the strip: two windows at least, then as far as the run is known, growing by a third of a
  // window.
  span() {
    const { head, history, view } = this.scene,
      first = head.first ?? 0,
      third = Math.max(1, Math.floor(view.columns / 3));
    const reach = Math.ceil(history.front(Infinity).x) - first + 1,
      known = head.columns || Infinity;
    const columns = this.scene.ended
      ? Math.max(reach, view.columns)
      : Math.max(reach, Math.min(known, Math.max(2 * view.columns, Math.ceil(reach / third) * third)));
    return { first, columns };
  }

  // The frame around the open part; the picture itself follows when there is time.
  place() {
    if (this.root.hidden) return;
    const { first, columns } = this.span(),
      [low, high] = this.opened();
    const share = (x) => 100 * Math.max(0, Math.min(1, (x - first) / columns));
    const width = Math.max(0.5, share(high) - share(low));
    this.open.style.width = width + "%";
    // Percent of its own width: nothing is laid out again.
    this.open.style.transform = `translateX(${(100 * share(low)) / width}%)`;
  }

  opened() {
    const { view } = this.scene;
    if (!view.byDepth) return [view.lo, view.lo + view.columns];
    const panel = player.scrolling(view),
      open = panel.fold ? panel.fold.open : panel.y0;
    const rows = this.scene.history
      .ofKind("row", this.scene.step())
      .filter((row) => row.y0 >= open - 0.01 && row.y0 < panel.y1);
    return rows.length ? [rows[0].first, rows[rows.length - 1].last + 1] : [0, 1];
  }

  // The strip need not follow every step of a run. It takes its turn with the pictures.
  drawSoon() {
    this.resting ??= setTimeout(
      () => {
        this.resting = null;
        player.schedule(this);
      },
      Math.max(0, this.drawnAt + CALM - performance.now()),
    );
  }

  draw() {
    const { scene, canvas } = this,
      width = this.strip.clientWidth,
      height = this.strip.clientHeight;
    if (this.root.hidden || !width || !height || !scene.view) return;
    const { first, columns } = this.span(),
      step = scene.step();
    const key = [step, first, columns, width, height, scene.themeName, scene.history.entries.length].join();
    if (key === this.painted) return;
    Object.assign(this, { painted: key, drawnAt: performance.now() });
    const sharp = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * sharp);
    canvas.height = Math.round(height * sharp);
    const pen = canvas.getContext("2d");
    pen.scale(sharp, sharp);
    const low = scene.whole ? height - AXIS : height,
      unit = width / columns,
      gap = unit >= 5 ? 1 : 0;
    const boxes = new Map(Object.keys(scene.colours.strip).map((name) => [name, []]));
    const add = (name, x, y, w, h) =>
      (boxes.get(name) || boxes.get("pruned")).push([(x - first) * unit, y, w * unit - gap, h]);
    ({ rows, piled, amount })[scene.head.overview](scene, step, low, add, pen, (x) => (x - first) * unit);
    for (const [name, list] of boxes) {
      pen.fillStyle = scene.colours.strip[name];
      for (const box of list) pen.fillRect(...box);
    }
    if (scene.whole) numbers(pen, scene, first, columns, unit, low);
  }

  // ---- hands ----------------------------------------------------------------------------------------------

  attach() {
    let held = null; // where in the open part it is held
    const column = (event) => {
      const box = this.strip.getBoundingClientRect(),
        { first, columns } = this.span();
      return first + ((event.clientX - box.left) / box.width) * columns;
    };
    this.strip.addEventListener("pointerdown", (event) => {
      if (!this.scene.view || event.button) return;
      const at = column(event),
        [low, high] = this.opened();
      held = at >= low && at < high ? at - low : (high - low) / 2;
      this.strip.setPointerCapture(event.pointerId);
      if (this.scene.whole) this.scene.showWhole(false);
      player.moveTo(this.scene, at - held);
    });
    this.strip.addEventListener("pointermove", (event) => {
      if (held !== null) player.moveTo(this.scene, column(event) - held);
    });
    for (const end of ["pointerup", "pointercancel"]) this.strip.addEventListener(end, () => (held = null));
    this.strip.addEventListener("dblclick", () => this.scene.follow());
  }
};

// What a cell or a node is in the strip.
const nameOf = (mark, { colours }) =>
  mark.kind === "cell" ? player.cellLook(colours, mark.state, mark.fill).strip : mark.state;

function rows(scene, step, height, add) {
  const { history, head } = scene,
    reach = history.reach.at(-1);
  const count = head.rows || (reach ? Math.ceil(reach[2]) : 1),
    unit = height / count,
    gap = unit >= 5 ? 1 : 0;
  for (const { x0, x1, y0, y1, role } of history.ofKind("band", step)) {
    if (role === "accepted") add("band", x0 + 0.5, y0 * unit, x1 - x0, (y1 - y0) * unit);
  }
  for (const cell of history.ofKind("cell", step)) {
    add(nameOf(cell, scene), cell.x, cell.y * unit, 1, Math.max(1, unit - gap));
  }
  for (const { x, y, state } of history.ofKind("node", step)) {
    if (state !== "prompt") add(state, x, Math.floor(y) * unit, 1, unit - gap);
  }
}

function piled(scene, step, height, add) {
  const piles = new Map();
  let tallest = 1;
  for (const mark of KINDS.piled.flatMap((kind) => scene.history.ofKind(kind, step))) {
    if (mark.drawn === false || mark.aside) continue;
    const x = Math.round(mark.x),
      pile = piles.get(x) || piles.set(x, []).get(x),
      name = nameOf(mark, scene);
    if (name === mark.state && name !== "rejected" && name !== "unreached") pile.unshift(name);
    else pile.push(name);
    tallest = Math.max(tallest, Math.min(PILE, pile.length));
  }
  const unit = height / tallest,
    gap = unit >= 6 ? 1 : 0;
  for (const [x, pile] of piles) {
    pile.slice(0, tallest).forEach((name, i) => add(name, x, i * unit, 1, unit - gap));
  }
}

function amount(scene, step, height, add, pen, px) {
  const { history, colours } = scene,
    width = px(1) - px(0),
    gap = width >= 5 ? 1 : 0;
  pen.fillStyle = colours.surface.text;
  for (const { x, y } of history.ofKind("step", step)) {
    pen.globalAlpha = 0.06 + 0.6 * Math.min(1, y / MAX_BITS);
    pen.fillRect(px(x), 0, width - gap, height);
  }
  pen.globalAlpha = 1;
  for (const { x0, x1, role } of history.ofKind("band", step)) {
    if (role === "amber") add("live", Math.round((x0 + x1) / 2), 0, 1, Math.max(4, height / 5));
  }
}

function numbers(pen, scene, first, columns, unit, low) {
  const every = [1, 5, 10, 20, 50, 100, 200].find((n) => n * unit >= 44) || 500;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillStyle = scene.colours.surface.soft;
  for (let x = Math.ceil(first / every) * every; x < first + columns; x += every) {
    const half = pen.measureText(String(x)).width / 2,
      middle = (x - first + 0.5) * unit;
    if (x >= 0)
      // A number is never cut.
      pen.fillText(String(x), Math.max(half, Math.min(middle, columns * unit - half)), low + AXIS - 5);
  }
}
