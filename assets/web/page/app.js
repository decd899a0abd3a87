// The page: holds what is chosen and what is shown, draws the stored run at once, and ties bars, lanes and
// the run together.
class App extends page.Emitter {
  constructor(root, data) {
    super();
    this.root = root;
    this.data = data;
    this.session = [...crypto.getRandomValues(new Uint8Array(18))]
      .map((byte) => byte.toString(16).padStart(2, "0"))
      .join("");
    this.strategies = new Map(data.strategies.map((s) => [s.name, s]));
    this.theme = document.documentElement.dataset.theme || "light";
    this.colour = "source";
    this.folded = false; // whether the loops of texts are
    this.lanes = [];
    this.run = null;
    this.notices = {}; // see status.js
    this.models = { state: "loading", sentence: "Loading the models …" };
    this.choice = page.completeChoice(data.models);
    this.chat = null; // or {system}: the prompt is a message for the target's chat template
    this.expecting = false; // whether a link is about to bring a set-up
    this.asked = null; // the models that what was opened last asks for
    this.playback = new page.Playback(this);
    this.phoneLane = 0;
    this.bar = page.buildBar(this);
    this.main = this.bar.main;
    this.inspector = new page.Inspector(this);
    this.section = "decode"; // the tab on show
    for (const setup of this.data.example.lanes) this.lanes.push(new page.LanePane(this, setup));
    this.root.replaceChildren(this.bar.root, this.bar.models, this.bar.content, this.inspector.root);
    for (const build of page.parts) build(this);
    this.arrange();
    this.status();
    this.themeChosen = Boolean(page.stored("explorer-theme")); // until then the system's is followed
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.themeChosen || this.setTheme(dark.matches ? "dark" : "light"));
  }

  // Chooses one of Gradio's tabs, as soon as they are there; resolves when it is on screen.
  async showSection(name) {
    this.wanted = name;
    const tab = document.getElementById("explorer-tab-" + name + "-button");
    if (!tab || name === this.section || !document.documentElement.classList.contains("explorer-home-ready"))
      return; // see page.attach
    tab.click();
    this.arrive(name);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }

  // A tab has been chosen: by showSection, or by hand.
  arrive(name) {
    const panel = document.getElementById("explorer-tab-" + name);
    // It may not have been there when showSection asked.
    if (panel) panel.setAttribute("aria-labelledby", panel.id + "-button");
    this.section = this.wanted = name;
  }

  // The stored run, as soon as the player is there; none where the app has other models than it, or where a
  // link is about to bring another set-up.
  drawExample() {
    const { run, answer } = this.data.example;
    for (const lane of this.lanes) if (!lane.scene) lane.makeDrawings();
    if (answer && !this.expecting) this.adopt(run, answer);
  }

  // Shows a run that is done already and whose settings are the page's: `answer` is a pull's answer from its
  // beginning.
  adopt(runId, answer) {
    this.show(new page.Run(this, runId, "done"), this.lanes.length);
    this.run.stored = true;
    this.run.models = this.asked;
    this.take(answer);
    this.status();
  }

  // From here on the page shows `run`, which has the first `count` lanes and the settings of now.
  show(run, count) {
    run.count = count;
    this.playback.rewind();
    this.run = run;
    this.runKey = this.settingsKey();
    this.fail(""); // what was wrong before is not said of this run
    this.inspector.hide();
    this.lanes.forEach((lane, index) => {
      if (index < count) lane.empty(index);
      lane.drawHint();
    });
    this.emit("run", run);
  }

  // A lane has come to the run, a branch of `parent`, in the place of `instead` if there is one: `answer` is
  // the server's, {run, lane, setup}.
  grow(answer, parent, instead) {
    const unchanged = this.runKey === this.settingsKey(),
      paused = this.run.state === "paused";
    if (instead) this.removeLane(instead);
    const lane = new page.LanePane(this, { ...answer.setup, view: parent.view });
    lane.flag = answer.flag && `lane ${this.lanes.indexOf(parent) + 1}, ${answer.flag}`;
    lane.drawLine();
    const run = new page.Run(this, answer.run, paused ? "paused" : "running");
    run.count = Math.max(this.run.count, answer.lane + 1);
    run.choice = this.run.choice;
    this.run = run; // what the run before still answers is too late
    this.lanes.push(lane);
    lane.empty(answer.lane);
    if (unchanged) this.runKey = this.settingsKey();
    this.phoneLane = this.lanes.length - 1;
    this.arrange();
    this.playback.catchUp();
    run.follow();
    this.emit("run", run);
    this.status();
    lane.element.scrollIntoView({ block: "nearest" });
  }

  // ---- settings -------------------------------------------------------------------------------------------

  request() {
    const tokens = this.bar.tokens.value.trim();
    return {
      prompt: this.bar.prompt.value,
      max_new_tokens: tokens !== "" && Number.isFinite(Number(tokens)) ? Number(tokens) : tokens,
      lanes: this.lanes.map((lane) => ({
        strategy: lane.setup.strategy,
        parameters: lane.setup.parameters,
        seed: lane.setup.seed,
        ...(lane.setup.begin ? { begin: lane.setup.begin } : {}),
      })),
      models: this.choice,
      chat: this.chat,
    };
  }

  // All that a link, a lesson or a saved run needs to bring this page back: what `applySetup` takes.
  setup() {
    const lanes = this.lanes.map((lane) => ({ ...lane.setup, view: lane.view })),
      conditions = this.stopWhen?.conditions ?? [];
    return { ...this.request(), lanes, ...(conditions.length ? { stop_when: conditions } : {}) };
  }

  // Puts prompt, length and lanes in place (what is left out stays) and shows them; runs nothing, asks for
  // other models.
  applySetup(setup) {
    if (setup.prompt !== undefined) this.bar.prompt.value = setup.prompt;
    if (setup.max_new_tokens !== undefined) this.bar.tokens.value = String(setup.max_new_tokens);
    if (setup.chat !== undefined) this.chat = setup.chat;
    if (setup.lanes) this.stopWhen?.restore(setup.stop_when ?? []);
    if (setup.lanes) {
      if (this.run && !this.run.over) this.run.control("stop"); // no lane shows it any more
      for (const lane of this.lanes) lane.element.remove();
      this.lanes = setup.lanes.slice(0, this.data.limits.lanes).map((lane) => new page.LanePane(this, lane));
      this.phoneLane = 0;
    }
    this.arrange();
    if (setup.lanes) this.playback.rewind();
    this.playback.count();
    if (setup.lanes) this.playback.seek(0, false);
    this.edited();
    this.showSection("decode");
    this.asked = setup.models || null;
    this.ask(setup.models, setup.chat);
  }

  // A sentence that stands in the status line until the settings are others.
  remark(text) {
    this.remarked = { text, key: this.settingsKey() };
    this.edited();
  }

  // What a run depends on, as text: another text means that Run starts another run.
  settingsKey() {
    return JSON.stringify(this.request());
  }

  // Whether other models were chosen than those whose run the lanes show.
  outdated() {
    const { run, choice } = this;
    return (
      Boolean(run) &&
      !page.sameModels(run.choice, choice) &&
      !(run.models && page.sameModels(run.models, choice))
    );
  }

  // The models whose run the lanes show, by their short names.
  whose() {
    return page.shortNames(page.completeChoice(this.run.models || this.run.choice));
  }

  // Whether prompt or length are others than those of the run.
  retyped() {
    const text = ({ prompt, max_new_tokens, chat }) => JSON.stringify([prompt, max_new_tokens, chat]);
    if (this.runKey !== this.retypedFor)
      [this.retypedFor, this.runText] = [this.runKey, text(JSON.parse(this.runKey))];
    return this.runText !== text(this.request());
  }

  // Why a lane with its present settings was refused when Run was pressed.
  refusal(lane) {
    return this.refused && this.refused.key === this.settingsKey()
      ? this.refused.lanes[this.lanes.indexOf(lane)]
      : null;
  }

  edited() {
    if (this.failedFor !== this.settingsKey()) this.fail(page.wrongTokens(this));
    this.lanes.forEach((lane) => lane.drawHint());
    this.status();
  }

  // Another lane, with a setup or with a strategy that differs from those that are there.
  addLane(setup) {
    if (this.lanes.length >= this.data.limits.lanes) return;
    this.lanes.push(new page.LanePane(this, setup || { strategy: page.contrast(this).name }));
    this.phoneLane = this.lanes.length - 1;
    this.arrange();
    this.edited();
  }

  // A strategy of another tab in a lane of its own while there is room, else in place of the last one; asks
  // for the models that it needs.
  async openInLane(strategy, models) {
    if (this.lanes.length < this.data.limits.lanes) this.addLane({ strategy });
    else this.lanes.at(-1).choose(strategy);
    await this.goTo(this.lanes.at(-1), this.lanes.at(-1).picker);
    if (models) this.ask(models);
  }

  // To a lane, from wherever on the page; `focused` is the part of it that gets the focus.
  async goTo(lane, focused = lane.element, block = "nearest") {
    await this.showSection("decode");
    this.front(this.lanes.indexOf(lane));
    lane.element.scrollIntoView({ block });
    lane.element.tabIndex = -1;
    focused.focus({ preventScroll: true });
  }

  removeLane(lane) {
    if (this.lanes.length === 1) return;
    this.lanes.splice(this.lanes.indexOf(lane), 1);
    lane.element.remove();
    this.arrange();
    this.playback.count();
    this.edited();
  }

  arrange() {
    this.main.dataset.count = String(this.lanes.length);
    this.lanes.forEach((lane, index) => {
      lane.rename(index);
      lane.remove.disabled = this.lanes.length === 1;
      if (lane.element.parentNode !== this.main) this.main.append(lane.element);
    });
    this.bar.add.disabled = this.lanes.length >= this.data.limits.lanes;
    this.phoneLane = Math.min(this.phoneLane, this.lanes.length - 1);
    this.drawLaneButtons();
    this.emit("lanes");
  }

  // The lane that is shown where there is room for one.
  front(index) {
    this.phoneLane = index;
    this.drawLaneButtons();
  }

  drawLaneButtons() {
    const { saved, limits } = this.data,
      more = !saved && this.lanes.length < limits.lanes;
    this.bar.laneButtons.hidden = this.lanes.length === 1 && !more;
    this.lanes.forEach((lane, index) => lane.element.classList.toggle("current", index === this.phoneLane));
    this.bar.laneButtons.replaceChildren(
      ...this.lanes.map((lane, index) =>
        h(
          "button",
          {
            type: "button",
            "aria-pressed": String(index === this.phoneLane),
            onclick: () => this.front(index),
          },
          index + 1 + " " + lane.title(),
        ),
      ),
      ...(more
        ? [h("button", { type: "button", class: "add-lane", onclick: () => this.addLane() }, "+ Lane")]
        : []),
    );
  }

  setTheme(theme) {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
    this.lanes.forEach((lane) => lane.theme(theme));
    this.emit("theme");
  }

  // By hand: this theme stays.
  chooseTheme(theme) {
    this.themeChosen = true;
    page.stored("explorer-theme", theme);
    this.setTheme(theme);
  }

  async setColour(colour) {
    this.colour = colour;
    for (const lane of this.lanes) await lane.colour(colour);
  }

  foldLoops(folded) {
    this.folded = folded;
    for (const { chips, text } of this.lanes) for (const each of [chips, text]) each?.fold(folded);
  }

  // ---- the run --------------------------------------------------------------------------------------------

  async press(name) {
    this.fail("");
    if (this.data.saved) return this.playback.togglePlay();
    const open = this.run && !this.run.over;
    if (name === "pause" || name === "stop") {
      if (name === "pause") this.playback.stopPlaying();
      if (open) await this.run.control(name);
    } else if (open && this.runKey === this.settingsKey()) {
      this.playback.catchUp();
      await this.run.control(name === "run" ? "resume" : "step");
    } else await this.begin(name === "run" ? "running" : "paused");
  }

  async begin(state) {
    if (this.starting || this.expecting) return;
    if (!this.bar.prompt.value)
      return this.fail("The prompt is empty: write the beginning of a text, for example Once upon a time.");
    const wrong = page.wrongTokens(this);
    if (wrong) return this.fail(wrong);
    this.starting = true;
    this.status();
    const key = this.settingsKey();
    try {
      const before = this.run && !this.run.over ? this.run : null,
        count = this.lanes.length;
      const run = await page.start(this, state);
      this.lanes.forEach((lane) => lane.drawHint());
      if (!run) return;
      if (before) page.call("explorer_control", { run: before.id, action: "stop" });
      for (const lane of this.lanes) if (!this.refusal(lane)) lane.begins();
      this.show(run, count);
      this.runKey = key;
      run.follow();
      if (this.playback.speed !== "live" && state === "running") this.playback.togglePlay();
    } finally {
      this.starting = false;
      this.status();
    }
  }

  // Takes a pull's answer.
  take(answer) {
    for (const lane of this.lanes) if (lane.runIndex !== null) lane.feed(answer.lanes[lane.runIndex]);
    this.run.stopped = answer.stopped ?? null; // at which breakpoint
    // How many steps are decoded, where not all of them came with this answer.
    this.run.decoded = answer.more ? Math.max(...answer.lanes.map((lane) => lane.count)) : null;
    const { playback } = this,
      newest = playback.following && !playback.playing;
    playback.count();
    playback.seek(newest ? playback.ticks.length : playback.position, false);
    this.emit("data");
    this.status();
    if (answer.more && this.run.over) this.refresh(); // a large picture comes in pieces
  }

  // Asks again at once, for instance for a view that has just been chosen.
  refresh() {
    return this.run && this.run.pull(0);
  }

  fail(sentence) {
    // Then it is over when the app is back.
    this.failedFor = this.settingsKey();
    this.failedAway = Boolean(sentence) && page.connection.state !== "there";
    this.bar.alert.textContent = sentence;
  }

  state() {
    return this.starting ? "starting" : this.run && !this.run.stored ? this.run.state : "none";
  }

  status() {
    const makeSense = this.data.buttons[this.state()],
      barred = this.expecting || page.wrongTokens(this) !== "";
    for (const [name, button] of Object.entries(this.bar.buttons))
      button.disabled = !makeSense.includes(name) || (barred && (name === "run" || name === "step"));
    page.say(this);
    this.emit("state");
  }

  // ---- the server is there --------------------------------------------------------------------------------

  // The lanes with which the page has opened, if nobody touched them, become ones that the models can run; so
  // do the other settings, and the first run starts.
  async openWith(lanes) {
    const setups = JSON.stringify(
      this.data.example.lanes.map(({ strategy, parameters }) => [strategy, parameters]),
    );
    if (JSON.stringify(this.lanes.map(({ setup }) => [setup.strategy, setup.parameters])) !== setups) return;
    lanes.forEach(({ strategy, parameters }, index) => this.lanes[index].choose(strategy, parameters));
    this.lanes.slice(lanes.length).forEach((lane) => this.removeLane(lane));
    if (location.hash || this.asked || !(await this.suit())) return;
    if (!this.run && !this.starting) await this.press("run");
  }

  async greet() {
    for (;;) {
      const answer = await page.patient("explorer_hello", {});
      if (answer.error) return this.fail(answer.error);
      this.models = answer;
      // What came with a file stays.
      for (const declared of answer.strategies || []) this.strategies.set(declared.name, declared);
      Object.assign(this.data.fields, answer.fields);
      if (answer.strategies) for (const lane of this.lanes) lane.describe();
      if (answer.opening && !this.run && !this.starting) this.openWith(answer.opening);
      this.emit("models");
      this.status();
      if (answer.state !== "loading") return this.emit("greeted");
    }
  }
}

