// Below a lane's constraint, in its parameters: examples to start from, whether the typed text can be used,
// and where it is wrong.
const PAUSE = 300; // milliseconds without a key before the app is asked

// `fold`: what holds the fields of the constraint, which are asked about when one of them changes.
page.constraintTools = function (lane, fold) {
  const { app } = lane,
    { tools, message, where, examples } = page.made(app.data.frames.constraint);
  let timer,
    asked = 0;
  const names = [...fold.querySelectorAll("[name]")].map((field) => field.name);
  const own = (parameters) =>
    Object.fromEntries(names.filter((name) => name in parameters).map((name) => [name, parameters[name]]));
  async function check() {
    const mine = (asked += 1),
      parameters = own(lane.setup.parameters);
    message.textContent = where.textContent = "";
    if ((parameters.constraint || "none") === "none") return;
    const { error, good, sentence, fault } = await page.call("explorer_constraint", {
      parameters,
      models: app.choice,
    });
    if (mine !== asked) return;
    message.textContent = error || sentence;
    message.classList.toggle("wrong", !good);
    where.textContent = fault || "";
  }
  examples.addEventListener("change", () => {
    names.forEach((name) => delete lane.setup.parameters[name]);
    Object.assign(lane.setup.parameters, own(app.data.prompts[examples.value].lanes[0].parameters));
    lane.describe();
    app.edited();
  });
  fold.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  });
  if (!app.data.saved) check();
  return tools;
};
