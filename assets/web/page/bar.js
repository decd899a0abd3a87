// The bars above the lanes: what their parts do when people use them, and what they report to the app object.
// Their HTML is made by explorer/export/bars.py.
page.buildBar = function (app) {
  const { data, playback } = app,
    bar = page.made(data.bars);
  const on = (part, event, act) => part.addEventListener(event, act);
  bar.buttons = { run: bar.run, step: bar.step, pause: bar.pause, stop: bar.stop };
  for (const [name, button] of Object.entries(bar.buttons)) on(button, "click", () => app.press(name));
  bar.prompt.value = data.example.prompt;
  on(bar.prompt, "keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    app.press("run");
  });
  for (const field of [bar.prompt, bar.tokens]) on(field, "input", () => app.edited());
  on(bar.prompt, "blur", () => bar.prompt.scrollTo(0, 0)); // its first line stays in sight
  on(bar.more, "click", () =>
    bar.more.setAttribute("aria-expanded", String(bar.controls.classList.toggle("settings-open"))),
  );
  on(bar.play, "click", () => playback.togglePlay());
  on(bar.slider, "input", () => playback.seek(Number(bar.slider.value), true));
  on(bar.colour, "change", () => app.setColour(bar.colour.value));
  on(bar.foldLoops, "click", () => {
    const folded = !app.folded;
    bar.foldLoops.setAttribute("aria-pressed", String(folded));
    app.foldLoops(folded);
  });
  on(bar.add, "click", () => app.addLane());
  on(bar.theme, "click", () => app.chooseTheme(app.theme === "dark" ? "light" : "dark"));
  on(bar.unit, "change", ({ target }) => playback.setUnit(target.value));
  on(bar.speed, "change", ({ target }) => playback.setSpeed(target.value));
  // After a click ← and → are steps.
  on(bar.controls, "click", ({ target, detail }) => detail && target.type === "radio" && target.blur());
  offerExamples(app, bar.examples);
  // Until Gradio's are there (page.attach).
  on(bar.sections, "click", ({ target }) => target.value && app.showSection(target.value));
  return bar;
};

// A prompt alone, or with the lanes that show its point, which are decoded at once if the page has their
// models.
function offerExamples(app, picker) {
  picker.addEventListener("change", () => {
    const { prompt, max_new_tokens, lanes, message, ...given } = app.data.prompts[Number(picker.value)];
    const models = given.models || (page.isForeign(app) ? app.data.shipped.models : undefined);
    picker.selectedIndex = 0;
    app.fail("");
    app.applySetup(lanes ? { prompt, max_new_tokens, lanes, models } : { prompt });
    if (!lanes) return;
    app.remark(message);
    if (!models || page.sameModels({ ...app.choice, ...models }, app.choice)) app.press("run");
  });
  // The examples show what the models that come with the app have learned: with other models none is offered
  // as theirs but beginnings of stories.
  app.on("models", () => {
    const foreign = page.isForeign(app);
    for (const group of picker.querySelectorAll("optgroup")) {
      group.disabled &&= app.models.state !== "ready";
      group.dataset.label ??= group.label;
      const lanes = Boolean(app.data.prompts[group.firstChild.value].lanes);
      group.label = (foreign && lanes ? "llama-tiny: " : "") + group.dataset.label;
    }
    for (const option of picker.options)
      option.hidden = foreign && app.data.prompts[option.value]?.task === true;
  });
}

// Why the number of tokens in its field cannot be used, in a sentence; empty if it can. Marks the field.
page.wrongTokens = function ({ bar, data }) {
  const most = data.limits.max_new_tokens,
    text = bar.tokens.value.trim(),
    number = Number(text);
  const usable = text !== "" && Number.isInteger(number) && number >= 1 && number <= most;
  if (usable) bar.tokens.removeAttribute("aria-invalid");
  else bar.tokens.setAttribute("aria-invalid", "true");
  const none = bar.tokens.validity.badInput ? ": this is no number." : ": it is empty.",
    what = text === "" ? none : `, not ${text.slice(0, 20)}.`;
  return usable ? "" : `The number of tokens must be a whole number from 1 to ${most}${what}`;
};
