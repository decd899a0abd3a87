// The map of decoding (explorer/page/tabs/method_map.py): it is made larger and smaller, dragged, and says
// what the method under the pointer or the focus changed. A first touch says it, the second one leads to the
// card. Listens to the whole page, since the map comes and goes with its tab.
const STEP = 1.4, // by which the buttons enlarge it
  LARGEST = 12, // times as wide as its window
  SLACK = 5; // pixels by which a press may move and still be a press
const mapOf = (target) => target.closest?.(".decoding-map");
const windowOf = (map) => map.querySelector(".map-window");
const sheetOf = (map) => map.querySelector(".map-sheet");

// ---- size -------------------------------------------------------------------------------------------------

// Makes the sheet `factor` times as large; what is at the point (x, y) of the window stays there.
function enlarge(map, factor, x, y) {
  const view = windowOf(map),
    sheet = sheetOf(map),
    { width } = sheet.getBoundingClientRect(),
    smallest = Math.min(view.clientWidth, wholeWidth(map));
  const wanted = Math.max(smallest, Math.min(width * factor, view.clientWidth * LARGEST));
  x ??= view.clientWidth / 2;
  y ??= view.clientHeight / 2;
  const left = ((view.scrollLeft + x) * wanted) / width - x,
    top = ((view.scrollTop + y) * wanted) / width - y;
  sheet.style.width = `${wanted}px`;
  view.scrollTo({ left, top, behavior: "instant" });
}

// The width at which all of the sheet is in the window.
function wholeWidth(map) {
  const { width, height } = sheetOf(map).querySelector("svg").viewBox.baseVal;
  return (windowOf(map).clientHeight * width) / height;
}

// Brings an element of the sheet into the window, near its upper left.
const MARGIN = 24;
function bring(map, element) {
  const view = windowOf(map),
    from = view.getBoundingClientRect(),
    to = element.getBoundingClientRect();
  view.scrollBy({ left: to.left - from.left - MARGIN, top: to.top - from.top - MARGIN });
}

const acts = {
  smaller: (map) => enlarge(map, 1 / STEP),
  larger: (map) => enlarge(map, STEP),
  whole: (map) => enlarge(map, wholeWidth(map) / sheetOf(map).getBoundingClientRect().width, 0, 0),
  full: (map) => (document.fullscreenElement ? document.exitFullscreen() : map.requestFullscreen()),
};

// ---- what it says -----------------------------------------------------------------------------------------

// Shows what a method changed, and the line that leads to it; null takes that back, but not the words.
function tell(map, method) {
  map.querySelector(".map-says a")?.remove();
  for (const lit of map.querySelectorAll(".lit")) lit.classList.remove("lit");
  map.classList.toggle("tracing", Boolean(method));
  map.described = method;
  if (!method) return;
  const [title, ...says] = method.getAttribute("aria-label").split(": ");
  const card = h("a", { href: method.getAttribute("href") }, "More about it");
  map.querySelector(".map-says").replaceChildren(h("b", {}, title), ` ${says.join(": ")} `, card);
  for (let name = method.dataset.name; name;) {
    const own = map.querySelector(`.method[data-name="${name}"]`);
    own?.classList.add("lit");
    map.querySelector(`.grew[data-to="${name}"]`)?.classList.add("lit");
    name = own?.dataset.parent;
  }
}

// A card in the list below is opened when the map leads to it.
function openCard({ hash }) {
  const card = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  card?.querySelector(":scope > details")?.setAttribute("open", "");
}

// Makes all methods pale but these, and brings the first of them into the window.
page.keepOnMap = function (names) {
  const map = document.querySelector(".decoding-map"),
    methods = [...(map?.querySelectorAll(".method") || [])];
  for (const method of methods) method.classList.toggle("off", !names.includes(method.dataset.name));
  const first = methods.find((method) => method.dataset.name === names[0]);
  if (first && names.length < methods.length) bring(map, first);
};

// ---- keys -------------------------------------------------------------------------------------------------

// The map is one tab stop: an arrow leads to the nearest card on that side, rather in the row or column.
const SIDES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] },
  ASIDE = 3; // how much further off a place to the side seems
