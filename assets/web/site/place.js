// A page of the site with lanes: its address names what is on show (#view=entropy&step=12, #stop=2), so that
// it can be linked.
const parts = () => new URLSearchParams(location.hash.slice(1));

function follow(app) {
  const given = parts(),
    views = (given.get("view") || "").split(","),
    stop = Number(given.get("stop")),
    step = Number(given.get("step"));
  if (stop && app.guide?.lesson) app.guide.go(stop - 1);
  app.lanes.forEach((lane, at) => {
    if (lane.view !== views[at] && lane.offered().includes(views[at])) lane.showView(views[at]);
  });
  if (step) app.playback.seek(step, true);
}

function name(app) {
  const { guide, playback, lanes } = app,
    stop = guide?.lesson ? guide.index + 1 : 0,
    given = new URLSearchParams({
      ...(stop > 0 ? { stop } : {}),
      view: lanes.map((lane) => lane.view).join(),
      ...(playback.position < playback.ticks.length ? { step: playback.position } : {}),
    });
  history.replaceState(null, "", "#" + given.toString().replaceAll("%2C", ","));
}

page.addPart((app) => {
  let timer,
    followed = false;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => followed && name(app), 300); // browsers refuse many changes a second
  };
  app.on("data", () => {
    if (!followed && location.hash) setTimeout(() => follow(app));
    else if (!followed) setTimeout(() => app.playback.seek(app.playback.ticks.length, false));
    setTimeout(() => (followed = true), 100);
  });
  app.on("shown", () => followed && app.playback.position && soon());
  addEventListener("hashchange", () => follow(app));
});
