// What pointer and keyboard do to a scene: hover and tap (a card), click (pick), drag and wheel (pan, zoom
// x), keys on a focused mark. Hover draws on a layer of its own: the root path and the outline; the picture
// below is dimmed by CSS, never redrawn.
const CLEAR = 44; // pixels between what was pressed and a sheet
// Pixels around a mark that count as the mark.
const REACH = window.matchMedia("(pointer: coarse)").matches ? 22 : 16;
const NEAR = 7; // pixels beside a link that count as the link for a mouse
const BEHIND = 6; // pixels that a link lies farther than a mark which is as near: marks come first
const EDGE = 8; // pixels from the edge of a panel in which a node counts as out of sight
const THINNEST = 14; // pixels of a column: below that the whole run is shown instead
const POINTS = new Set(["node", "symbol", "tick", "label"]);
const BOXES = new Set(["cell", "bar"]);

// The rectangle of a mark in pixels of the frame.
player.boxOf = function (mark, view) {
  if (player.isLink(mark)) return player.linkBox(mark, view);
  if (mark.kind === "row")
    return [view.left, view.py(mark.y0, mark), view.size.width - view.right, view.py(mark.y1, mark)];
  const x = view.px(mark.x ?? mark.x0),
    y = view.py(mark.y ?? mark.y0, mark);
  if (mark.kind === "cell") {
    const w = (mark.w * view.columnWidth) / 2,
      h = (mark.tall || mark.h * view.unitOf(mark)) / 2;
    return [x - w, y - h, x + w, y + h];
  }
  if (mark.kind === "bar") {
    const w = ((mark.w ?? 1) * view.columnWidth) / 2,
      end = view.py(mark.y1, mark);
    return [x - w, Math.min(y, end), x + w, Math.max(y, end)];
  }
  if (mark.kind === "tick") {
    const left = x + 4 + Math.min(mark.index, 5) * 3.4;
    return [left, y + 6, left + 4, y + 20];
  }
  return [x - 5, y - 5, x + 5, y + 5];
};

// The mark under (x, y): the smallest box that holds it, else the nearest mark or link within reach.
function markAt(scene, x, y, touch) {
  let best = null,
    nearest = Infinity;
  for (const mark of scene.drawn) {
    if (mark.hover && player.isLink(mark) && x >= scene.view.left) {
      const away = player.linkDistance(mark, scene.view, x, y);
      if (away <= (touch ? REACH : NEAR) && away + BEHIND < nearest) [best, nearest] = [mark, away + BEHIND];
      continue;
    }
    if (!mark.hover || !(POINTS.has(mark.kind) || BOXES.has(mark.kind))) continue;
    const [x0, y0, x1, y1] = player.boxOf(mark, scene.view),
      panel = scene.view.panelOf(mark);
    // Scrolled away.
    if (y1 < panel.topPx || y0 > panel.topPx + panel.heightPx || x1 < scene.view.left) continue;
    const out = Math.hypot(Math.max(x0 - x, 0, x - x1), Math.max(y0 - y, 0, y - y1));
    if (out > (mark.kind === "tick" ? 3 : POINTS.has(mark.kind) ? REACH : 0)) continue;
    const cost =
      out +
      (BOXES.has(mark.kind) ? 0.1 * Math.sqrt((x1 - x0) * (y1 - y0)) : 0) +
      (mark.drawn === false ? 8 : 0);
    if (cost < nearest) [best, nearest] = [mark, cost];
  }
  return best;
}