// The frame of the page, before the player is read.
page.boot = function (data) {
  page.app = new App(document.getElementById("explorer"), data);
  window.decodingExplorer = {
    app: page.app,
    get lanes() {
      return page.app.lanes.map((lane) => ({
        scene: lane.scene,
        chips: lane.chips,
        rows: lane.rows,
        shown: lane.shown,
        count: lane.rows.length,
        strategy: lane.setup.strategy,
        view: lane.view,
        ended: lane.answerState.ended,
      }));
    },
    get state() {
      return page.app.state();
    },
    get run() {
      return page.app.run && page.app.run.id;
    },
    call: page.call,
  };
};

// The stored run, once the player is here.
page.draw = function () {
  page.app.drawExample();
  for (const lane of page.app.lanes) for (const drawing of [lane.chips, lane.drawing()]) drawing.draw();
  requestAnimationFrame(() => setTimeout(startGradio, 0));
};

// Gradio's front end starts when our picture is on the screen; see Inject in explorer/page/serve.py.
function startGradio() {
  // A task after the frame: the first picture is on the screen.
  window.decodingExplorer.drawn = performance.now();
  const next = document.getElementById("explorer-next");
  if (next) document.head.append(h("script", { type: "module", crossorigin: "", src: next.href }));
}

// A saved page unpacks its own: assets/web/replay/offline.js.
const data = document.getElementById("explorer-data");
if (data) page.boot(JSON.parse(data.textContent));
