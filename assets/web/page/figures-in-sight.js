// Draws a Plotly figure when it comes near the window. A tab has up to twenty of them, and ten take longer to
// draw than the rest of the page. Each has its title as a name at once, and its height, so that nothing moves
// when it is drawn.
const HOST = (page.FIGURE = ".figure, figure"); // what a figure stands in, with its caption
const UNDRAWN = "figure-undrawn"; // the class of a place whose figure waits
const HEIGHT = 450; // pixels, of a figure that asks for none: Plotly's own
const NEAR = 0.5; // screens above and below the window

page.plain = (text) =>
  new DOMParser().parseFromString(text.replaceAll("<br>", " "), "text/html").body.textContent;

// What a figure stands in can have the focus, and has the title of the figure as its name.
function name(place, layout) {
  const host = place.closest(HOST);
  if (!host || !layout.title) return;
  host.tabIndex = 0;
  if (host.tagName !== "FIGURE") host.setAttribute("role", "group");
  host.setAttribute("aria-label", `${page.plain(layout.title.text)}: arrow keys read it place by place`);
}

function inSight(plotly) {
  const { react } = plotly,
    { resize } = plotly.Plots,
    waiting = new WeakMap(); // place -> data, layout and config of its figure
  const draw = (place) => {
    const figure = waiting.get(place);
    if (!figure) return;
    waiting.delete(place);
    seen.unobserve(place);
    place.classList.remove(UNDRAWN);
    place.style.minHeight = "";
    if (!place.isConnected) return;
    const { clientWidth } = place;
    react(place, ...figure);
    if (place.clientWidth !== clientWidth) resize(place); // a scroll bar has come with it
    page.readAgain(place.closest(HOST));
  };
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries)
        if (isIntersecting) draw(target);
        else target.classList.add(UNDRAWN);
    },
    { rootMargin: `${100 * NEAR}% 0px` },
  );
  // Gradio hands a new figure to the old one's place too, which it removes at once: the observer never sees
  // that.
  plotly.react = (place, data, layout, config) => {
    name(place, layout);
    waiting.set(place, [data, layout, config]);
    place.style.minHeight = `${layout.height || HEIGHT}px`;
    seen.observe(place);
    return Promise.resolve(place);
  };
  plotly.Plots.resize = (place) => (waiting.has(place) ? Promise.resolve() : resize(place));
  const shown = () => [...document.querySelectorAll("." + UNDRAWN)].filter((place) => place.offsetParent);
  window.addEventListener("beforeprint", () => shown().forEach(draw));
}

// Plotly comes with the first figure, and makes itself known under this name.
let plotly = window.Plotly;
if (plotly) inSight(plotly);
else
  Object.defineProperty(window, "Plotly", {
    configurable: true,
    get: () => plotly,
    set: (it) => {
      plotly = it;
      inSight(plotly);
    },
  });
