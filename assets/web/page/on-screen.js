// Tells Gradio's components which run is on the page, which lanes of it and how many of their steps: as the
// values of hidden components (explorer/page/tabs/on_screen.py), each only while what follows the run in its
// tab can be seen. Draws nothing.
const LOOK = 250,
  REST = 500,
  LONGEST = 3000; // milliseconds between two looks at the page; at least and at most between two messages
const SHARE = 4; // times as long as drawing kept the page busy, it is left alone afterwards

function inSight(element) {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && bottom > 0 && top < window.innerHeight;
}

// Whether the settings are others than those of the run. Lanes that came or went change nothing for the
// others.
const changed = (app) => app.lanes.some((lane) => lane.stale());

// The lanes of the run on the page, as the server is asked about them.
function lanesOf(app) {
  const numbered = app.lanes
    .map((lane, i) => [lane, i + 1])
    .filter(([lane]) => lane.runIndex !== null && lane.rows.length);
  return numbered.map(([lane, number]) => ({ lane: lane.runIndex, number, shown: lane.shown }));
}

// The same, none as soon as the settings are others than the run's.
page.lanesOnScreen = (app) => (app.run && !changed(app) ? lanesOf(app) : []);

page.onScreen = (app) => ({
  session: app.session,
  run: app.run.id,
  state: app.run.state,
  current: !changed(app),
  lanes: lanesOf(app),
});

// Tells, now and then while an element can be seen, that what it shows may have changed.
page.whileSeen = function (selector, milliseconds, tell) {
  let number = 0;
  setInterval(() => {
    if (document.hidden || page.connection.state !== "there") return;
    if ([...document.querySelectorAll(selector)].some(inSight))
      tell(JSON.stringify({ session: page.app.session, number: ++number }));
  }, milliseconds);
};

// The component is there: `tell` gives it a value while a column that matches `column` can be seen.
page.followRun = function (tell, column) {
  const app = page.app;
  let sent = "",
    at = 0,
    before = performance.now(),
    busy = 0;
  setInterval(() => {
    const now = performance.now();
    busy += Math.max(0, now - before - LOOK); // the clock is late where something is drawn
    before = now;
    const rest = Math.min(Math.max(REST, SHARE * busy), LONGEST);
    if (document.hidden || page.connection.state !== "there" || now - at < rest) return;
    const text = app.run ? JSON.stringify(page.onScreen(app)) : "no run";
    // In this order: places cost a layout of the page.
    if (text === sent || ![...document.querySelectorAll(column)].some(inSight)) return;
    sent = text;
    at = now;
    busy = 0;
    tell(text);
  }, LOOK);
};
