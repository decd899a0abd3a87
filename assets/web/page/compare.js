// How the lanes compare, in the lanes themselves: marks the first difference in chips and pictures, says it
// in each lane's head and below the lanes, and says what they have where the slider stands. The section
// Compare is Gradio's (explorer/page/tabs/compare.py): here it is only kept from showing another run's
// numbers, and remembered open or closed.
const OFTEN = 500; // milliseconds between two questions while the sentence is in sight
const REST = 700; // ... and of rest before one question while it is not
const PHONE = 760;
const KEPT = "explorer-compare"; // whether the section is open, in this browser
const UNITS = {
  step: "step",
  forwards: "target forwards",
  target_tokens: "target tokens",
  seconds: "seconds",
};

// How many tokens a lane's text has where it stands: final ones and those of the best candidate.
function written(lane) {
  if (!lane.shown) return 0;
  return lane.chips
    .marksAt(lane.shown - 1)
    .filter((mark) => mark.state !== "prompt" && mark.state !== "rejected").length;
}

// "At 12 target forwards: lane 1 has 12 tokens, lane 2 31 (ended)."
function atSlider(app, known) {
  const { unit, position, ticks } = app.playback,
    value = ticks[position - 1];
  if (value === undefined || !known.length) return "";
  const reached = unit === "seconds" ? value.toFixed(2) : Number(value.toFixed(1));
  const where = unit === "step" ? `After step ${value}` : `At ${reached} ${UNITS[unit]}`;
  const parts = known.map(({ number }, i) => {
    const lane = app.lanes[number - 1],
      last = lane.rows.length,
      atEnd = lane.shown === last && lane.answerState.ended;
    const over = atEnd && app.playback.valueOf(lane, last) < value;
    const count = written(lane),
      words = i ? count : `has ${count} ${count === 1 ? "token" : "tokens"}`;
    return `lane ${number} ${words}${over ? " (ended)" : ""}`;
  });
  return where + ": " + parts.join(", ") + ".";
}

class Compare {
  constructor(app) {
    this.app = app;
    const { cost, costInBar: status, compared: sentence } = app.bar;
    Object.assign(this, { cost, status, sentence });
    for (const name of ["run", "data", "shown", "lanes", "state"]) app.on(name, () => this.changed());
    if (window.IntersectionObserver)
      new IntersectionObserver((entries) => {
        this.seen = entries.at(-1).isIntersecting;
        this.changed();
      }).observe(sentence.parentNode);
  }

  // Something may be different: what is another run's goes at once, what is this one's comes soon.
  changed() {
    const known = page.lanesOnScreen(this.app);
    this.cost.textContent = this.status.textContent = atSlider(this.app, known);
    if (this.run !== this.app.run?.id || !known.length) this.clear();
    this.dress();
    clearTimeout(this.timer);
    this.timer = setTimeout(
      () => this.ask(),
      this.seen ? Math.max(0, (this.asked || 0) + OFTEN - performance.now()) : REST,
    );
  }

  clear() {
    this.run = this.app.run?.id;
    this.key = this.sentence.textContent = "";
    this.mark(null);
  }

  // Gradio's section is hidden while what it shows is another run's, or of other settings.
  dress() {
    const section = document.getElementById("explorer-compare"),
      whose = section?.querySelector("[data-run]")?.dataset.run;
    const own = whose === this.app.run?.id && page.lanesOnScreen(this.app).length;
    section?.classList.toggle("other-run", Boolean(whose) && !own);
  }

  async ask() {
    const request = { run: this.app.run?.id, lanes: page.lanesOnScreen(this.app) };
    const key = JSON.stringify([
      request,
      this.app.lanes.map((lane) => lane.rows.length),
      this.app.run?.state,
    ]);
    if (this.busy || !request.lanes.length || key === this.key) return;
    this.busy = true;
    this.asked = performance.now();
    const answer = await page.call("explorer_compare", request);
    this.busy = false;
    if (this.app.run?.id !== request.run || !page.lanesOnScreen(this.app).length) return this.changed();
    if (answer.error) return; // the run's own pull says so
    this.key = key;
    this.sentence.textContent = answer.sentence;
    this.mark(answer);
    this.app.moments.compared(answer);
    this.changed();
  }

  // Marks where each lane parts in its chips and pictures, and says in its head how it stands to the
  // reference.
  mark(answer) {
    this.app.lanes.forEach((lane, index) => {
      const stands = answer?.lanes.find((other) => other.lane === index + 1);
      for (const drawing of lane.drawings) drawing.part(stands?.parting || null);
      const { badge = "", caption = "" } = stands?.relation || {};
      Object.assign(lane.relation, { hidden: !badge, textContent: badge, title: caption });
    });
  }
}

// Whether Compare is open: `now` where that has changed, else as it was left in this browser; at first it is,
// but not on a phone.
page.compareOpen = function (now) {
  const open = (page.stored(KEPT, now) ?? now ?? (window.innerWidth > PHONE ? "open" : "closed")) === "open";
  // Gradio does not say whether it is open.
  document.querySelector("#explorer-compare > button")?.setAttribute("aria-expanded", String(open));
  return open;
};

// The buttons beside texts: those that stand next to each other (explorer/export/comparison.py), and a lane's
// own.
async function copy(button) {
  const prose = button.closest("section").querySelector(".lane-text, .dp-prose"),
    copied = await page.copied(prose.textContent);
  if (!copied) getSelection().selectAllChildren(prose); // to be copied by hand
  button.textContent = copied ? "Copied" : "Press Ctrl+C or ⌘C";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}
document.addEventListener(
  "click",
  (event) => event.target.closest(":is(.texts-beside, .text-view) .copy") && copy(event.target),
);

page.addPart((app) => (app.compare = new Compare(app)));
