// Makes and fills elements of the page for whatever the player draws. Knows no marks and no history.
// What Python made and named (explorer/export/drawings.py): name -> element.
player.parts = (element) => Object.fromEntries([...element.querySelectorAll("[data-dp]")].map((part) => [part.dataset.dp, part]));

// Gives an element these attributes, none where one is null, instead of those that it was given before; touches only what differs.
player.put = function (element, attributes) {
  const before = element.given || {}, given = (element.given = attributes || {});
  for (const name in { ...before, ...given }) {
    if ((given[name] ?? null) === null) element.removeAttribute(name);
    else if (given[name] !== before[name]) element.setAttribute(name, given[name]);
  }
  return element;
};

// An element of an SVG. Where `parent` is drawn again, the one that stands there stays and is changed, at half the cost of a new one.
player.svg = function (tag, parent, attributes) {
  const old = parent?.next, stays = old?.localName === tag, made = stays ? old : document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (stays) parent.next = old.nextElementSibling;
  else if (parent) parent.insertBefore(made, old ?? null);
  if (old !== undefined) made.next = made.firstElementChild;
  return player.put(made, attributes);
};

// Draws `parent` again: `draw` makes with `player.svg` all that is in it, in its order; whatever else was there goes.
player.redraw = function (parent, draw) {
  parent.next = parent.firstElementChild;
  draw();
  settle(parent);
};

function settle(parent) {
  for (let gone; (gone = parent.next); gone.remove()) parent.next = gone.nextElementSibling;
  delete parent.next;
  for (const child of parent.children) if ("next" in child) settle(child);
}

// Fills an element with `items`, [key, what makes it, its look, what turns another of that look into it]: what stands there under
// its key stays and costs nothing, and what has gone is used again where it can be, which costs half of a new one.
player.refill = function (parent, items) {
  const before = parent.items || new Map(), lacking = [], spare = new Map();
  parent.items = new Map();
  for (const item of items) {
    const [key] = item;
    if (parent.items.has(key)) continue;
    const there = before.get(key);
    parent.items.set(key, there);
    if (there) before.delete(key);
    else lacking.push(item);
  }
  for (const gone of before.values()) {
    if (!lacking.length || gone.look === undefined) gone.remove();
    else if (spare.has(gone.look)) spare.get(gone.look).push(gone);
    else spare.set(gone.look, [gone]);
  }
  for (const [key, make, look, turn] of lacking) {
    const old = spare.get(look)?.shift(); // the first: what is drawn left to right stays so
    if (old) turn(old);
    parent.items.set(key, old || parent.appendChild(make()));
  }
  for (const rest of spare.values()) for (const gone of rest) gone.remove();
};

// On a phone the legend stands behind a button (see player.css).
player.foldLegend = function ({ root, legendButton: button }) {
  const open = (is) => button.setAttribute("aria-expanded", root.classList.toggle("dp-legend-open", is));
  button.addEventListener("click", () => open());
  button.addEventListener("keydown", (event) => event.key === "Escape" && open(false));
  button.addEventListener("blur", () => open(false));
};
