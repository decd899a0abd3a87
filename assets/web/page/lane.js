// One lane in the page: strategy, parameters, badge, text as chips, view tabs, the view, the cost strip.
// Feeds the player and says at which step to draw; knows strategies only by their declarations and views only
// by name.
const TEXT = "text";
const AT_ONCE = 7; // views that all have a tab
const ALWAYS = ["entropy", TEXT]; // have one, however many there are

// The views with a tab: all, or the first ones and those to keep.
function withTabs(views, kept) {
  if (views.length <= AT_ONCE) return views;
  const first = matchMedia("(max-width: 760px)").matches ? 2 : 3;
  return views.filter((view, i) => i < first || kept.includes(view));
}

page.LanePane = class {
  constructor(app, setup) {
    this.app = app;
    this.setup = { parameters: {}, seed: 0, ...setup };
    this.view = setup.view || this.views()[0];
    // Of its tokens and of its view, once the player is there: the page's frame is on screen before it.
    this.drawings = [];
    Object.assign(this, page.made(app.data.frames.lane)); // its parts, see explorer/export/frames.py
    const on = (part, event, act) => part.addEventListener(event, act);
    on(this.picker, "change", () => this.pick(this.picker.value));
    this.openParameters = page.disclose(this.gear, this.panel, () => this.fillPanel());
    on(this.panel, "input", ({ target }) => target.name && this.change(target));
    on(this.begin, "click", () => this.beginAtPrompt());
    on(this.whatIf, "click", () => this.askWhatIf());
    on(this.closePanel, "click", () => this.openParameters(false));
    on(this.remove, "click", () => app.removeLane(this));
    page.rove(this.tabs, "[role=tab]", (tab) => tab.click());
    on(this.moreViews, "change", () => this.showView(this.moreViews.value));
    page.openMenu(this);
    this.steps = new page.Steps(this);
    this.code = new page.Code(this);
    this.strip = new page.Costs(this);
    this.describe();
    this.empty();
    if (player.Scene) this.makeDrawings();
  }

  declaration() {
    return this.app.strategies.get(this.setup.strategy);
  }

  // The views that values of its parameters add, such as a constraint or a memory.
  added() {
    return Object.entries(this.app.data.added_views).flatMap(
      ([name, of]) => of[this.setup.parameters[name]] || [],
    );
  }

  // Its strategy's views, those that are added, and the one that a link named.
  views() {
    const named = this.setup.view ? [this.setup.view] : [];
    return [...new Set([...this.declaration().views, ...this.added(), ...named])];
  }

  // What it offers now: once it has run, the views that are about something in it.
  offered() {
    return this.trace?.views ?? this.views();
  }

  // All that can be set of it: its strategy's parameters and those of any lane's memory, and of the one that
  // is chosen; not where its strategy keeps no keys and values.
  declared() {
    const { parameters, writes_with: kind = "causal" } = this.declaration(),
      memory = this.setup.parameters.memory || "none";
    return [...parameters, ...((kind === "causal" && this.app.data.memory[memory]) || [])];
  }

  // A trace may have a name of its own: that of a call which was watched.
  title() {
    return this.setup.title || this.declaration().title;
  }

  // ---- DOM ------------------------------------------------------------------------------------------------

  makeDrawings() {
    const pick = (mark) => {
      const at = mark.to || mark; // a link stands for the token that it leads to
      this.scene.hold({ node: at.node, x: at.cell?.[0] }); // what opens beside the picture narrows it
      this.code.point(at.node);
      if (at.node !== undefined) this.app.inspector.show(this, { node: at.node });
      else if (at.cell) this.app.inspector.show(this, { cell: at.cell });
    };
    const options = { palette: this.app.data.palette, theme: this.app.theme, onPick: pick };
    const node = (mark) => (mark && (mark.to || mark).node) ?? null;
    const link = (other) => (mark) =>
      other().forEach((drawing) => drawing.highlight && drawing.highlight(node(mark)));
    const together = () =>
      // They share a window.
      this.app.lanes.filter((lane) => lane !== this && lane.scene).map((lane) => lane.scene);
    this.scene = new player.Scene(this.sceneElement, {
      ...options,
      together,
      onHover: link(() => [this.chips]),
    });
    this.chips = new player.Chips(this.chipsElement, { ...options, onHover: link(() => [this.scene]) });
    this.text = new player.Chips(this.textElement, {
      ...options,
      oneLine: false,
      onHover: link(() => [this.chips]),
    });
    for (const chips of [this.chips, this.text]) {
      chips.colour(this.app.colour);
      chips.fold(this.app.folded);
    }
    this.drawings = [this.chips, this.text, this.scene];
  }

  // What its tokens are coloured by; decision depths are asked for when they are chosen.
  async colour(by) {
    if (by === "depth" && this.runIndex !== null) {
      const answer = await page.call("explorer_depths", { run: this.app.run.id, lane: this.runIndex });
      if (answer.error) return this.app.fail(answer.error);
      this.chips.settled = this.text.settled = answer.depths;
    }
    for (const chips of [this.chips, this.text]) chips.colour(by);
  }

  // Outlines a node, or several, for whomever. Where every bar is of one token, a band marks it already.
  keep(node, by) {
    for (const drawing of this.drawings)
      drawing.keep(drawing === this.scene && this.view === "sampler" ? null : node, by);
  }

  rename(index) {
    this.element.setAttribute("aria-label", "Lane " + (index + 1));
    this.number.textContent = String(index + 1);
    this.stepsPanel.setAttribute("aria-label", "Steps of lane " + (index + 1));
    this.codePanel.setAttribute("aria-label", "The code that runs in lane " + (index + 1));
  }

  // Strategy picker, parameter line and fields, tabs: all from the declaration.
  describe() {
    const all = [...this.app.strategies.values()].sort((one, other) => one.title.localeCompare(other.title)),
      { families, start } = this.app.data;
    const starts = start.map((name) => this.app.strategies.get(name)).filter(Boolean);
    const groups = [
      ["Start here", starts],
      ...[...Object.entries(families), ["elsewhere", "From a file"]].map(([family, title]) => [
        title,
        all.filter((s) => s.family === family && !starts.includes(s)),
      ]),
    ];
    this.picker.replaceChildren(
      h("option", { value: "" }, "Search all …"),
      ...groups
        .filter(([, members]) => members.length)
        .map(([title, members]) =>
          h(
            "optgroup",
            { label: title },
            ...members.map((s) => {
              const lacking = s.needs.find((role) => !this.app.choice[role]);
              return h(
                "option",
                {
                  value: s.name,
                  title: lacking ? "Needs a " + lacking + " model: choose one under Models" : s.summary,
                  disabled: Boolean(lacking),
                },
                s.name === this.setup.strategy ? this.title() : s.title,
              );
            }),
          ),
        ),
    );
    this.picker.value = this.setup.strategy;
    this.picker.title = this.declaration().summary || "";
    this.drawLine();
    if (!this.panel.hidden) this.fillPanel();
    this.drawTabs();
  }

  drawLine() {
    const declared = this.declared(),
      given = this.setup.parameters;
    const notable = declared.filter((p) => p.name in given && String(given[p.name]) !== String(p.default));
    const shown = notable.length ? notable : declared.slice(0, 2);
    const lines = (value) => String(value).trim().split(/\n+/).length;
    const short = (value) =>
      lines(value) > 1
        ? "of " + lines(value) + " lines"
        : value === ""
          ? "none"
          : value.length > 40
            ? value.slice(0, 36) + " …"
            : value;
    const words = shown.map((p) => p.name + " " + short(p.name in given ? given[p.name] : p.default));
    if (this.setup.seed !== 0) words.push("seed " + this.setup.seed);
    const begin = this.setup.begin;
    if (begin)
      words.unshift(
        "⚑ " + (this.flag || `begins with ${begin.tokens.length} token${begin.tokens.length > 1 ? "s" : ""}`),
      );
    this.element.classList.toggle("branched", Boolean(begin && this.flag));
    this.line.textContent = words.join(" · ");
    this.line.title = this.line.textContent;
  }

  // The fields that Python made (explorer/export/fields.py), with this lane's values; gives the first.
  // Parameters that few people need are behind the heading of their group, which is open where one of them
  // was changed.
  fillPanel() {
    const { parameters: given, seed, begin } = this.setup,
      homes = page.made(this.app.data.frames.groups);
    for (const { name, default: usual, group = "own", field } of this.declared()) {
      const { control } = page.made(this.app.data.fields[field]),
        value = name in given ? given[name] : usual;
      if (control.type === "checkbox") control.checked = value === true;
      else control.value = value;
      homes[group].append(control.parentNode);
      if (group !== "own") homes[group].open ||= name in given;
    }
    this.fields.replaceChildren(...Object.values(homes).filter((home) => home.querySelector("label")));
    const text = homes.Constraint.children[2]; // it is checked, and its examples stand, right below it
    text?.after(page.constraintTools(this, homes.Constraint));
    this.summary.textContent = this.declaration().summary || "";
    this.seed.value = seed;
    this.begin.hidden = !begin;
    return this.panel.querySelector("input, select, textarea");
  }

  // A field has another value; that of the declaration is not kept.
  change({ name, type, checked, value }) {
    const { parameters } = this.setup,
      given = type === "checkbox" ? checked : type === "number" && value !== "" ? Number(value) : value;
    if (name === "seed") this.setup.seed = given;
    else if (String(given) === String(this.declared().find((p) => p.name === name).default))
      delete parameters[name];
    else parameters[name] = given;
    if (name === "memory") {
      this.describe(); // other fields, and a view more or less
      this.panel.querySelector("[name=memory]").focus();
    } else this.drawLine();
    this.app.edited();
  }

  // A run of these settings has begun: it is ours, whoever the lane was opened from, and draws where the
  // parameters stand.
  begins() {
    this.openParameters(false, true);
    if (!this.setup.title) return;
    delete this.setup.title;
    this.describe();
  }

  // The sliders at the newest token of the text.
  askWhatIf() {
    const mark = this.chips
      .marksAt()
      .filter((one) => one.state !== "prompt" && one.node !== undefined)
      .pop();
    if (!mark) return this.app.fail("Nothing has been decoded yet: press Run.");
    this.openParameters(false);
    this.app.inspector.knobs.fold.open = true;
    this.app.inspector.show(this, { node: mark.node });
  }

  // What was copied and forced is left out at the next run.
  beginAtPrompt() {
    delete this.setup.begin;
    this.openParameters(false);
    this.drawLine();
    this.app.edited();
  }

  // What the list was set to: a strategy, or its first entry, which opens the search.
  pick(strategy) {
    if (strategy) return this.choose(strategy);
    this.picker.value = this.setup.strategy;
    this.app.findStrategy(this);
  }

  choose(strategy, parameters = {}) {
    const { seed, begin, strategy: before } = this.setup;
    this.setup = { strategy, parameters, seed, ...(begin ? { begin } : {}) };
    if (!this.trace) this.view = this.views()[0];
    if (strategy !== before) this.wanted = this.views()[0];
    this.describe();
    this.app.drawLaneButtons();
    this.app.edited();
  }

  drawTabs() {
    const views = this.offered();
    if (!views.includes(this.view)) this.view = views[0];
    this.sceneElement.hidden = this.view === TEXT;
    this.textElement.hidden = this.view !== TEXT;
    const title = (name) => this.app.data.views[name] || name,
      focused = this.tabs.contains(document.activeElement);
    const tabs = withTabs(views, [...ALWAYS, ...this.added(), this.view]),
      others = views.filter((view) => !tabs.includes(view));
    this.moreViews.hidden = !others.length;
    this.moreViews.replaceChildren(
      h("option", { value: "" }, `${others.length} more`),
      ...others.map((name) => h("option", { value: name }, title(name))),
    );
    this.tabs.replaceChildren(
      ...tabs.map((name) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            "aria-selected": String(name === this.view),
            tabindex: name === this.view ? "0" : "-1",
            onclick: (event) => {
              this.showView(name);
              // After a click ← and → are steps; who came with keys walks the tabs.
              if (event.detail) document.activeElement.blur();
            },
          },
          title(name),
        ),
      ),
    );
    this.viewElement.setAttribute("aria-label", title(this.view));
    const on = this.tabs.querySelector("[aria-selected=true]");
    this.tabs.scrollLeft = Math.max(0, on.offsetLeft + on.offsetWidth - this.tabs.clientWidth);
    if (focused) on.focus();
  }

  // The run has ended, and it is known what is in it.
  offer(views) {
    if (!this.trace || String(views) === String(this.trace.views)) return;
    this.trace.views = views;
    this.drawTabs();
  }

  showView(name) {
    if (this.head) this.before = { view: this.view, head: this.head, ops: this.ops };
    this.turn(name);
    this.app.refresh();
  }

  // To another view, of which nothing is here yet.
  turn(view) {
    Object.assign(this, { view, wanted: null, head: null, ops: [] });
    this.drawTabs();
    this.drawing().reset({});
  }

  // The view that was chosen did not come: the one before stands again, as it was.
  keepView() {
    const { before, answerState, rows } = this;
    if (!before) return;
    this.turn(before.view);
    this.feed({ ...answerState, ...before, from: 0, rows: [], rows_from: rows.length });
    this.show(this.shown);
    this.app.fail("Another view needs the app; this one stays.");
  }

  drawing() {
    return this.view === TEXT ? this.text : this.scene;
  }

  // ---- data -----------------------------------------------------------------------------------------------

  // Forgets what was decoded; `runIndex` is this lane's number in the new run, null if it is in none.
  empty(runIndex) {
    this.runIndex = runIndex ?? null;
    if (this.wanted) this.view = this.wanted; // another strategy opens with its own first view
    this.wanted = null;
    this.trace =
      runIndex === undefined || runIndex === null ? null : { views: this.views(), key: this.key() };
    this.rows = [];
    this.ops = []; // what the drawing of the view has been fed, step by step
    this.head = this.before = null;
    this.shown = 0;
    this.dirty = true;
    this.answerState = {};
    this.drawTrust(null);
    this.strip.draw();
    this.ended.textContent = "";
    this.badge.hidden = true;
    this.drawTabs();
    for (const drawing of this.drawings) drawing.reset({});
    this.steps.draw();
    this.code.forget();
  }

  key() {
    return JSON.stringify([this.setup.strategy, this.setup.parameters, this.setup.seed, this.setup.begin]);
  }

  // Whether what is drawn was decoded with other settings than those that are chosen now.
  stale() {
    return (
      this.trace !== null && (this.trace.key !== this.key() || this.app.outdated() || this.app.retyped())
    );
  }

  cursor() {
    return { view: this.view, ops: this.ops.length, rows: this.rows.length };
  }

  // Takes one lane's part of a pull's answer; whatever is here already is left out.
  feed(answer) {
    if (answer.text_head && this.rows.length === 0) this.chips.reset(answer.text_head);
    if (answer.head && answer.view === this.view && this.ops.length === 0) {
      this.head = answer.head;
      this.before = null;
      this.drawing().reset(answer.head);
    }
    if ("trust" in answer) this.drawTrust(answer.trust);
    if (answer.views) this.offer([...new Set([...answer.views, this.view])]);
    if (answer.view === this.view && this.head) {
      const fresh = answer.ops.slice(this.ops.length - answer.from);
      this.drawing().feed(fresh.map((ops, i) => ({ step: this.ops.length + i, ops })));
      for (const ops of fresh) this.ops.push(ops);
      this.dirty = this.dirty || fresh.length > 0;
    }
    const rows = answer.rows.slice(this.rows.length - answer.rows_from);
    this.chips.feed(rows.map((row, i) => ({ step: this.rows.length + i, ops: row.chips })));
    this.dirty = this.dirty || rows.length > 0;
    for (const row of rows)
      this.rows.push({
        cost: row.cost,
        t: row.t,
        target_tokens: row.target_tokens,
        seconds: row.seconds,
        wall: row.wall,
      });
    this.answerState = answer;
  }

  // Draws the lane after its first `count` steps.
  show(count) {
    if (!this.scene) return;
    if (count !== this.shown || this.dirty) {
      this.chips.show(count - 1);
      this.drawing().show(count - 1);
      this.strip.draw(this.rows[count - 1]);
    }
    this.scene.end(Boolean(this.answerState.ended || this.answerState.problem));
    this.shown = count;
    this.dirty = false;
    const { badge, ended, problem } = this.answerState;
    Object.assign(this.badge, { hidden: !badge, title: badge?.title || "" });
    // What stands before was given and promises nothing.
    page.write(this.badge, badge ? badge.text + (this.setup.begin ? " after ⚑" : "") : "");
    // Else the hint says it.
    page.write(this.ended, (this.rows.length && (problem || (count === this.rows.length && ended))) || "");
    this.ended.title = this.ended.textContent;
    this.ended.classList.toggle("wrong", Boolean(problem));
    this.drawHint();
    this.steps.draw();
    this.code.draw();
  }

  // What was checked of the file that an imported lane was made of; hatched where something fails.
  drawTrust(trust) {
    const [summary, list] = this.trust.children;
    this.trust.hidden = !trust;
    this.element.classList.toggle("untrusted", Boolean(trust) && !trust.trusted);
    summary.textContent = trust?.sentence || "";
    list.replaceChildren(...(trust?.report || []).map((sentence) => h("li", {}, sentence)));
  }

  drawHint() {
    const nothing = this.rows.length === 0,
      stale = this.stale();
    this.element.classList.toggle("stale", stale);
    this.element.classList.toggle("empty", nothing);
    this.hint.hidden = !(nothing || stale);
    if (!this.hint.hidden) page.write(this.hint.firstChild, this.missing(stale));
  }

  // Why there is no picture of the settings.
  missing(stale) {
    const { app } = this,
      { problem, ended } = this.answerState,
      role = this.declaration().needs.find((one) => !app.choice[one]);
    if (role) return "This strategy needs a " + role + " model: choose one under Models";
    if (app.refusal(this)) return app.refusal(this);
    if (stale)
      return app.outdated()
        ? `Decoded with ${app.whose()}: press Run`
        : "Settings changed: press Run to decode with them";
    return this.runIndex === null
      ? "Press Run to decode with this strategy"
      : problem || ended || "Waiting for the first step …";
  }

  theme(name) {
    for (const drawing of this.drawings) drawing.theme(name);
  }
};