// Outlines marks on the overlay; with `path`, also the way from the root to the mark, and dims all else.
player.outline = function (scene, marks, path) {
  scene.overlay.replaceChildren();
  scene.frame.classList.toggle("dp-dimmed", Boolean(path && path.length > 1));
  if (!marks.length || !scene.view) return;
  const view = scene.view,
    ink = scene.colours.surface.text;
  const layer = player.svg("svg", scene.overlay);
  if (path && path.length > 1) {
    const points = path.map((m) => [view.px(m.x), view.py(m.y, m)]);
    const line = path
      .slice(1)
      .map((_, i) => player.curve(points[i], points[i + 1]))
      .join("");
    const open = player.svg("svg", layer, {
      x: view.left,
      width: view.size.width - view.left,
      height: view.size.height,
      overflow: "hidden",
    });
    // What is folded stays folded.
    const way = player.svg("g", open, { transform: `translate(${-view.left} 0)` });
    player.svg("path", way, {
      d: "M" + points[0].join(" ") + line,
      fill: "none",
      stroke: ink,
      "stroke-width": 3,
    });
    path.forEach((mark, i) => {
      player.svg("circle", way, {
        cx: points[i][0],
        cy: points[i][1],
        r: 4,
        fill: player.roleColour(mark.state, scene.colours),
      });
      const text = mark.text ? player.fit(mark.text, view.columnWidth - 8, 13) : "";
      if (!text || points[i][0] < view.left) return;
      const label = player.svg("text", layer, { x: points[i][0], y: points[i][1] - 14, class: "dp-way" });
      label.textContent = text; // as text: whatever the token holds, it is not read as markup
    });
  }
  for (const mark of marks) {
    if (player.isLink(mark)) {
      const points = player.linkPixels(mark, view).map(([x, y]) => Math.max(view.left, x) + " " + y);
      player.svg("path", layer, { d: "M" + points.join("L"), fill: "none", stroke: ink, "stroke-width": 3 });
      continue;
    }
    const [x0, y0, x1, y1] = player.boxOf(mark, view);
    const box = { x: x0 - 2, y: y0 - 2, width: x1 - x0 + 4, height: y1 - y0 + 4, rx: 3 };
    player.svg("rect", layer, { ...box, fill: "none", stroke: ink, "stroke-width": 2 });
  }
};

// The marks from the root to a node, as far as they are there; `parent` names a mark.
function rootPath(scene, mark) {
  const path = [],
    step = scene.step();
  for (let at = mark; at && path.length < 4000;) {
    path.unshift(at);
    const entry = at.parent && scene.history.byId.get(at.parent);
    at = entry ? scene.history.at(entry, step) : null;
  }
  return path;
}

// `at`: where the pointer is; the card of a link, which may be long, hangs there.
player.showCard = function (scene, mark, touch, at) {
  player.hideCard(scene, true);
  scene.hovered = mark;
  scene.touched = touch;
  player.outline(scene, [mark], mark.parent ? rootPath(scene, mark) : null);
  const parted = scene.parting && scene.parting.node === mark.node ? [scene.parting.words] : [];
  const lines = [...mark.hover.slice(0, 2 - parted.length), ...parted].map((line) =>
    h("div", { class: "dp-card-line" }, line),
  );
  const card = (scene.card = h("div", { class: "dp-card", role: "tooltip" }, ...lines));
  if (touch && scene.options.onPick) {
    card.append(
      h(
        "button",
        { class: "dp-card-button", type: "button", onclick: () => scene.options.onPick(mark) },
        "Inspect",
      ),
    );
  }
  scene.frame.append(card);
  const around =
    at && player.isLink(mark) ? [at[0] - 5, at[1] - 5, at[0] + 5, at[1] + 5] : player.boxOf(mark, scene.view);
  const [, y0, x1, y1] = around,
    { width, height } = scene.view.size;
  const wide = card.offsetWidth,
    tall = card.offsetHeight;
  const below = y1 + 12 + tall <= height + 40 || y0 - tall - 8 < 0;
  card.style.left = Math.max(2, Math.min(x1 + 6, width - wide - 2)) + "px";
  card.style.top = (below ? y1 + 12 : y0 - tall - 22) + "px";
  scene.options.onHover(mark);
};

player.hideCard = function (scene, quiet) {
  if (scene.card) scene.card.remove();
  scene.card = null;
  if (!scene.hovered) return;
  scene.hovered = null;
  scene.highlight(null);
  if (!quiet) scene.options.onHover(null);
};

// After a redraw the card stays with its mark, as the mark is now, or goes with it.
player.keepCard = function (scene) {
  const same = scene.hovered && scene.drawn.find((mark) => mark.id === scene.hovered.id);
  if (same) player.showCard(scene, same, scene.touched);
  else {
    player.hideCard(scene);
    scene.highlight(null);
  }
};

// A hand moved the window: following ends until Follow is pressed.
function take(scene) {
  const view = scene.view,
    grown = player.scrolling(view);
  if (scene.hand.follow)
    scene.hand = {
      ...scene.hand,
      follow: false,
      lo: view.lo,
      columns: view.columns,
      top: grown ? grown.y0 : null,
    };
}

