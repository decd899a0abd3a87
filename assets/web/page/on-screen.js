// Tells Gradio's components which run is on the page, which lanes of it and how many of their steps: as the value of a hidden
// component (explorer/page/tabs/on_screen.py), and only while one that follows the run can be seen. Draws nothing.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const LOOK = 250, REST = 500; // milliseconds between two looks at the page, between two messages

  function inSight(element) {
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && bottom > 0 && top < window.innerHeight;
  }

  function onScreen(app) {
    const numbered = app.lanes.map((lane, i) => [lane, i + 1]).filter(([lane]) => lane.runIndex !== null && lane.rows.length);
    const lanes = numbered.map(([lane, number]) => ({ lane: lane.runIndex, number, shown: lane.shown }));
    return JSON.stringify({ session: app.session, run: app.run.id, state: app.run.state, lanes });
  }

  // The component is there: `tell` gives it a value.
  page.followRun = function (tell) {
    const app = page.app;
    let told = "", at = 0;
    setInterval(() => {
      if (document.hidden || !app.run || page.connection.state !== "there" || performance.now() - at < REST) return;
      if (![...document.querySelectorAll(".follows-run")].some(inSight)) return;
      const text = onScreen(app);
      if (text === told) return;
      told = text;
      at = performance.now();
      tell(text);
    }, LOOK);
  };
})(window.ExplorerPage);
