// The page: holds what is chosen and what is shown, draws the stored run at once, and ties bars, lanes and the run together.
// Knows nothing of strategies but their declarations, and nothing of how marks are drawn.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const RATES = { 1: 2, 4: 8 }; // steps a second in playback
  const KEYS = { step: (row, index) => index + 1, forwards: (row) => row.t, seconds: (row) => row.seconds };

  class App {
    constructor(root, data) {
      this.root = root;
      this.data = data;
      this.session = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);
      this.strategies = new Map(data.strategies.map((s) => [s.name, s]));
      this.theme = document.documentElement.dataset.theme || "light";
      this.unit = "step";
      this.speed = "live";
      this.colour = "source";
      this.prompt = data.example.prompt;
      this.maxNewTokens = data.example.max_new_tokens;
      this.lanes = [];
      this.run = null;
      this.models = { state: "loading", sentence: "Loading the models …" };
      this.ticks = [];
      this.position = 0;
      this.following = true;
      this.playing = null;
      this.latencies = [];
      this.phoneLane = 0;
      this.build();
    }

    build() {
      this.bar = page.buildBar(this);
      this.main = h("main", { class: "lanes" });
      this.inspector = page.buildInspector(this);
      this.root.replaceChildren(this.bar.root, this.main, this.inspector.root);
      for (const setup of this.data.example.lanes) this.lanes.push(new page.LanePane(this, setup));
      this.arrange();
      document.addEventListener("keydown", (event) => this.key(event));
      this.status();
    }

    // The stored run, as soon as the player is there.
    drawExample() {
      const example = this.data.example;
      this.run = new page.Run(this, example.run, "done");
      this.run.count = example.lanes.length;
      this.run.stored = true;
      this.lanes.forEach((lane, index) => {
        lane.makeDrawings();
        lane.empty(index);
      });
      this.take(example.answer);
      this.runKey = this.settingsKey();
      this.status();
    }

    // ---- settings -------------------------------------------------------------------------------------------------

    request() {
      const tokens = this.bar.tokens.value.trim();
      return {
        prompt: this.bar.prompt.value, max_new_tokens: tokens !== "" && Number.isFinite(Number(tokens)) ? Number(tokens) : tokens,
        lanes: this.lanes.map((lane) => ({ strategy: lane.setup.strategy, parameters: lane.setup.parameters, seed: lane.setup.seed })),
      };
    }

    // What a run depends on, as text: another text means that Run starts anew.
    settingsKey() {
      return JSON.stringify(this.request());
    }

    edited() {
      this.lanes.forEach((lane) => lane.drawHint());
      this.status();
    }

    addLane() {
      if (this.lanes.length >= this.data.limits.lanes) return;
      const used = new Set(this.lanes.map((lane) => lane.setup.strategy));
      const next = [...this.strategies.values()].find((s) => !used.has(s.name)) || this.strategies.values().next().value;
      const lane = new page.LanePane(this, { strategy: next.name });
      this.lanes.push(lane);
      lane.makeDrawings();
      this.phoneLane = this.lanes.length - 1;
      this.arrange();
      this.edited();
      lane.drawHint();
    }

    removeLane(lane) {
      if (this.lanes.length === 1) return;
      this.lanes.splice(this.lanes.indexOf(lane), 1);
      lane.element.remove();
      this.arrange();
      this.count();
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
    }

    drawLaneButtons() {
      this.lanes.forEach((lane, index) => lane.element.classList.toggle("current", index === this.phoneLane));
      this.bar.laneButtons.replaceChildren(...this.lanes.map((lane, index) =>
        h("button", { type: "button", "aria-pressed": String(index === this.phoneLane), onclick: () => {
          this.phoneLane = index;
          this.drawLaneButtons();
        } }, index + 1 + " " + lane.declaration().title)));
    }

    setTheme(theme) {
      this.theme = theme;
      document.documentElement.dataset.theme = theme;
      try { localStorage.setItem("explorer-theme", theme); } catch { /* private windows may refuse: the choice lasts for this page */ }
      this.lanes.forEach((lane) => lane.theme(theme));
    }

    setColour(colour) {
      this.colour = colour;
      for (const lane of this.lanes) for (const chips of [lane.chips, lane.text]) chips.colour(colour);
    }

    setSpeed(speed) {
      this.speed = speed;
      if (speed === "live" && this.run && this.run.state === "running") this.catchUp();
    }

    setUnit(unit) {
      const end = this.following || this.position === this.ticks.length, share = this.position / (this.ticks.length || 1);
      this.unit = unit;
      this.count();
      this.seek(end ? this.ticks.length : Math.round(share * this.ticks.length), !end);
    }

    // ---- the run --------------------------------------------------------------------------------------------------

    async press(name) {
      this.fail("");
      const open = this.run && !this.run.over && this.runKey === this.settingsKey();
      if (name === "pause" || name === "stop") {
        if (name === "pause") this.stopPlaying();
        if (this.run && !this.run.over) await this.run.control(name);
      } else if (open) {
        this.catchUp();
        await this.run.control(name === "run" ? "resume" : "step");
      } else await this.begin(name === "run" ? "running" : "paused");
    }

    async begin(state) {
      if (this.starting) return;
      if (!this.bar.prompt.value) return this.fail("The prompt is empty: write the beginning of a text, for example Once upon a time.");
      this.starting = true;
      this.status();
      const key = this.settingsKey();
      try {
        const before = this.run && !this.run.over ? this.run : null;
        const run = await page.start(this, state);
        if (!run) return;
        if (before) page.call("explorer_control", { run: before.id, action: "stop" });
        this.stopPlaying();
        this.run = run;
        this.runKey = key;
        this.position = 0;
        this.ticks = [];
        this.following = true;
        this.inspector.hide();
        this.lanes.slice(0, run.count).forEach((lane, index) => lane.empty(index));
        this.lanes.forEach((lane) => lane.drawHint());
        run.follow();
        if (this.speed !== "live" && state === "running") this.togglePlay();
        this.measure();
      } finally {
        this.starting = false;
        this.status();
      }
    }

    // Takes a pull's answer.
    take(answer) {
      for (const lane of this.lanes) if (lane.runIndex !== null) lane.feed(answer.lanes[lane.runIndex]);
      this.count();
      if (this.following && !this.playing) this.seek(this.ticks.length, false);
      else this.seek(this.position, false);
      this.status();
    }

    // Asks again at once, for instance for a view that has just been chosen.
    refresh() {
      if (this.run) this.run.pull(0);
    }

    fail(sentence) {
      this.bar.alert.textContent = sentence || "";
      this.bar.alert.hidden = !sentence;
      this.bar.status.hidden = Boolean(sentence);
    }

    state() {
      return this.starting ? "starting" : this.run && !this.run.stored ? this.run.state : "none";
    }

    status() {
      const state = this.state(), key = this.run && this.runKey !== this.settingsKey();
      page.enable(this.bar, state);
      const loading = this.models.state === "loading", broken = this.models.state === "failed";
      const says = {
        none: "A stored run. Drag the slider to replay it, or press Run to decode your own prompt.",
        starting: loading ? this.models.sentence : "Starting …", running: "Decoding …",
        paused: "Paused. Step does one step in every lane, Run goes on.", stopped: "Stopped. What was decoded stays.",
        done: "Done. Drag the slider or press ▶ to replay.", failed: "No lane could go on: each says why.",
      };
      const extra = loading && state === "none" ? " " + this.models.sentence : broken ? " " + this.models.sentence : "";
      this.bar.status.textContent = says[state] + extra + (key && state !== "none" && state !== "starting" ? " The settings have changed: Run starts anew." : "");
    }

    // ---- where we are ---------------------------------------------------------------------------------------------

    // The values the slider can stand at, in the chosen unit.
    count() {
      const values = new Set();
      for (const lane of this.lanes) lane.rows.forEach((row, index) => values.add(KEYS[this.unit](row, index)));
      this.ticks = [...values].sort((a, b) => a - b);
      this.bar.slider.max = String(this.ticks.length);
    }

    seek(position, byHand) {
      this.position = Math.max(0, Math.min(position, this.ticks.length));
      if (byHand) {
        this.following = this.position === this.ticks.length;
        this.stopPlaying();
      }
      const value = this.position ? this.ticks[this.position - 1] : -1, key = KEYS[this.unit];
      for (const lane of this.lanes) {
        let shown = lane.rows.length;
        while (shown > 0 && key(lane.rows[shown - 1], shown - 1) > value) shown -= 1;
        lane.show(shown);
      }
      this.drawPosition(value);
    }

    drawPosition(value) {
      const last = this.ticks[this.ticks.length - 1] || 0, slider = this.bar.slider;
      const words = this.unit === "seconds" ? Math.max(value, 0).toFixed(2) + " s of " + last.toFixed(2) + " s"
        : (this.unit === "step" ? "step " : "forward ") + Math.max(value, 0) + " of " + last;
      this.bar.where.textContent = words;
      slider.value = String(this.position);
      slider.setAttribute("aria-valuetext", words);
      slider.style.setProperty("--done", (100 * this.position) / (this.ticks.length || 1) + "%");
    }

    catchUp() {
      this.following = true;
      if (this.speed === "live") {
        this.stopPlaying();
        this.seek(this.ticks.length, false);
      } else if (!this.playing) this.togglePlay();
    }

    // ---- playback: only the browser's, nothing is decoded again ---------------------------------------------------------

    togglePlay() {
      if (this.playing) return this.stopPlaying();
      if (this.position >= this.ticks.length && this.run && this.run.over) this.position = 0;
      const steps = Math.max(1, ...this.lanes.map((lane) => lane.rows.length));
      let before = performance.now(), at = this.position;
      const tick = (now) => {
        const rate = (RATES[this.speed] || 8) * (this.unit === "step" ? 1 : this.ticks.length / steps);
        at = Math.min(at + ((now - before) / 1000) * rate, this.ticks.length);
        before = now;
        if (Math.floor(at) !== this.position) this.seek(Math.floor(at), false);
        if (this.position >= this.ticks.length && (!this.run || this.run.over)) return this.stopPlaying();
        this.playing = requestAnimationFrame(tick);
      };
      this.playing = requestAnimationFrame(tick);
      this.bar.play.textContent = "❚❚";
      this.bar.play.setAttribute("aria-label", "Hold playback");
    }

    stopPlaying() {
      if (!this.playing) return;
      cancelAnimationFrame(this.playing);
      this.playing = null;
      this.bar.play.textContent = "▶";
      this.bar.play.setAttribute("aria-label", "Play");
    }

    key(event) {
      const target = event.target, tag = target.tagName;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(tag) || target.isContentEditable) return;
      if (event.key === " " && tag !== "BUTTON") {
        event.preventDefault();
        this.press(this.state() === "running" ? "pause" : "run");
      } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        event.preventDefault();
        this.seek(this.position + (event.key === "ArrowRight" ? 1 : -1), true);
      }
    }

    // From a step on the server to its pixels here, in milliseconds; both clocks are the epoch's.
    measure() {
      const run = this.run, seen = new Map(), offset = Date.now() - performance.now();
      const look = () => {
        if (this.run !== run) return;
        let open = !run.over;
        for (const lane of this.lanes) {
          if (lane.view === "text" || lane.runIndex === null) continue;
          const painted = lane.scene.paintedStep, from = seen.get(lane) ?? -1;
          for (let step = from + 1; step <= painted && step < lane.rows.length; step++) {
            if (this.following) this.latencies.push(lane.scene.lastPaint + offset - lane.rows[step].wall * 1000);
          }
          seen.set(lane, Math.max(from, painted));
          open = open || (this.following && seen.get(lane) < lane.rows.length - 1);
        }
        if (open) requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }

    // ---- the server is there ------------------------------------------------------------------------------------------

    async greet() {
      for (;;) {
        const answer = await page.call("explorer_hello", {});
        if (answer.error) return this.fail(answer.error);
        this.models = answer;
        if (answer.strategies) this.learn(answer);
        this.status();
        if (answer.state !== "loading") return;
      }
    }

    learn(answer) {
      this.strategies = new Map(answer.strategies.map((s) => [s.name, s]));
      for (const lane of this.lanes) lane.describe();
      for (const span of this.bar.root.querySelectorAll(".model")) {
        const facts = answer.facts[span.dataset.role];
        if (facts) span.title = Object.entries(facts).map(([k, v]) => k + ": " + (typeof v === "number" ? v.toLocaleString("en") : v)).join("\n");
      }
    }
  }

  // The frame of the page, before plotly is read.
  page.boot = function () {
    const data = JSON.parse(document.getElementById("explorer-data").textContent);
    page.app = new App(document.getElementById("explorer"), data);
    window.decodingExplorer = {
      app: page.app,
      get lanes() {
        return page.app.lanes.map((lane) => ({ scene: lane.scene, chips: lane.chips, rows: lane.rows, shown: lane.shown,
          count: lane.rows.length, strategy: lane.setup.strategy, view: lane.view, ended: lane.answerState.ended }));
      },
      get latencies() { return page.app.latencies; },
      get state() { return page.app.state(); },
      get run() { return page.app.run && page.app.run.id; },
      call: page.call,
    };
  };

  // The stored run, once plotly and the player are here.
  page.draw = function () {
    page.app.drawExample();
    for (const lane of page.app.lanes) for (const drawing of [lane.chips, lane.drawing()]) drawing.draw();
    requestAnimationFrame(() => setTimeout(startGradio, 0));
  };

  // Gradio's front end starts when our picture is on the screen; see Inject in explorer/assets.py.
  function startGradio() {
    window.decodingExplorer.drawn = performance.now(); // a task after the frame: the first picture is on the screen
    const next = document.getElementById("explorer-next");
    if (next) document.head.append(h("script", { type: "module", crossorigin: "", src: next.href }));
  }

  // Gradio has mounted its element: the page moves in, with what has the focus in it.
  page.attach = function (element, functions) {
    const root = document.getElementById("explorer"), focused = document.activeElement;
    const home = element.querySelector(".explorer-home") || element;
    if (home.moveBefore && root.isConnected) home.moveBefore(root, null);
    else home.append(root);
    if (focused && root.contains(focused)) focused.focus({ preventScroll: true });
    document.documentElement.classList.add("explorer-home-ready");
    page.connect(functions);
    page.app.greet();
  };

  page.boot();
})(window.ExplorerPage);