function pan(scene, columns, rows) {
  take(scene);
  const first = scene.head.first ?? 0,
    last = Math.max(first, scene.history.front(scene.step()).x);
  scene.hand.lo = Math.max(first, Math.min(last, scene.hand.lo + columns));
  if (scene.hand.top !== null) {
    const { first: top = -0.5, last: bottom = scene.view.front.y } = player.scrolling(scene.view) || {};
    scene.hand.top = Math.max(top, Math.min(bottom, scene.hand.top + rows));
  }
  scene.schedule();
}

// Says how many tokens of a scrolled picture of one round lie below and above its edges, on buttons that go
// there: else nobody knows that there are more.
player.drawBeyond = function (scene) {
  for (const old of scene.frame.querySelectorAll(".dp-beyond")) old.remove();
  const panel = player.scrolling(scene.view);
  if (!panel?.rows) return;
  const nodes = scene.marksAt().filter((mark) => mark.kind === "node" && mark.panel === panel.id),
    down = ({ y }) => (y - panel.y0) * panel.unit;
  const sides = [
    ["above", nodes.filter((mark) => down(mark) < EDGE), panel.topPx, "↑", -1],
    [
      "below",
      nodes.filter((mark) => down(mark) > panel.heightPx - EDGE),
      panel.topPx + panel.heightPx - 32,
      "↓",
      1,
    ],
  ];
  for (const [side, beyond, top, arrow, way] of sides) {
    if (!beyond.length) continue;
    const text = `${arrow} ${beyond.length} more ${side}`,
      onclick = () => pan(scene, 0, (way * 0.7 * panel.heightPx) / panel.unit);
    scene.frame.append(
      h("button", { class: `dp-beyond is-${side}`, type: "button", style: `top:${top}px`, onclick }, text),
    );
  }
};

// Moves the window so that it begins at a column; rows follow to where that column was written.
player.moveTo = function (scene, column) {
  const view = scene.view,
    middle = column + view.columns / 3;
  take(scene);
  // By depth every round begins at the left: only rows move.
  if (!view.byDepth) pan(scene, column - scene.hand.lo, 0);
  scene.schedule();
  if (scene.hand.top === null) return;
  const row = scene.history
    .ofKind("row", scene.step())
    .filter((r) => (r.first ?? 0) <= (view.byDepth ? column : middle))
    .pop();
  if (row) scene.hand.top = Math.max(-0.5, row.y0);
};

function zoom(scene, factor, x) {
  const view = scene.view,
    inner = view.size.width - view.left - view.right;
  const reached = view.front.x - (scene.head.first ?? 0) + 2,
    wanted = Math.round(view.columns * factor);
  if (factor > 1 && !scene.strips.hidden && wanted > inner / THINNEST) return scene.showWhole(true);
  take(scene);
  const columns = Math.max(3, Math.min(Math.max(reached, inner / 44), wanted));
  const at = view.range[0] + (x - view.left) / view.columnWidth;
  scene.hand.lo = at - ((at - view.lo) * columns) / view.columns;
  scene.hand.columns = columns;
  scene.schedule();
}

// In a tree: the parent, or the child nearest in height.
function relative(scene, from, dx) {
  if (dx < 0) return scene.drawn.find((mark) => mark.hover && mark.id === from.parent) || null;
  const away = (mark) => Math.abs((mark.y ?? mark.y0) - (from.y ?? from.y0));
  return (
    scene.drawn
      .filter((mark) => mark.hover && mark.parent === from.id)
      .sort((a, b) => away(a) - away(b))[0] || null
  );
}

// The mark an arrow key leads to: parent or child in a tree, else the nearest one in that direction.
function neighbour(scene, from, dx, dy) {
  const near = dx ? relative(scene, from, dx) : null;
  if (near) return near;
  let best = null,
    nearest = Infinity;
  const [ax, ay] = player.boxOf(from, scene.view);
  for (const mark of scene.drawn) {
    if (mark === from || !mark.hover || mark.kind !== from.kind) continue;
    const [bx, by] = player.boxOf(mark, scene.view),
      along = (bx - ax) * dx + (by - ay) * dy;
    const cost = along + 3 * Math.abs((bx - ax) * dy + (by - ay) * dx);
    if (along > 2 && cost < nearest) [best, nearest] = [mark, cost];
  }
  return best;
}

