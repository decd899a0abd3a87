// The inspector's sliders: what other values of a lane's parameters would change, while they are dragged. The
// token at hand with its bars, u line and test, the lane with its first changed token. All of it is marked as
// "what if" and leaves the run as it was; the arithmetic is what-if.js, the data and the sliders
// explorer/inspector/knobs.py's.
const ROWS = 9,
  BEFORE = 4,
  AFTER = 4,
  WIDE = 1000; // from this width on the sliders stand open
const OTHER_WAY =
  "The tokens of this run do not follow from its stored distributions: sliders would mislead.";
const MOVE = "Move a slider: what it would change is computed from what this run has stored.";

const quoted = (text) => "“" + text + "”";
const middle = ([low, high]) => (low + high) / 2;
const exact = ([low, high]) => high - low <= 0.005 * high;
const rounded = (x) => player.probability(Number(x.toPrecision(2)));
const ranged = (range) =>
  exact(range) ? player.probability(middle(range)) : rounded(range[0]) + "–" + rounded(range[1]);
const listed = (words) =>
  words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " or " + words[words.length - 1];
const rest = (...words) => h("p", { class: "rest" }, ...words);
const percent = (share) => 100 * share + "%";

page.Knobs = class {
  constructor(inspector) {
    const { sliders, slidersHome } = inspector; // their fold stays open or closed from token to token
    Object.assign(this, { inspector, fold: sliders, home: slidersHome, key: "" });
    this.fold.open = window.innerWidth >= WIDE;
    this.fold.addEventListener(
      "toggle",
      () => this.fold.open && window.innerWidth < WIDE && this.fold.scrollIntoView({ block: "start" }),
    );
    this.home.addEventListener("input", ({ target }) =>
      this.compute({ [target.name]: Number(target.value) }),
    );
    this.home.addEventListener("click", ({ target }) => this.press(target.closest("button")?.value));
  }

  // Fills its place in the inspector when the numbers are here. Values stay as long as the same lane is
  // looked at.
  fill(box) {
    const { lane, app, facts } = this.inspector,
      key = [app.run.id, lane.runIndex, lane.rows.length].join(" ");
    Object.assign(this, { box, node: facts.node });
    box.append(this.fold);
    if (key !== this.key) this.ask(key);
    else if (this.values) this.compute();
  }

  async ask(key) {
    const { app, lane } = this.inspector;
    this.clear();
    this.key = key;
    this.values = null;
    this.home.replaceChildren();
    const data = await page.call("explorer_what_if", { run: app.run.id, lane: lane.runIndex });
    if (key !== this.key) return;
    const why = data.error || data.why || (page.whatIf.fits(data) ? null : OTHER_WAY);
    if (why) return this.home.append(rest(why));
    Object.assign(this, { data, values: data.values }, page.made(data.form));
    this.home.append(this.form);
    this.compute();
  }

  text(token) {
    return quoted(this.data.texts[token] ?? "token " + token);
  }

  press(name) {
    if (name === "reset") this.compute(this.data.values);
    else if (name) this.run(name === "beside");
  }

  // With other values, all that follows from them.
  compute(values) {
    const {
      data,
      inspector: { app },
    } = this;
    this.values = { ...this.values, ...values };
    const moved = data.knobs
      .map(({ name }) => name)
      .filter((name) => this.values[name] !== data.values[name]);
    for (const input of this.form.querySelectorAll("input")) {
      input.value = this.values[input.name];
      input.nextSibling.textContent = String(Number(this.values[input.name].toFixed(2)));
    }
    this.box.classList.toggle("moved", moved.length > 0);
    const full = app.lanes.length >= app.data.limits.lanes;
    for (const button of this.form.querySelectorAll("button[value]"))
      button.disabled = !moved.length || (button.value === "beside" && full);
    this.place =
      data.places.find(({ node, draft }) => node === this.node || (draft && draft.node === this.node)) ||
      null;
    const walk = page.whatIf.walked(data, this.values);
    this.mark(walk);
    this.outcome.replaceChildren(...(moved.length ? this.sentences(walk, moved) : [rest(MOVE)]));
    this.picture.replaceChildren(...(moved.length && this.place ? this.pictures(moved) : []));
  }

  // ---- the lane -------------------------------------------------------------------------------------------

  sentences({ open, change }, moved) {
    const { data, values } = this,
      first = open || change,
      parts = [h("b", { class: "mark" }, "what if"), " "],
      { places } = data;
    const jump = (at) => this.inspector.jump(places[at].node, "position " + places[at].position),
      instead = (at) => " instead of " + this.text(places[at].token);
    const become = ({ token, could, other, at }) => {
      const words = could
        .filter((id) => id !== places[at].token)
        .slice(0, 3)
        .map((id) => this.text(id));
      return token !== null
        ? this.text(token)
        : listed([...words, ...(other || could.length > 4 ? ["another token"] : [])]);
    };
    const draws = moved.some((name) => name !== page.whatIf.LENGTH),
      counts = page.whatIf.passing(data, values);
    if (!first) parts.push(draws ? "All " + places.length + " tokens stay." : "The text stays.");
    else {
      parts.push(first.at ? "Nothing changes before " : "", jump(first.at), ". ");
      if (open)
        parts.push(
          "The token there is not certain: " +
            this.text(places[open.at].token) +
            " stays, or " +
            become(open) +
            " takes its place. ",
        );
      if (open && change)
        parts.push(
          "If it stays, ",
          jump(change.at),
          " certainly changes: " + become(change) + instead(change.at) + ". ",
        );
      if (!open) parts.push("There " + become(change) + " would be written" + instead(change.at) + ". ");
      parts.push("From there on the text may differ: press Run to see it.");
    }
    const lines = [...(first ? [this.strip(first)] : []), h("p", {}, ...parts)];
    if (counts.tests && draws)
      lines.push(
        h(
          "p",
          {},
          "Taken one by one, " +
            counts.sure +
            " of the run's " +
            counts.tests +
            " tests pass" +
            (counts.open ? " and " + counts.open + " more may" : "") +
            "; in the run " +
            counts.run +
            " passed.",
        ),
      );
    if (!draws && data.drafts.length) lines.push(h("p", {}, data.drafts[values[page.whatIf.LENGTH] - 1]));
    return lines;
  }

  // The text around the first place that may change: what stays, the place, and what would be written
  // instead.
  strip({ at, token }) {
    const { places, texts } = this.data,
      around = places.slice(Math.max(0, at - BEFORE), at + AFTER);
    return h(
      "p",
      { class: "strip", "aria-hidden": "true" },
      at > BEFORE ? "…" : "",
      ...around.map((place) =>
        h(
          "span",
          {
            class: "token" + (place === places[at] ? " first" : ""),
            ...(places.indexOf(place) > at ? { "data-other": "" } : {}),
          },
          texts[place.token],
          ...(place === places[at] ? [h("b", {}, token === null ? " ?" : " → " + texts[token])] : []),
        ),
      ),
      at + AFTER < places.length ? "…" : "",
    );
  }

  // The chips of the places where the text may change, with the would-be token; of no other lane.
  mark({ open, change }) {
    const at = new Map(
      [
        [open, "?"],
        [change, "→"],
      ]
        .filter(([one]) => one)
        .map(([one, sign]) => [
          this.data.places[one.at].node,
          sign + (one.token !== null ? " " + (this.data.texts[one.token] ?? "") : ""),
        ]),
    );
    for (const lane of this.inspector.app.lanes) {
      for (const { element, mark } of [lane.chips, lane.text].flatMap((chips) => [
        ...(chips?.made.values() || []),
      ])) {
        if (lane === this.inspector.lane && at.has(mark.node)) element.dataset.whatIf = at.get(mark.node);
        else delete element.dataset.whatIf;
      }
    }
  }

  clear() {
    this.mark({});
    this.key = "";
  }

  // ---- the token at hand ----------------------------------------------------------------------------------

  pictures(moved) {
    const { place, data, values } = this,
      answer = page.whatIf.placed(data, place, values),
      all = page.whatIf.cases(place.p, values, place.token);
    const now = page.whatIf.shares(all),
      before = page.whatIf.shares(page.whatIf.cases(place.p, data.values, place.token)),
      { test } = answer;
    const title = h("h3", {}, "Here, if everything before stays ", h("span", {}, "■ what if  □ in the run"));
    const stands =
      answer.token !== null
        ? [this.text(answer.token), answer.token === place.token ? " stays." : " would be written here."]
        : [
            "Open between " +
              listed([
                ...answer.could.slice(0, 4).map((id) => this.text(id)),
                ...(answer.other || answer.could.length > 4 ? ["a token that is not shown"] : []),
              ]) +
              ".",
          ];
    const shaped = moved.some(
      (name) => place.p && !(name in { lenience: 1, epsilon: 1, delta: 1 }) && name !== page.whatIf.LENGTH,
    );
    return [
      title,
      ...(shaped ? this.bars(now, before) : []),
      test ? this.test(test, answer) : values.temperature ? this.line(all, answer) : null,
      h("p", { class: "why" }, ...stands),
    ].filter(Boolean);
  }

  bars(now, before) {
    const ids = [...new Set([...now.ids, ...before.ids])]
        .sort((a, b) => before.of(b)[1] - before.of(a)[1])
        .slice(0, ROWS),
      size = (id) => Math.max(now.of(id)[1], before.of(id)[1]);
    const largest = Math.max(...ids.map(size), 1e-9),
      gone = (id) => !now.ids.includes(id),
      { texts } = this.data;
    const bar = (kind, [low, high]) =>
      h("span", {
        class: "bar " + kind,
        hidden: high <= 0,
        style: `width:${percent(high / largest)};--sure:${percent(low / (high || 1))}`,
      });
    const row = (id) =>
      h(
        "div",
        { class: "offer-row" + (id === this.place.token ? " here" : "") },
        h("span", { class: "token", title: texts[id] }, texts[id]),
        h("span", { class: "bars-of" }, bar("sure", gone(id) ? [0, 0] : now.of(id)), bar("q", before.of(id))),
        h("span", { class: "number" }, gone(id) ? "removed" : ranged(now.of(id))),
      );
    const shown = ids.filter((id) => !gone(id)).map((id) => now.of(id));
    return [
      ...ids.map(row),
      ...(now.rest[1] > 0 ? [rest("all others: " + ranged(now.rest))] : []),
      ...this.meaningOf([...shown, now.rest].find((range) => !exact(range))),
    ];
  }

  // What a range such as `.0230–.110` says, where one is shown.
  meaningOf(range) {
    if (!range) return [];
    const [low, high] = range.map(rounded),
      count = this.place.p.ids.length;
    return [
      rest(
        `${ranged(range)} means: somewhere between ${low} and ${high}. The run has stored its ${count} ` +
          "most likely tokens one by one and all others as one sum, so the number itself is not known.",
      ),
    ];
  }

  // u on the running sum of the probabilities; hatched: which token stands there is not stored.
  line(all, answer) {
    const u = player.probability(this.place.u),
      { texts } = this.data;
    const sure =
      all.length === 1 ? page.whatIf.inOrder(all[0]).filter(({ start, end }) => end[0] > start[1]) : [];
    const pieces = sure.map(({ id, start, end }) =>
      h(
        "span",
        {
          class: "draw-piece" + (id === answer.token ? " here" : ""),
          title: texts[id],
          style: `left:${percent(start[1])};width:${percent(end[0] - start[1])}`,
        },
        texts[id],
      ),
    );
    return h(
      "div",
      { class: "draw", role: "img", "aria-label": "u " + u },
      rest("u = " + u + " on the running sum, in the vocabulary's order"),
      h(
        "div",
        { class: "draw-box unknown" },
        ...pieces,
        h("span", { class: "draw-tick", style: "left:" + percent(this.place.u) }),
      ),
    );
  }

  test(test, { guess }) {
    const token = this.text(guess.token),
      { draft } = this.place,
      drafted = guess.token === draft.token ? "" : "The draft would be " + token + ". ";
    const outcome =
      test.outcome === "open" ? "which of the two is not known." : "it is " + test.outcome + ".";
    if (!test.pass)
      return rest(
        drafted +
          token +
          (test.bar !== undefined
            ? " has p " + ranged(test.p) + " and needs " + player.probability(test.bar) + ": "
            : ": ") +
          outcome,
      );
    const box = h(
      "div",
      { class: "test-box" },
      h("span", { class: "test-fill", style: "width:" + percent(test.pass[0]) }),
    );
    return h(
      "div",
      { class: "test-block" },
      h(
        "div",
        { class: "test is-" + test.outcome },
        box,
        h("span", { class: "test-tick", style: "left:" + percent(draft.u) }),
      ),
      rest(
        drafted +
          token +
          " passes if u < " +
          ranged(test.pass) +
          " (p " +
          ranged(test.p) +
          ", q " +
          ranged(test.q) +
          "); u = " +
          player.probability(draft.u) +
          ": " +
          outcome,
      ),
    );
  }

  // ---- going on from there --------------------------------------------------------------------------------

  run(beside) {
    const {
        data,
        values,
        inspector: { lane, app },
      } = this,
      strategy = app.strategies.get(data.run_as),
      parameters = { ...data.parameters };
    for (const { name, default: usual } of strategy.parameters) {
      if (!(name in values)) continue;
      delete parameters[name];
      if (values[name] !== usual) parameters[name] = values[name];
    }
    this.clear();
    const { seed, begin } = lane.setup,
      { view } = lane;
    if (beside) app.addLane({ strategy: data.run_as, parameters, seed, ...(begin ? { begin } : {}), view });
    else lane.choose(data.run_as, parameters);
    app.press("run");
  }
};
