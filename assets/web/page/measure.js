// Measures how long a step takes from the server to its pixels here, in milliseconds; both clocks are the epoch's. The bench
// and the tests read `app.latencies`; nothing of it is seen or sent.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";

  page.measure = function (app) {
    const run = app.run, seen = new Map(), offset = Date.now() - performance.now();
    const look = () => {
      if (app.run !== run) return;
      let open = !run.over;
      for (const lane of app.lanes) {
        if (lane.view === "text" || lane.runIndex === null) continue;
        const painted = lane.scene.paintedStep, from = seen.get(lane) ?? -1;
        for (let step = from + 1; step <= painted && step < lane.rows.length; step++) {
          if (app.playback.following) app.latencies.push(lane.scene.lastPaint + offset - lane.rows[step].wall * 1000);
        }
        seen.set(lane, Math.max(from, painted));
        open = open || (app.playback.following && seen.get(lane) < lane.rows.length - 1);
      }
      if (open) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  };
})(window.ExplorerPage);