// Enter goes to the front, arrows and L walk from there, Enter again picks, Escape leaves.
function key(scene, event) {
  const { hovered } = scene,
    { key: name } = event;
  const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[name];
  if (event.ctrlKey || event.metaKey || event.altKey || event.target !== scene.frame) return;
  let next = null;
  if (name === "Enter" && !hovered)
    next = scene.drawn.filter((m) => m.hover && (m.kind === "node" || m.kind === "cell")).pop();
  else if (!hovered) return;
  else if (name === "Enter") scene.options.onPick?.(hovered);
  else if (name === "Escape") player.hideCard(scene);
  else if (move) next = neighbour(scene, hovered, ...move);
  else if (name.toLowerCase() === "l") next = player.nextLink(scene.drawn, hovered);
  else return;
  if (next) {
    player.showCard(scene, next);
    scene.voice.textContent = next.hover.join(". ");
  }
  event.preventDefault();
  event.stopPropagation();
}

player.attachPointer = function (scene) {
  const frame = scene.frame;
  let drag = null;
  const spot = (event) => {
    const box = frame.getBoundingClientRect(),
      zoom = box.width / frame.offsetWidth || 1; // a lane that is presented is larger
    return [(event.clientX - box.left) / zoom, (event.clientY - box.top) / zoom];
  };
  const onFrame = (event) => !event.target.closest("button, .dp-card");
  const look = (event, touch) => {
    const mark = scene.view && markAt(scene, ...spot(event), touch);
    if (!mark) player.hideCard(scene);
    else if (scene.hovered?.id !== mark.id) player.showCard(scene, mark, touch, spot(event));
    return mark;
  };
  frame.addEventListener("pointermove", (event) => {
    if (drag && scene.view) {
      const [x, y] = spot(event);
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 5) return;
      drag.moved = true;
      player.hideCard(scene);
      const grown = player.scrolling(scene.view);
      pan(scene, (drag.x - x) / scene.view.columnWidth, grown ? (drag.y - y) / grown.unit : 0);
      [drag.x, drag.y] = [x, y];
    } else if (event.pointerType !== "touch" && onFrame(event)) look(event);
  });
  frame.addEventListener("pointerleave", (event) => {
    // A finger leaves when it has tapped: its card stays.
    if (!drag && event.pointerType !== "touch") player.hideCard(scene);
  });
  frame.addEventListener("pointerdown", (event) => {
    if (!onFrame(event) || event.button) return;
    drag = { x: spot(event)[0], y: spot(event)[1], moved: false };
    if (event.pointerType !== "touch") frame.setPointerCapture(event.pointerId);
  });
  frame.addEventListener("pointercancel", () => (drag = null));
  frame.addEventListener("pointerup", (event) => {
    const moved = drag && drag.moved,
      began = drag;
    drag = null;
    if (!began || moved || !onFrame(event)) return;
    if (event.pointerType === "touch") look(event, true);
    else if (scene.view?.fold && spot(event)[0] < scene.view.left) pan(scene, -Infinity, 0); // opens the fold
    else {
      const mark = markAt(scene, ...spot(event));
      if (mark) scene.options.onPick?.(mark);
    }
  });
  frame.addEventListener("dblclick", () => scene.follow());
  frame.addEventListener("keydown", (event) => key(scene, event));
  // The wheel belongs to the page until the picture has been clicked (focus) or Ctrl is held (also: pinch).
  frame.addEventListener(
    "wheel",
    (event) => {
      if (!scene.view) return;
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      if (!sideways && !event.ctrlKey && document.activeElement !== frame) return;
      event.preventDefault();
      player.hideCard(scene);
      if (sideways) pan(scene, (event.deltaX || event.deltaY) / scene.view.columnWidth, 0);
      else zoom(scene, event.deltaY > 0 ? 1.15 : 1 / 1.15, spot(event)[0]);
    },
    { passive: false },
  );
};

// Where on the page a drawing was last pressed. A sheet that opens for it, which the page's scroll padding
// leaves room for, must not cover it.
let pressed = 0;
document.addEventListener(
  "pointerdown",
  (event) => {
    if (event.target.closest?.(".dp-scene, .dp-chips")) pressed = event.clientY + window.scrollY;
  },
  true,
);
player.lift = function () {
  const sheet = parseFloat(getComputedStyle(document.documentElement).scrollPaddingBottom) || 0;
  const under = pressed - window.scrollY - (window.innerHeight - sheet - CLEAR);
  if (sheet && under > 0) window.scrollBy({ top: under });
};
