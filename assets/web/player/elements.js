// Makes and fills elements of the page for whatever the player draws. Knows no marks and no history.
player.element = function (tag, className, parent, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};

player.svg = function (tag, parent, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (parent) parent.append(made);
  return made;
};

// Fills an element with `items`, [key, what makes it]: what stands there under its key stays and costs no layout.
player.refill = function (parent, items) {
  const before = parent.items || new Map();
  parent.items = new Map();
  for (const [key, make] of items) {
    if (!parent.items.has(key)) parent.items.set(key, before.get(key) || parent.appendChild(make()));
    before.delete(key);
  }
  for (const gone of before.values()) gone.remove();
};

// On a phone the legend stands behind a button (see player.css).
player.legendButton = function (root) {
  const button = player.element("button", "dp-legend-button", root, "?"), open = (is) => {
    root.classList.toggle("dp-legend-open", is);
    button.setAttribute("aria-expanded", String(is));
  };
  Object.assign(button, { type: "button", title: "What the marks mean", ariaLabel: "Legend", hidden: true });
  button.addEventListener("click", () => open(!root.classList.contains("dp-legend-open")));
  button.addEventListener("keydown", (event) => event.key === "Escape" && open(false));
  button.addEventListener("blur", () => open(false));
  open(false);
  return button;
};

// Colours as custom properties, so that the style sheet has no colour of its own.
player.paint = function (element, colours) {
  for (const [name, value] of Object.entries(colours.surface)) element.style.setProperty("--dp-" + name, value);
  for (const [name, state] of Object.entries(colours.state)) {
    element.style.setProperty("--dp-" + name + "-color", state.color);
    element.style.setProperty("--dp-" + name + "-tint", state.tint);
  }
};
