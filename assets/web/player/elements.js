// Makes and fills elements of the page for whatever the player draws.

// What Python made and named (explorer/export/drawings.py): name -> element.
player.parts = (element) =>
  Object.fromEntries([...element.querySelectorAll("[data-dp]")].map((part) => [part.dataset.dp, part]));

// An attribute that is null or undefined is left out.
player.svg = function (tag, parent, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes)
    if ((attributes[name] ?? null) !== null) made.setAttribute(name, attributes[name]);
  if (parent) parent.append(made);
  return made;
};

// Fills an element with `items`, [key, what makes it, its look, what turns another of that look into it]:
// what stands there under its key stays and costs nothing, and what has gone is used again where it can be,
// which costs half of a new one.
player.refill = function (parent, items) {
  const before = parent.items || new Map(),
    lacking = [],
    spare = new Map();
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
