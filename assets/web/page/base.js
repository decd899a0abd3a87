// What all parts of the page share: elements, buttons, and where a part says that it belongs to the page.
//
// A part is a file in this folder that calls `page.addPart((app) => ...)`; it is built once, after the bars
// and the first lanes. It may put an element below the lanes (`app.bar.below`), listen with `app.on`, and ask
// the server with `page.call`, or `page.patient` where the question can wait for the network. What is
// emitted: "run" (another run is shown), "data" (rows came), "shown" (the slider stands elsewhere), "lanes"
// (lanes came, went or changed), "state", "theme", "models", "greeted" (the models are there), "kept" (more
// of the trace is here), "wish" (a button waits for the app), "lost" (the app has the run no more). In a
// saved page there is no server (assets/web/replay/offline.js answers for it): a part that needs one is added
// by `page.addLivePart`.

// An element: h("button", {class: "x", onclick: f, "aria-label": "Run"}, "Run"). Text is always text, never
// markup.
page.h = function (tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden")
      element[name] = value;
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

// HTML that Python made (explorer/export), as the elements that have a name in it: name -> element.
page.made = function (html) {
  const home = page.h("template");
  home.innerHTML = html;
  return Object.fromEntries(
    [...home.content.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]),
  );
};

// Gives an element a text, and touches nothing where it has that text: at every step of a run most stay as
// they were.
page.write = function (element, text) {
  if (element.textContent !== text) element.textContent = text;
};

// A button that opens a panel, and closes it as Escape does there; gives the function that does either.
// `fill` is called when it opens, and may name what gets the focus. With `quietly` the focus stays.
page.disclose = function (button, panel, fill) {
  const turn = (open = panel.hidden, quietly = false) => {
    panel.hidden = !open;
    const first = open && fill();
    button.setAttribute("aria-expanded", String(open));
    if (!quietly) (open ? first || panel : button).focus({ preventScroll: true });
  };
  button.addEventListener("click", () => turn());
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    turn(false);
  });
  return turn;
};

// A row, or a column, that is one tab stop: arrow keys, Home and End walk its elements; `reach` is called
// with the one reached.
page.rove = function (row, selector, reach, [back, on] = ["ArrowLeft", "ArrowRight"]) {
  row.addEventListener("keydown", (event) => {
    const all = [...row.querySelectorAll(selector)],
      at = all.indexOf(event.target);
    const to = { [on]: at + 1, [back]: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    reach(all[(to + all.length) % all.length]);
  });
};

// What this browser keeps under a name, a text or null; with `value` that is kept instead. A private window
// may refuse: then it lasts for this page, in which nobody asks again.
page.stored = function (name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

// Whoever tells others that something has happened, with what belongs to it.
page.Emitter = class extends EventTarget {
  on(name, listener) {
    this.addEventListener(name, ({ detail }) => listener(detail));
  }

  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
};

page.parts = [];
page.addPart = (build) => page.parts.push(build);
// Adds a part that a saved page does without.
page.addLivePart = (build) => page.addPart((app) => app.data.saved || build(app));
