// A scene in the page: feeds the history, draws the window at most once a frame, follows the front, and tells
// what is under the pointer.

// The kinds of marks, in drawing order.
player.LAYERS = [
  "panel",
  "band",
  "bar",
  "step",
  "row",
  "guide",
  "edge",
  "path",
  "hook",
  "arc",
  "stem",
  "cell",
  "tick",
  "node",
  "symbol",
  "label",
];
const MARGIN = 2; // columns drawn beyond either side of the window
const EVERYWHERE = [-Infinity, Infinity];
const isStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;
const REST = 300; // milliseconds between two pictures from which on what is new fades in

player.Scene = class extends player.Drawing {
  constructor(element, options) {
    super(element, { together: () => [], ...options });
    Object.assign(this, player.parts(element)); // see explorer/export/drawings.py
    this.followButton.addEventListener("click", () => this.follow());
    this.whole = false; // the strip is as large as the picture
    this.head = {};
    this.overview = new player.Overview(this);
    player.foldLegend(this);
    // When the last redraw began, whether motion costs too much, and animations of the marks that slide.
    Object.assign(this, { lastPaint: 0, began: 0, dear: false, slides: [], drawn: [], traces: [] });
    this.reset({});
    this.theme(this.options.theme);
    player.attachPointer(this);
    new ResizeObserver(() => {
      this.measure();
      this.schedule();
    }).observe(this.frame);
  }

  // The frame's pixels, none where it is hidden. Asked for between two redraws they would cost a layout of
  // the page each time.
  measure() {
    this.size = { width: this.frame.clientWidth, height: this.frame.clientHeight };
  }

  reset(head) {
    super.reset(head);
    this.head = head;
    this.root.classList.toggle("dp-patched", Boolean(head.patched));
    Object.assign(this, { hand: { follow: true }, ended: false, holding: null, settled: null });
    this.showWhole(false);
    this.overview.reset();
    player.hideCard(this);
  }

  // Whether the run is over: from then on nothing is kept free for what comes.
  end(ended) {
    if (this.ended !== ended) this.schedule();
    this.ended = ended;
  }

  follow() {
    this.showWhole(false);
    this.hand = { follow: true };
    this.schedule();
  }

  // The whole run at once, instead of the open part.
  showWhole(whole) {
    if (this.whole === whole) return;
    this.whole = whole;
    this.root.classList.toggle("dp-whole", whole);
    this.wholeButton.setAttribute("aria-pressed", whole);
    player.hideCard(this);
    this.schedule();
  }

  // Outlines the marks that show a node of the trace (hovered elsewhere in the lane); null: those that are
  // kept.
  highlight(node) {
    player.outline(this, this.marksOf([].concat(node ?? this.kept())));
  }

  keep(node, by = "stop") {
    super.keep(node, by);
    // A node that is inspected stays where it was pressed.
    if (by === "stop") this.hold({ node: Array.isArray(node) ? node[0] : node });
  }

  // The window holds the mark of a node, or a column, in sight, however narrow it gets, until the step
  // changes.
  hold({ node, x }) {
    this.holding = typeof (node ?? x) === "number" ? { node, x } : null;
    this.schedule();
  }

  // The column that is held at a step, null for none. What was asked for between two redraws holds at the
  // step of the next.
  held(step) {
    const holding = this.holding;
    if (!holding || (holding.step ??= step) !== step) return this.home(step)?.x ?? null;
    return holding.node === undefined ? holding.x : (this.history.placeOf(holding.node, step)?.x ?? null);
  }

  // Where the window stands once the run is over, instead of at its end: at a node, or at a column; null. A
  // mark whose card is open stays in sight: what is told of it may come seconds after the run.
  settle(place) {
    const before = JSON.stringify(this.settled ?? null),
      [read] = [this.hovered?.node].flat();
    this.settled = place;
    if (before === JSON.stringify(place)) return;
    if (typeof read === "number") this.hold({ node: read });
    else this.schedule();
  }

  // The place where the window stands at the end of a run.
  home(step) {
    if (!this.settled || step < this.history.last) return null;
    const { node, x } = this.settled;
    return (node !== undefined && this.history.placeOf(node, step)) || this.history.placeIn(x, step);
  }

  // What is drawn of nodes; their words alone only where there is nothing else.
  marksOf(nodes) {
    const marks = nodes.length ? this.drawn.filter((mark) => nodes.includes(mark.node)) : [],
      shapes = marks.filter((mark) => mark.kind !== "label");
    return shapes.length ? shapes : marks;
  }

  viewport(step) {
    if (!this.size) this.measure();
    const { size } = this;
    return size.width < 40 || size.height < 40
      ? null
      : player.viewport(this.head, this.history, step, size, this.hand, this.wishes(size.width));
  }

  // What this scene and those that share its window ask of the columns: others that follow their front, over
  // token positions.
  wishes(width) {
    const shares = (scene) => (scene.hand.follow && !scene.whole ? player.sharing(scene.head) : null),
      own = shares(this);
    const others = own
      ? this.options.together().filter((other) => shares(other) === own && other.size?.width)
      : [];
    return [this, ...others].map((scene) => player.wish(scene, scene.step(), width));
  }

  // Whether the window would be another one by now, as the scenes that share it have gone on.
  outdated() {
    const { left, lo, columns, size, byDepth } = this.view,
      now = player.windowOf(this.wishes(size.width), size.width, this.hand);
    return !byDepth && (now.left !== left || now.lo !== lo || now.shown !== columns);
  }

  // The pixels are on the screen a task after the frame: the one that is on, or the next, if nothing else was
  // drawn for that.
  painted(step) {
    const drawing = (this.drawing = {});
    const after = () =>
      setTimeout(() => {
        if (drawing !== this.drawing) return;
        this.lastPaint = performance.now();
        this.paintedStep = step;
      }, 0);
    if (player.frame.now) after();
    else requestAnimationFrame(after);
  }

  draw() {
    const started = performance.now(),
      step = this.step(),
      rested = started - this.began > REST;
    this.began = started;
    const before = this.view,
      behind = this.behind(),
      since = step - this.paintedStep;
    if (this.whole) {
      this.overview.draw();
      return this.painted(step);
    }
    let view = this.viewport(step);
    if (view && this.overview.fit(view)) {
      this.measure();
      view = this.viewport(step);
    }
    if (!view) return; // hidden: drawn when it is resized into view
    this.view = view;
    view.slide = before && since === 1 && this.hand.follow ? this.slideOf(view, before, behind) : 0;
    const low = view.range[0] - MARGIN - view.slide / view.columnWidth,
      high = view.range[1] + MARGIN;
    let marks = this.history.inside(
      step,
      view.byDepth ? -Infinity : low,
      view.byDepth ? Infinity : high,
      (mark) => {
        if (mark.panel && !view.panels[mark.panel]) return null;
        const panel = view.panelOf(mark);
        return panel.grow ? [panel.fold ? panel.fold.from : panel.y0 - 1, panel.y1 + 1] : EVERYWHERE;
      },
    );
    if (view.byDepth)
      marks = marks.map((mark) => (mark.depth === undefined ? mark : { ...mark, x: mark.depth }));
    marks = marks.map((mark) => player.folded(mark, view.panelOf(mark))).filter(Boolean);
    const byKind = {};
    for (const mark of marks) (byKind[mark.kind] = byKind[mark.kind] || []).push(mark);
    const ctx = {
      ...view,
      view,
      step,
      byKind,
      head: this.head,
      palette: this.colours,
      held: this.holding?.node,
    };
    const sheets = player.LAYERS.map((kind) => {
      const sheet = new player.Sheet(view, this.colours);
      player.drawers[kind](byKind[kind] || [], ctx, sheet);
      return sheet;
    });
    this.traces = sheets.flatMap((sheet) => sheet.traces());
    player.drawMarks(this.marks, this.traces, view, this.colours.surface);
    player.drawTexts(
      this.texts,
      sheets.flatMap((sheet) => sheet.words),
      view,
      this.head,
      this.colours.surface,
    );
    player.drawGutters(this.gutters, ctx);
    this.extras.replaceChildren();
    player.drawFold(this.extras, this, ctx);
    this.drawn = marks;
    player.drawParting(this);
    const words = [this.head.title, this.history.captionAt(step) || this.head.question];
    this.frame.setAttribute("aria-label", words.filter(Boolean).join(": "));
    this.followButton.hidden = this.hand.follow;
    player.drawBeyond(this);
    this.drawLegend(marks);
    this.placed = ctx.placed || []; // the labels and their boxes, in pixels
    player.keepCard(this);
    this.dear = marks.length > 800 || performance.now() - started > 30;
    for (const slide of this.slides.splice(0)) slide.cancel();
    if (before && since === 1 && this.hand.follow) this.move(view, before, rested);
    this.overview.place();
    this.overview.drawSoon();
    this.painted(step);
    for (const other of this.options.together())
      if (other.view && !other.waiting && other.size.width && other.outdated()) other.schedule();
  }

  // Pixels that the marks still lack to their place, while they slide there.
  behind() {
    const [slide] = this.slides;
    return slide ? slide.pixels * (1 - (slide.effect.getComputedTiming().progress ?? 1)) : 0;
  }

  // Pixels that the marks begin right of their place: those by which the window has moved, and those still
  // owed. None where motion is dear or unwanted.
  slideOf(view, before, behind) {
    const moved = (view.lo - before.lo) * view.columnWidth;
    const other = moved < 0 || before.columnWidth !== view.columnWidth || before.left !== view.left;
    return other || this.dear || isStill() ? 0 : Math.min(moved + behind, view.size.width);
  }

  // One step on: marks of a window that has moved slide to their new place, within the edges of their panels;
  // in one that stands still the new columns fade in, from under a veil, unless steps come so fast that one
  // fade would follow the other.
  move(view, before, rested) {
    if (view.slide >= 1) {
      const way = [{ transform: `translateX(${view.slide}px)` }, { transform: "none" }];
      this.slides = [...this.picture.querySelectorAll(".dp-slides")].map((group) =>
        Object.assign(group.animate(way, { duration: 200, easing: "ease-out" }), { pixels: view.slide }),
      );
    } else if (rested && view.lo === before.lo && before.columnWidth === view.columnWidth && !this.dear) {
      const from = view.px(before.front.x + 0.5),
        wide = view.px(view.front.x + 0.5) - from;
      if (wide <= 0 || view.byDepth || isStill()) return;
      Object.assign(this.veil.style, {
        left: from + "px",
        width: wide + "px",
        height: view.size.height - view.bottom + "px",
      });
      this.veil.animate([{ opacity: 1 }, { opacity: 0 }], 120);
    }
  }

  drawLegend(marks) {
    const present = new Set();
    const [lo, hi] = this.view.range;
    for (const mark of marks) {
      const low = mark.x ?? mark.x0,
        high = mark.x ?? mark.x1;
      if (mark.drawn === false || high < lo || low > hi) continue;
      present.add(mark.kind);
      for (const part of [mark.state, mark.role, mark.glyph, mark.fill])
        if (part) present.add(mark.kind + ":" + part);
    }
    const entries = (this.head.legend || []).filter((entry) => present.has(entry[0])).slice(0, 7);
    const key = JSON.stringify(entries) + this.themeName;
    if (key === this.legendKey) return;
    this.legendKey = key;
    this.legendButton.hidden = !entries.length;
    this.legend.replaceChildren(
      ...entries.map(([, glyph, role, text]) =>
        h(
          "span",
          { class: "dp-legend-item" },
          h(
            "span",
            { class: "dp-legend-glyph", style: "color:" + player.roleColour(role, this.colours) },
            glyph,
          ),
          " " + text,
        ),
      ),
    );
  }
};
