// The bars above the lanes: prompt and buttons, the slider and how it counts, status and errors. Builds DOM and reports
// what people do to the app object; knows nothing of runs or drawing.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";

  const { h, choice, labelled } = page;

  const SPEEDS = [["1", "1×", "Plays two steps per second"], ["4", "4×", "Plays eight steps per second"],
    ["live", "live", "Shows each step as soon as it is decoded"]];
  const UNITS = [["step", "step", "Lanes are lined up by their steps"],
    ["forwards", "target forwards", "Lanes are lined up by how often the target model ran: a race at equal cost"],
    ["target_tokens", "target tokens", "Lanes are lined up by how many tokens the target model evaluated"],
    ["seconds", "seconds", "Lanes are lined up by their computing time"]];
  const COLOURS = [["source", "where it came from"], ["entropy", "entropy"], ["logprob", "log-probability"]];

  page.buildBar = function (app) {
    const data = app.data, bar = {};
    bar.prompt = h("textarea", { id: "explorer-prompt", rows: "1", "aria-label": "Prompt", spellcheck: "false",
      placeholder: "Write the beginning of a text", value: app.prompt });
    bar.prompt.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      app.press("run");
    });
    bar.prompt.addEventListener("input", () => app.edited());
    bar.prompt.addEventListener("blur", () => bar.prompt.scrollTo(0, 0)); // its first line stays in sight
    bar.examples = examples(app);
    bar.tokens = h("input", { type: "number", min: "1", max: String(data.limits.max_new_tokens), step: "1",
      value: String(app.maxNewTokens), "aria-label": "max_new_tokens", title: "How many tokens each lane may write",
      oninput: () => app.edited() });
    bar.models = h("div", { class: "models" }, page.titleOfModels(data.models), data.saved ? null : h("span", {}, "◀"));
    bar.buttons = {};
    const says = { run: ["Run", "Decode, or continue (space)"], step: ["Step", "Every lane does one step, then waits"],
      pause: ["Pause", "Hold all lanes (space)"], stop: ["Stop", "End this run; what was decoded stays"] };
    for (const [name, [text, title]] of Object.entries(says)) {
      bar.buttons[name] = h("button", { type: "button", title, class: name === "run" ? "primary" : "", onclick: () => app.press(name) }, text);
    }
    bar.more = h("button", { type: "button", class: "more", "aria-label": "Settings", "aria-expanded": "false", title: "Settings", onclick: () => {
      const open = bar.controls.classList.toggle("settings-open");
      bar.more.setAttribute("aria-expanded", String(open));
    } }, "⚙");

    bar.unit = choice("Line up lanes by", UNITS, app.playback.unit, (unit) => app.playback.setUnit(unit));
    bar.play = h("button", { type: "button", class: "play", "aria-label": "Play", title: "Replay what is here", onclick: () => app.playback.togglePlay() }, "▶");
    bar.slider = h("input", { type: "range", min: "0", max: "0", step: "1", value: "0", "aria-label": "Step position",
      oninput: () => app.playback.seek(Number(bar.slider.value), true) });
    bar.where = h("output", { class: "where" });
    bar.speed = choice("Speed", SPEEDS, app.playback.speed, (speed) => app.playback.setSpeed(speed));
    bar.colour = h("select", { "aria-label": "Colour tokens by", title: "What the colour of a token shows",
      onchange: () => app.setColour(bar.colour.value) }, ...COLOURS.map(([value, text]) => h("option", { value }, text)));
    bar.add = h("button", { type: "button", onclick: () => app.addLane() }, "+ Lane");
    bar.theme = h("button", { type: "button", class: "theme", "aria-label": "Switch between light and dark", title: "Light or dark",
      onclick: () => app.chooseTheme(app.theme === "dark" ? "light" : "dark") }, "◐");

    bar.status = h("div", { class: "status-text", role: "status" });
    bar.alert = h("div", { class: "alert", role: "alert" });
    bar.offers = h("div", { class: "offers", role: "group", "aria-label": "What you can do", hidden: true });
    bar.laneButtons = h("nav", { class: "lane-buttons", "aria-label": "Lanes" });

    // What Gradio's tabs look like, until they are there (page.attach); a saved page has none.
    bar.sections = h("div", { class: "sections" }, ...(data.tabs || []).map(([name, title], index) =>
      h("button", { type: "button", "aria-pressed": String(!index), onclick: () => app.showSection(name) }, title)));
    bar.root = h("header", { class: "top" }, h("h1", { class: "brand" }, "Decoding Explorer"), bar.sections, h("div", { class: "tools" }, bar.theme));
    bar.controls = h("div", { class: "bars" },
      h("div", { class: "bar first" }, bar.prompt,
        h("div", { class: "settings" }, bar.examples, labelled("tokens", bar.tokens, "tokens")),
        h("div", { class: "buttons" }, ...Object.values(bar.buttons), bar.more)),
      h("div", { class: "bar second" },
        h("div", { class: "settings" }, bar.unit.element),
        bar.play, bar.slider, bar.where,
        h("div", { class: "settings" }, bar.speed.element, labelled("colour by", bar.colour), bar.add)),
      h("div", { class: "bar status" }, bar.status, bar.alert, bar.offers), bar.laneButtons);
    return bar;
  };

  // The examples by what they show: a prompt alone, or with the lanes that show its point, which are decoded at once if the page
  // has their models.
  function examples(app) {
    const { prompts } = app.data, groups = [...new Set(prompts.map((one) => one.group))].map((label) => {
      const members = prompts.filter((one) => one.group === label);
      return h("optgroup", { label, disabled: Boolean(members[0].lanes) },
        ...members.map((one) => h("option", { value: prompts.indexOf(one), title: one.says || "" }, one.title)));
    });
    const picker = h("select", { "aria-label": "Example prompts", onchange: () => {
      const { prompt, max_new_tokens, lanes, says, models } = prompts[Number(picker.value)];
      picker.selectedIndex = 0;
      app.fail("");
      app.applySetup(lanes ? { prompt, max_new_tokens, lanes, models } : { prompt });
      if (!lanes) return;
      app.remark(says);
      if (!models || page.sameModels({ ...app.choice, ...models }, app.choice)) app.press("run");
    } }, h("option", { value: "" }, "Examples"), ...groups);
    app.on("models", () => groups.forEach((group) => (group.disabled = group.disabled && app.models.state !== "ready")));
    return picker;
  }

  // Which buttons make sense now.
  page.enable = function (bar, state) {
    const running = state === "running", open = running || state === "paused";
    bar.buttons.pause.disabled = !running;
    bar.buttons.stop.disabled = !open;
    bar.buttons.run.disabled = running || state === "starting";
    bar.buttons.step.disabled = state === "starting";
    bar.buttons.run.title = state === "paused" ? "Go on (space)" : "Decode (space)";
  };
})(window.ExplorerPage);
