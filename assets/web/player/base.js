// What pictures and texts have in common: a history, the step that is shown, the nodes that are kept
// outlined, and the turns in which all drawings of a page are drawn.

// The drawing under the pointer comes first, and a frame goes to one redraw (more, if they are quick), so
// that the first lane is on the screen while the last is still being drawn.
const queue = [];
const FRAME = 12; // milliseconds
// Whether a frame is asked for, is drawn ahead, is being drawn.
const frame = (player.frame = { asked: false, ahead: false, now: false });

function drawSome() {
  const started = performance.now();
  while (queue.length && performance.now() - started < FRAME) {
    const pointed = queue.findIndex((drawing) => drawing.root.matches(":hover"));
    const [drawing] = queue.splice(Math.max(0, pointed), 1);
    drawing.waiting = false;
    drawing.draw();
  }
}

function askForFrame() {
  if (!frame.asked) requestAnimationFrame(drawNext);
  frame.asked = true;
}

function drawNext() {
  Object.assign(frame, { asked: false, ahead: false, now: true });
  try {
    drawSome();
  } finally {
    frame.now = false;
    if (queue.length) askForFrame();
  }
}

// Draws what has just come in the time that is left until the next frame, which then has to be painted only:
// once a frame.
player.drawAhead = function () {
  if (frame.ahead || document.hidden || !queue.length) return;
  frame.ahead = true;
  askForFrame(); // from which on it may be done again
  drawSome();
};

// Puts what has a `root` and can `draw` itself in the queue, once.
player.schedule = function (drawing) {
  if (drawing.waiting) return;
  drawing.waiting = true;
  queue.push(drawing);
  askForFrame();
};

player.Drawing = class {
  constructor(root, options) {
    this.root = root;
    this.options = { onHover() {}, theme: "light", ...options };
    this.keeps = {}; // whoever keeps nodes -> a node, or several
  }

  // Begins with another history.
  reset(head) {
    this.history = new player.History(head.ops);
    Object.assign(this, { shown: Infinity, paintedStep: -1 });
    this.schedule();
  }

  feed(deltas) {
    this.history.feed(deltas);
    if (this.step() > this.paintedStep) this.schedule();
  }

  show(step) {
    this.shown = step;
    this.schedule();
  }

  // The step that is (about to be) shown.
  step() {
    return Math.min(this.shown, this.history.last);
  }

  marksAt(step = this.shown) {
    return this.history.ofKind(null, Math.min(step, this.history.last));
  }

  theme(name) {
    this.themeName = name;
    this.colours = this.options.palette[name];
    this.schedule();
  }

  // From now on the marks of a node, or of several, are outlined wherever nothing is pointed at, beside those
  // that others keep; null: none.
  keep(node, by = "stop") {
    this.keeps[by] = node;
    if (!this.hovered) this.highlight(null);
    this.schedule();
  }

  // The nodes that are kept outlined, for whomever.
  kept() {
    return Object.values(this.keeps)
      .flat()
      .filter((node) => typeof node === "number");
  }

  // Sets where the lane parts from another: {node, words}, or null.
  part(parting) {
    const before = JSON.stringify(this.parting || null);
    this.parting = parting;
    if (before !== JSON.stringify(parting)) this.schedule();
  }

  schedule() {
    player.schedule(this);
  }
};
