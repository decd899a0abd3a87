// The keyboard: what works everywhere on the page, the panel that lists it (?), and the link that skips the
// bars. Keys are never taken from fields, and can be switched off. Also says, beside the pictures, what is on
// screen: politely and not at every step.
const STORED = "explorer-keys"; // "off" if a person has switched the keys off
const QUIET = 700,
  LONGEST = 5000; // milliseconds without news before a sentence is said; at most between two while running
// ---- what the keys do -------------------------------------------------------------------------------------

// The lane that holds the focus, else the one a phone shows.
function laneAt(app) {
  const at = app.lanes.findIndex((lane) => lane.element.contains(document.activeElement));
  return at < 0 ? app.phoneLane : at;
}

// A drafted token of a lane, counted from 1: its round is in the picture, and the inspector says why
// (explorer/page/tabs/rejections.py).
page.goToToken = async function ({ lane: number, step, node }) {
  const { app } = page,
    lane = app.lanes[number - 1],
    views = lane.offered();
  await app.goTo(lane);
  if (!["draft_rounds", "one_round"].includes(lane.view) && views.includes("draft_rounds"))
    lane.showView("draft_rounds");
  app.playback.seekStep(lane, step);
  lane.scene.hold({ node });
  await app.inspector.show(lane, { node });
};

const ACTIONS = {
  " ": (app) => app.press(app.state() === "running" ? "pause" : "run"),
  ArrowLeft: (app) => app.playback.seek(app.playback.position - 1, true),
  ArrowRight: (app) => app.playback.seek(app.playback.position + 1, true),
  Home: (app) => app.playback.seek(0, true),
  End: (app) => app.playback.seek(app.playback.ticks.length, true),
  s: (app) => app.bar.buttons.step.disabled || app.press("step"),
  p: (app) => app.playback.togglePlay(),
  "[": (app) => app.goTo(app.lanes[Math.max(0, laneAt(app) - 1)]),
  "]": (app) => app.goTo(app.lanes[Math.min(app.lanes.length - 1, laneAt(app) + 1)]),
  c: (app) => app.lanes[laneAt(app)].code.toggle(),
  ",": (app) => app.lanes[laneAt(app)].code.walk(-1),
  ".": (app) => app.lanes[laneAt(app)].code.walk(1),
  t: (app) => app.lanes[laneAt(app)].steps.toggle(),
  n: (app, event) => app.moments.walk(event.shiftKey),
  Enter: (app) => app.moments.open(),
};

// The buttons of Microscope's table of rejected tokens (explorer/page/tabs/rejections.py).
const press = (way) => document.getElementById("rejections-" + way)?.click();

// ↑ and ↓ in that table open the row that they come to.
document.addEventListener("keyup", ({ key }) => {
  const cell = document.activeElement.closest?.("#rejected-tokens [role=gridcell]");
  if (!cell || (key !== "ArrowUp" && key !== "ArrowDown")) return;
  // Gradio's table opens a cell at Enter, and at a press only where it does not stand yet.
  cell.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
});

function attach(app, help) {
  document.addEventListener("keydown", (event) => {
    const target = event.target,
      name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (target.isContentEditable || target.closest?.("input, textarea, select, dialog")) return;
    if (!help.on.checked) return;
    if ([" ", "Enter"].includes(name) && target.closest("button, summary, a")) return; // there it presses
    if (name === "?") help.open();
    else if (app.section === "microscope" && name === "n") press(event.shiftKey ? "before" : "after");
    else if (app.section !== "decode") return;
    else if (app.lanes[name - 1]) app.goTo(app.lanes[name - 1]);
    else if (ACTIONS[name]) ACTIONS[name](app, event);
    else return;
    event.preventDefault();
  });
}

// ---- the panel --------------------------------------------------------------------------------------------

// Its text is explorer/export/help_text.py's; only the page knows its address, and the app later how it walls
// in programs.
function buildHelp(app) {
  const { help, helpButton, keys: on, programs } = app.bar,
    open = () => help.open || help.showModal();
  on.checked = page.stored(STORED) !== "off";
  on.addEventListener("change", () => page.stored(STORED, on.checked ? "on" : "off"));
  for (const here of help.querySelectorAll(".here")) here.textContent = location.origin + location.pathname;
  app.on("models", () => {
    programs.hidden = !app.models.code;
    programs.lastChild.textContent = app.models.code || "";
  });
  helpButton.addEventListener("click", open);
  return { on, open };
}

// ---- what is said -----------------------------------------------------------------------------------------

// The sentences of the steps that are shown, once the picture has come to rest, or now and then while it
// runs.
function announce(app) {
  let timer = null,
    last = 0,
    before = "";
  const say = () => {
    timer = null;
    last = performance.now();
    const words = app.lanes
      .map((lane, i) => [i + 1, lane.steps.sentence()])
      .filter(([, sentence]) => sentence);
    const text = words
      .map(([number, sentence]) => (words.length > 1 ? "Lane " + number + ", " : "") + sentence)
      .join(" ");
    const all = [text, app.bar.moment.textContent].filter(Boolean).join(" ");
    if (all !== before && last > QUIET) app.bar.spoken.textContent = before = all;
  };
  app.on("shown", () => {
    const moving = app.state() === "running" || app.playback.playing,
      due = last + LONGEST - performance.now();
    if (timer !== null && moving) return; // one is on its way
    clearTimeout(timer);
    timer = setTimeout(say, moving ? Math.max(QUIET, due) : QUIET);
  });
}

page.addPart((app) => {
  app.bar.skip.addEventListener("click", (event) => {
    event.preventDefault();
    app.goTo(app.lanes[app.phoneLane]);
  });
  attach(app, buildHelp(app));
  announce(app);
});
