// What someone sees who opens the page for the first time: one sentence on what this is, and the recorded run
// replayed for some ten seconds up to the first drafted token that the target rejected, with the card of that
// token. Any press ends the replay.
const SEEN = "explorer-welcome"; // in this browser
const SECONDS = 10,
  SLOWEST = 2; // of the whole replay, and of one step
const PRESSES = ["pointerdown", "keydown"];

// Replays the run up to the fork, unless the notice goes, as it does when something is pressed; resolves to
// whether it came there.
async function replay(app, fork, done) {
  const pause = 1000 * Math.min(SLOWEST, SECONDS / fork.step),
    lane = app.lanes[fork.lane];
  const press = (event) => event.target.closest?.(".offers") || done();
  for (const kind of PRESSES) document.addEventListener(kind, press, true);
  while (app.notices.welcome && lane.shown < fork.step) {
    await new Promise((end) => setTimeout(end, pause));
    if (app.notices.welcome) app.playback.seek(app.playback.position + 1, true);
  }
  for (const kind of PRESSES) document.removeEventListener(kind, press, true);
  return Boolean(app.notices.welcome);
}

function showFork(lane, node) {
  const { scene } = lane,
    look = () => {
      if (scene.waiting) return requestAnimationFrame(look);
      const mark = scene.marksAt(lane.shown - 1).find((one) => one.node === node);
      if (mark) player.showCard(scene, mark);
    };
  requestAnimationFrame(look);
}

async function welcome(app) {
  const { fork } = app.data; // null where the target rejected nothing
  if (!fork) return;
  page.stored(SEEN, "yes");
  const say = (text, offers) => page.notice(app, "welcome", { text, offers });
  const done = () => page.notice(app, "welcome", null);
  const all = () => {
    done();
    player.hideCard(app.lanes[fork.lane].scene);
    app.playback.seek(app.playback.ticks.length, true);
  };
  app.on("state", () => app.state() === "none" || !app.notices.welcome || done());
  app.front(fork.lane);
  app.playback.seek(1, true);
  say("A recorded run, slowly: two strategies write a text with the same model.", [
    ["Skip", "Show the whole run", all],
  ]);
  if (!(await replay(app, fork, done))) return;
  showFork(app.lanes[fork.lane], fork.node);
  const ways = matchMedia("(pointer: coarse)").matches ? "Touch" : "Point at";
  say(
    `The draft model guessed “${fork.rejected}”; the target rejected it and wrote “${fork.instead}”. ` +
      `${ways} any token, drag the slider, or press Run.`,
    [["Show all", "Show the whole run", all]],
  );
}

page.addLivePart((app) => {
  const { about, hideAbout } = app.bar;
  hideAbout.addEventListener("click", () => {
    page.stored(SEEN, "closed");
    about.remove();
  });
  if (page.stored(SEEN) === null) app.bar.decode.prepend(about); // who comes again knows what this is
  let first =
    page.stored(SEEN) === null && !location.hash && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  app.on("data", () => {
    const now = first && app.run.stored;
    first = false;
    if (now) welcome(app);
  });
});