document.addEventListener("keydown", (event) => {
  const from = event.target.closest?.(".method"),
    side = SIDES[event.key];
  if (!from || !side) return;
  event.preventDefault();
  const at = from.getBoundingClientRect(),
    [x, y] = side;
  const far = (method) => {
    const { left, top } = method.getBoundingClientRect(),
      along = (left - at.left) * x + (top - at.top) * y,
      aside = Math.abs((left - at.left) * y + (top - at.top) * x);
    return along > 1 ? along + ASIDE * aside : Infinity;
  };
  const all = [...mapOf(from).querySelectorAll(".method")],
    nearest = all.reduce((one, other) => (far(other) < far(one) ? other : one));
  if (far(nearest) === Infinity) return;
  from.tabIndex = -1;
  nearest.tabIndex = 0;
  nearest.focus();
});

// ---- pointers ---------------------------------------------------------------------------------------------

const fingers = new Map(); // pointer -> its last place, of those that are down on a map
let moved = 0;

document.addEventListener("pointerdown", (event) => {
  const map = mapOf(event.target);
  if (!map || !windowOf(map).contains(event.target)) return;
  fingers.set(event.pointerId, event);
  moved = 0;
});

document.addEventListener("pointermove", (event) => {
  const last = fingers.get(event.pointerId),
    map = mapOf(event.target);
  if (!last || !map) return;
  const view = windowOf(map),
    [dx, dy] = [event.clientX - last.clientX, event.clientY - last.clientY];
  moved += Math.abs(dx) + Math.abs(dy);
  fingers.set(event.pointerId, event);
  if (fingers.size === 2) {
    const [other] = [...fingers.values()].filter((one) => one.pointerId !== event.pointerId);
    const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
    const { left, top } = view.getBoundingClientRect();
    const middle = [(event.clientX + other.clientX) / 2 - left, (event.clientY + other.clientY) / 2 - top];
    enlarge(map, apart(event) / apart(last), ...middle);
  } else if (event.pointerType === "mouse") view.scrollBy({ left: -dx, top: -dy, behavior: "instant" });
});

for (const end of ["pointerup", "pointercancel"])
  document.addEventListener(end, (event) => fingers.delete(event.pointerId));

document.addEventListener("dragstart", (event) => mapOf(event.target) && event.preventDefault());

document.addEventListener(
  "wheel",
  (event) => {
    const map = mapOf(event.target);
    if (!map || !event.ctrlKey) return;
    event.preventDefault();
    const { left, top } = windowOf(map).getBoundingClientRect();
    enlarge(map, Math.exp(-event.deltaY / 300), event.clientX - left, event.clientY - top);
  },
  { passive: false },
);

// A method under the pointer or with the focus, unless a finger is what brings both: a click follows it.
let by = "mouse";
document.addEventListener("pointerdown", ({ pointerType }) => (by = pointerType), true);
document.addEventListener("keydown", () => (by = "keys"), true);
const touched = (event) => (event.pointerType || by) === "touch";
for (const come of ["pointerover", "focusin"])
  document.addEventListener(come, (event) => {
    const map = mapOf(event.target),
      method = event.target.closest?.(".method");
    if (map && !touched(event) && method !== map.described && (method || come === "pointerover"))
      if (method || windowOf(map).contains(event.target)) tell(map, method);
  });

document.addEventListener("click", (event) => {
  const map = mapOf(event.target),
    pressed = event.target.closest?.("[data-map], .map-bar [data-family], .method, .map-says a");
  if (!map || !pressed) return;
  const { map: act, family } = pressed.dataset;
  if (act) return acts[act](map);
  if (family) return bring(map, map.querySelector(`svg [data-family="${family}"]`));
  const first = event.pointerType === "touch" && pressed !== map.described && pressed.matches(".method");
  if (first) tell(map, pressed);
  if (first || moved > SLACK) return event.preventDefault();
  if (document.fullscreenElement) document.exitFullscreen();
  openCard(new URL(pressed.getAttribute("href"), location.href));
});
