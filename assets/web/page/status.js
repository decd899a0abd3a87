// What the status line says: how the run stands or, before that, a notice: something that has happened to the
// page, with buttons for what can be done about it. Who finds something out gives the notice and takes it
// back.
const LONG = 10; // seconds: what takes longer is announced
const ORDER = ["connection", "link", "run", "before", "welcome"]; // whose notice comes first

// How far the page is, where it cannot draw as fast as the app decodes.
function behind(app) {
  const { decoded } = app.run || {};
  const step = Math.max(...app.lanes.map((lane) => lane.rows.length));
  return decoded ? ` This page is at step ${step} of ${decoded} and catches up.` : "";
}

// How long the run will take at most, once two steps of a lane have been measured, if that is long.
function pace(app) {
  const tokens = JSON.parse(app.runKey).max_new_tokens,
    left = [];
  for (const { rows, answerState } of app.lanes) {
    if (rows.length < 2 || answerState.ended) continue;
    const step = (rows.at(-1).wall - rows[0].wall) / (rows.length - 1);
    left.push([(tokens - rows.length) * step, step]);
  }
  const [most, step] = left.sort(([a], [b]) => b - a)[0] || [0, 0];
  if (most < LONG) return "";
  const wait = most < 100 ? `${Math.round(most)} s` : `${Math.round(most / 60)} min`;
  return ` ${step.toPrecision(2)} s per step of a lane: at most ${wait} more.`;
}

// How much of a long text the first lane has read that is reading one.
function reading(app) {
  const lane = app.lanes.findIndex(({ answerState }) => answerState.reading);
  if (lane < 0) return "";
  const [read, of] = app.lanes[lane].answerState.reading.map((count) => count.toLocaleString("en-US"));
  return ` Lane ${lane + 1} has read ${read} of ${of} tokens.`;
}

// How the run stands.
function standing(app) {
  const state = app.state(),
    { run, models, data } = app;
  const loading = models.state === "loading",
    broken = models.state === "failed";
  const starting = loading ? models.sentence : app.loads || "Starting …",
    texts = { ...data.standing, starting };
  texts.none = run?.message || texts.none;
  if (run?.following) texts.running = run.message;
  if (run?.stopped) texts.paused = run.stopped + " Run continues.";
  if (state === "running") texts.running += behind(app) || reading(app) || pace(app);
  const settings = app.settingsKey(),
    other = run && app.runKey !== settings;
  const extra = loading && state === "none" ? " " + models.sentence : broken ? " " + models.sentence : "";
  const changed =
    other && state !== "none" && state !== "starting"
      ? " The settings have changed: press Run to decode with them."
      : "";
  const mute = app.lanes.findIndex((lane) => lane.answerState.problem),
    why = mute < 0 || state === "failed" ? "" : ` Lane ${mute + 1} says why it stopped.`;
  const remark = app.remarked && app.remarked.key === settings ? app.remarked.text + " " : "";
  if (app.lanes.every((lane) => lane.runIndex === null) && state !== "starting")
    return remark + "Press Run to decode this set-up." + (loading ? " " + models.sentence : "");
  if (app.outdated() && state !== "starting")
    return remark + `The lanes still show a run of ${app.whose()}: press Run.`;
  return (
    remark + (remark && (other || state === "none") ? "Press Run." : texts[state] + why + extra + changed)
  );
}

// Writes the line, and touches nothing that stands there already: what has not changed is not read out again.
page.say = function (app) {
  const { status, offers } = app.bar,
    notice = ORDER.map((whose) => app.notices[whose]).find(Boolean);
  const text = notice ? notice.text : standing(app);
  if (status.textContent !== text) status.title = status.textContent = text;
  const buttons = notice ? notice.offers : [],
    names = buttons.map(([name]) => name).join("");
  if (offers.textContent !== names)
    offers.replaceChildren(...buttons.map(([name, title]) => h("button", { type: "button", title }, name)));
  offers.onclick = ({ target }) => buttons[[...offers.children].indexOf(target)]?.[2]();
};

// Gives a notice, `{text, offers: [[name, title, what to do]]}`, or takes it back.
page.notice = function (app, whose, notice) {
  app.notices[whose] = notice ? { offers: [], ...notice } : null;
  app.status();
};
