// Below a lane's constraint, in its parameters: examples to begin from, and whether what is typed can be used, and where it is wrong.
const PAUSE = 300; // milliseconds without a key before the app is asked
const AROUND = 30; // characters shown on either side of a fault
const NAMES = ["constraint", "constraint_text", "constraint_white_space", "constraint_engine", "constraint_fast_forward", "constraint_bias", "constraint_bias_texts"];

// The line with the fault and a mark below it; empty where the fault has no place.
function place(text, { line, column }) {
  const whole = line ? text.split("\n")[line - 1] : undefined;
  if (whole === undefined || !column) return "";
  const from = Math.max(0, column - 1 - AROUND);
  return whole.slice(from, column - 1 + AROUND) + "\n" + " ".repeat(column - 1 - from) + "▲";
}

page.constraintTools = function (lane, fields) {
  const { app } = lane, says = h("p", { class: "help", role: "status" }), where = h("pre", { class: "fault", "aria-hidden": "true" });
  let timer, asked = 0;
  const given = () => Object.fromEntries(NAMES.filter((n) => n in lane.setup.parameters).map((n) => [n, lane.setup.parameters[n]]));
  async function check() {
    const mine = (asked += 1), parameters = given();
    if ((parameters.constraint || "none") === "none") return says.replaceChildren(), where.replaceChildren();
    const { error, good, sentence, line, column } = await page.call("explorer_constraint", { parameters, models: app.choice });
    if (mine !== asked) return;
    says.textContent = error || sentence;
    says.classList.toggle("wrong", !good);
    where.textContent = good || error ? "" : place(parameters.constraint_text || "", { line, column });
  }
  const examples = app.data.prompts.flatMap(({ title, lanes }) => (lanes || []).slice(0, 1).filter((one) => (one.parameters || {}).constraint).map((one) => [title, one]));
  const picker = h("select", { "aria-label": "Examples of constraints", onchange: () => {
    const { parameters } = examples[picker.selectedIndex - 1][1];
    NAMES.forEach((name) => delete lane.setup.parameters[name]);
    Object.assign(lane.setup.parameters, Object.fromEntries(NAMES.filter((n) => n in parameters).map((n) => [n, parameters[n]])));
    lane.describe();
    app.edited();
  } }, h("option", {}, "Examples …"), ...examples.map(([title]) => h("option", {}, title)));
  fields.forEach((field) => field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE);
  }));
  if (!app.data.saved) check();
  return h("div", { class: "parameter long" }, says, where, picker);
};
