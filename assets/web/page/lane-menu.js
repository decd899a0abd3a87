// The menu of a lane (⋯): presents it, and saves what it holds. Works in a saved page too, but for saving a page.
function menuOf(lane) {
  const app = lane.app;
  const nothing = "This lane has not been decoded yet; press Run first.";
  const decoded = (form, asPng) => () => (lane.runIndex === null ? nothing : page.save(app, form, lane, asPng));
  const picture = app.data.saved ? "This view of the whole run" : "This view up to this step";
  const entries = [
    ["Present", "This lane alone on the whole screen, in large type: ← → or a clicker step, Q shows a QR code of the set-up, Esc ends it", () => page.present(lane)],
    ["Save trace", "The lane's record as data (.json.gz), to be opened again here", decoded("trace")],
    app.data.saved ? null : ["Save page", "One HTML file that replays this lane from disk", decoded("page")],
    app.data.saved ? null : ["Save figure", "This view at this step as one HTML file with a Plotly figure: zoom, hover, camera", decoded("figure")],
    ["Picture (PNG)", picture + ", with its heading and costs", decoded("picture", true)],
    ["Picture (SVG)", "The same as lines and letters, for print", decoded("picture")],
    app.data.saved ? null : ["Slide (PNG, 16:9)", "The whole run up to this step, broken into lines, for a lecture", decoded("slide", true)],
  ].filter(Boolean);
  const items = entries.map(([text, title, act]) => {
    const chosen = async () => {
      open(false);
      app.fail(await act() || "");
    };
    return h("button", { type: "button", role: "menuitem", tabindex: "-1", title, onclick: chosen }, text);
  });
  const list = h("div", { class: "lane-menu", role: "menu", "aria-label": "Save this lane", hidden: true }, ...items);
  const button = h("button", { type: "button", class: "dots", "aria-label": "Save this lane", "aria-haspopup": "menu",
    "aria-expanded": "false", title: "Save this lane: trace, page, figure, picture", onclick: () => open(list.hidden) }, "⋯");

  function open(shown) {
    if (shown === !list.hidden) return;
    list.hidden = !shown;
    button.setAttribute("aria-expanded", String(shown));
    (shown ? items[0] : button).focus({ preventScroll: true });
  }
  list.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement), count = items.length;
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1 + count, Home: 0, End: count - 1 };
    if (event.key === "Escape" || event.key === "Tab") open(false);
    else if (event.key in moves) items[moves[event.key] % count].focus();
    else return;
    event.stopPropagation();
    if (event.key !== "Tab") event.preventDefault();
  });
  list.addEventListener("focusout", (event) => {
    if (list.contains(event.relatedTarget) || event.relatedTarget === button) return;
    list.hidden = true;
    button.setAttribute("aria-expanded", "false");
  });
  return { button, list };
}

page.addPart((app) => {
  const made = new WeakSet();
  app.on("lanes", () => {
    for (const lane of app.lanes) {
      if (made.has(lane)) continue;
      made.add(lane);
      const { button, list } = menuOf(lane);
      lane.remove.before(button);
      lane.element.querySelector(".lane-head").after(list);
    }
  });
});
