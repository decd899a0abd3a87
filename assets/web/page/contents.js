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

// The section that was asked for, until a person scrolls: sections above it may come or grow meanwhile.
let wanted = null;
function lead() {
  const heading = wanted && document.getElementById(wanted.dataset.to);
  if (heading?.offsetParent)
    scrollTo(0, scrollY + heading.getBoundingClientRect().top - wanted.parentNode.offsetHeight - 8);
}

document.addEventListener("click", ({ target }) => {
  wanted = target.closest?.(".contents button");
  if (!wanted) return;
  lead(); // at once: figures that are drawn on the way would stop it
  const heading = document.getElementById(wanted.dataset.to);
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
});
for (const event of ["wheel", "touchstart", "mousedown", "keydown"])
  document.addEventListener(event, () => (wanted = null), { passive: true });

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
document.addEventListener("scroll", soon, { passive: true }); // the page's own, not that of a row of chips
new ResizeObserver(() => {
  lead();
  soon();
}).observe(document.body);
