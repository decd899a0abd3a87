// Moments: the steps at which something happens that is worth a stop. They are ticks along the slider, keys
// and two buttons walk them, and while one is on show its sentence stands below the slider and its token is
// outlined. What a moment is and how it is worded is decoders/trace/moments.py's and
// decoders/explain/moments.py's; only where lanes part is known here, from the comparison of the whole run.
const PARTING = "first difference",
  STOP = "breakpoint";
page.Moments = class {
  constructor(app) {
    this.app = app;
    // What a lane is about, first what tells most: there its picture opens when the run is over.
    this.about = [STOP, PARTING, ...app.data.moments];
    this.partings = new Map(); // lane -> {node, position, words}, of the whole run
    this.stops = new Map(); // lane -> [{step, node, position, text}], see stop-when.js
    const { moments, earlier, later } = app.bar;
    earlier.addEventListener("click", () => this.walk(true));
    later.addEventListener("click", () => this.walk(false));
    moments.addEventListener(
      "click",
      ({ target }) => target.dataset.at && this.go(Number(target.dataset.at)),
    );
    app.on("run", () => this.forget());
    for (const name of ["shown", "state"]) app.on(name, () => this.show());
  }

  forget() {
    this.homes = null; // lane -> where its picture stands at the end of the run, until the slider is moved
    this.moved = false;
    this.partings.clear();
    this.stops.clear();
    this.result = ""; // of the whole run, in words
    for (const { scene } of this.app.lanes) scene?.settle(null);
    this.show();
  }

  // The slider was moved by hand: the end is the end from now on.
  leave() {
    this.homes = null;
    this.moved = true;
    for (const { scene } of this.app.lanes) scene?.settle(null);
  }

  // Those of a lane, by the number of steps that it has done then.
  of(lane) {
    if (!lane.chips || lane.runIndex === null) return [];
    const { history } = lane.chips,
      found = history.moments.map(([step, moment]) => ({ lane, count: step + 1, ...moment }));
    const parting = this.partings.get(lane),
      chip = parting && history.entries.find(({ base }) => base.node === parting.node);
    if (chip)
      found.push({
        lane,
        count: chip.born + 1,
        kind: PARTING,
        text: parting.words + ".",
        ...parting,
        size: 0,
      });
    for (const { step, text, ...where } of this.stops.get(lane) || [])
      found.push({ lane, count: step + 1, kind: STOP, text: "Breakpoint: " + text + ".", ...where, size: 0 });
    return found.sort((a, b) => a.count - b.count);
  }

  rank({ kind }) {
    return this.about.indexOf(kind);
  }

  // Where the slider stands when a moment is on show.
  place({ lane, count }) {
    const { playback } = this.app,
      value = playback.valueOf(lane, count);
    return playback.ticks.findIndex((tick) => tick >= value) + 1;
  }

  // Position of the slider -> its moments, what tells most first.
  byPlace(lanes = this.app.lanes) {
    const places = new Map();
    for (const moment of lanes.flatMap((lane) => this.of(lane))) {
      if (moment.count > moment.lane.rows.length) continue;
      const at = this.place(moment);
      places.set(at, [...(places.get(at) || []), moment]);
    }
    for (const some of places.values()) some.sort((a, b) => this.rank(a) - this.rank(b));
    return places;
  }

  // Ticks, buttons, sentence and outlines of now.
  show() {
    const { app } = this,
      { playback, bar } = app;
    const key = [
      app.run?.id,
      playback.unit,
      playback.ticks.length,
      ...app.lanes.map((lane) => [
        lane.chips?.history.moments.length,
        this.partings.has(lane),
        this.stops.get(lane)?.length,
      ]),
    ].join();
    if (key !== this.key) this.places = this.byPlace();
    if (key !== this.key) this.draw();
    this.key = key;
    const { position } = playback,
      places = [...this.places.keys()];
    bar.earlier.disabled = !places.some((at) => at < position);
    bar.later.disabled = !places.some((at) => at > position);
    const now = app.state() === "running" ? [] : (this.places.get(position) ?? []),
      fresh = now.filter(({ kind }) => kind !== STOP || !app.run?.stopped), // the status line says it
      said = fresh.map(({ lane, text }) => (app.lanes.length > 1 ? this.name(lane) + ": " : "") + text);
    const ended = position === playback.ticks.length && app.state() !== "running";
    page.write(bar.moment, (ended && this.result) || said.join(" "));
    bar.moment.title = bar.moment.textContent;
    // Where the status line says nothing but the state, a phone shows what happens in its place.
    const plain = bar.status.textContent === app.data.standing[app.state()];
    bar.status.parentNode.classList.toggle("plain", plain && (app.state() !== "none" || !playback.following));
    for (const lane of app.lanes) {
      if (this.homes) lane.scene?.settle(this.homes.get(lane) ?? null);
      const nodes = now.filter((one) => one.lane === lane && one.node !== null).map(({ node }) => node);
      const text = String(nodes);
      if ((lane.momentNodes ?? "") !== text) {
        lane.keep(nodes, "moment");
        lane.code.tell(nodes[0]);
      }
      lane.momentNodes = text;
    }
  }

  name(lane) {
    return "Lane " + (this.app.lanes.indexOf(lane) + 1);
  }

  draw() {
    const most = this.app.playback.ticks.length || 1;
    this.app.bar.moments.replaceChildren(
      ...[...this.places].map(([at, some]) =>
        h("i", {
          class: "is-" + some[0].kind.replace(" ", "-"),
          style: `--at: ${at / most}`,
          "data-at": at,
          title: some.map(({ lane, text }) => this.name(lane) + ": " + text).join("\n"),
        }),
      ),
    );
  }

  // To the next moment, or the one before: of the lane that has the focus or the inspector, else of any.
  walk(back) {
    const { app } = this,
      { lanes, inspector } = app;
    const focused = lanes.find((lane) => lane.element.contains(document.activeElement)),
      own = focused || (!inspector.root.hidden && inspector.lane);
    const places = [...this.byPlace(own ? [own] : lanes).keys()].sort((a, b) => a - b),
      { position } = app.playback;
    const at = back ? places.findLast((one) => one < position) : places.find((one) => one > position);
    if (at !== undefined) this.go(at, own);
  }

  // Shows the moments at a position of the slider; an open inspector goes there too.
  go(at, own) {
    const { app } = this,
      some = this.places.get(at) ?? [];
    app.playback.seek(at, true);
    for (const { lane, node } of [...some].reverse()) lane.scene.hold({ node });
    if (!app.inspector.root.hidden) this.open(own);
  }

  // The inspector, of the moment that is on show.
  open(own) {
    const some = this.places.get(this.app.playback.position) ?? [],
      mark = some.find(({ lane, node }) => node !== null && (!own || lane === own));
    if (mark) this.app.inspector.show(mark.lane, { node: mark.node });
  }

  // The whole run has been compared: from here on each picture opens at what its lane is about.
  compared(answer) {
    const { app } = this,
      whole = app.run?.over && app.lanes.every((lane) => lane.shown === lane.rows.length);
    if (!whole) return;
    for (const { lane, parting } of answer.lanes)
      if (parting) this.partings.set(app.lanes[lane - 1], parting);
    this.result = answer.result;
    if (!this.moved) this.homes = new Map(app.lanes.map((lane) => [lane, this.main(lane)]));
    this.show();
  }

  // Where the newest branch leaves its lane, as all before it is given; else the most telling moment of the
  // lanes: {node, x: its position, ...}; null where nothing happens.
  main(lane) {
    const branch = this.app.lanes.findLast(({ setup }) => setup.begin);
    if (branch) return { x: branch.setup.begin.tokens.length };
    const telling = (lanes) =>
      lanes
        .flatMap((one) => this.of(one))
        .filter(({ position }) => position)
        .sort((a, b) => this.rank(a) - this.rank(b) || b.size - a.size)[0];
    const first = telling(this.app.lanes);
    if (!first) return null;
    const own = this.of(lane).find(({ position }) => position === first.position);
    return { x: first.position, node: own?.node ?? undefined };
  }
};

page.addPart((app) => (app.moments = new page.Moments(app)));
