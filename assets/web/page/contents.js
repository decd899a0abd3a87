// The contents list of a long tab (explorer/page/tabs/contents.py): leads to its sections and says which one
// is on show.
const BELOW = 140; // pixels from the top of the window: a section on show has begun above

// Which sections the run has, and the one on show.
function mark(list) {
  let current = null;
  for (const button of list.children) {
    const heading = document.getElementById(button.dataset.to);
    button.hidden = !heading || !heading.offsetParent;
    if (!button.hidden && (!current || heading.getBoundingClientRect().top < BELOW)) current = button;
  }
  for (const button of list.children) button.setAttribute("aria-current", String(button === current));
}

const markAll = () =>
  document.querySelectorAll(".contents").forEach((list) => list.offsetParent && mark(list));

document.addEventListener("click", ({ target }) => {
  const button = target.closest?.(".contents button");
  if (!button) return;
  const heading = document.getElementById(button.dataset.to);
  heading.scrollIntoView({ block: "start" }); // at once: figures that are drawn on the way would stop it
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
});

// When a person scrolls, and when sections come, go or grow.
let asked = false;
function soon() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    markAll();
  });
}
addEventListener("scroll", soon, { passive: true, capture: true });
new ResizeObserver(soon).observe(document.body);
