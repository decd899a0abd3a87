// The inspector's sliders: what other values of a lane's parameters would change, while they are dragged. The token at hand with its bars,
// u line and test, the lane with its first changed token. All of it is marked as "what if" and leaves the run as it was; the
// arithmetic is what-if.js, the data explorer/inspector/knobs.py. Knows strategies by their declared parameters.
const ROWS = 9, BEFORE = 4, AFTER = 4, WIDE = 1000; // from this width on the sliders stand open
const OTHER_WAY = "The tokens of this run do not follow from its stored distributions: sliders would mislead.";

// .0352: three significant digits, never 0 for something that is not nothing; as explorer/inspector/parts.py writes it.
function probability(p) {
  if (p === 0) return "0";
  if (p < 1e-6) return p.toExponential(1).replace("e-", "e−");
  return p >= 0.9995 ? "1.00" : p.toPrecision(3).replace(/^0(\.0*\d{3}).*/, "$1");
}

const quoted = (text) => "“" + text + "”";
const value = (x) => String(Number(x.toFixed(2)));
const middle = ([low, high]) => (low + high) / 2;
const exact = ([low, high]) => high - low <= 0.005 * high;
const rounded = (x) => probability(Number(x.toPrecision(2)));
const ranged = (range) => (exact(range) ? probability(middle(range)) : rounded(range[0]) + "–" + rounded(range[1]));
const listed = (words) => (words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " or " + words[words.length - 1]);

class Knobs {
  constructor(inspector) {
    this.inspector = inspector;
    this.open = window.innerWidth >= WIDE;
    this.key = "";
  }

  // Fills its place in the inspector when the numbers are here. Values stay as long as the same lane is looked at.
  fill(box) {
    const { lane, app, facts } = this.inspector, key = [app.run.id, lane.runIndex, lane.rows.length].join(" ");
    this.box = box;
    if (key !== this.key) {
      this.clear();
      this.key = key;
      this.data = this.values = null;
      page.call("explorer_what_if", { run: app.run.id, lane: lane.runIndex }).then((data) => {
        if (key !== this.key) return;
        this.data = data.error ? { why: data.error } : data.why || page.whatIf.fits(data) ? data : { why: OTHER_WAY };
        this.values = { ...data.values };
        this.draw();
      });
    }
    this.place = null;
    this.facts = facts;
    this.draw();
  }

  text(token) {
    return quoted(this.data.texts[token] ?? "token " + token);
  }

  draw() {
    const { data } = this, toggle = h("button", { type: "button", class: "what-if-toggle", "aria-expanded": String(this.open), onclick: () => {
      this.open = !this.open;
      this.draw();
      this.box.querySelector("button").focus({ preventScroll: true });
      if (this.open && window.innerWidth < WIDE) this.box.scrollIntoView({ block: "start" });
    } }, this.open ? "▾ What if …" : "▸ What if …");
    if (!data || !this.open || data.why) {
      this.box.replaceChildren(toggle, ...(this.open && data ? [h("p", { class: "rest" }, data.why)] : []));
      return;
    }
    const { node } = this.facts;
    this.place = data.places.find((place) => place.node === node || (place.draft && place.draft.node === node)) || null;
    this.rest = h("p", { class: "rest" });
    this.outcome = h("div", { class: "what-if-lane", role: "status" });
    this.here = h("div", { class: "what-if-here" });
    this.reset = h("button", { type: "button", onclick: () => {
      this.values = { ...data.values };
      this.draw();
    } }, "Reset");
    const { app } = this.inspector, full = app.lanes.length >= app.data.limits.lanes;
    const runs = app.data.saved ? [] : [
      h("button", { type: "button", class: "run-beside", disabled: full, title: "A new lane with these values; this one stays, to compare", onclick: () => this.run(true) }, "Run in a new lane"),
      h("button", { type: "button", title: "Decode this lane again with these values", onclick: () => this.run(false) }, "Run here")];
    this.runs = runs;
    this.box.replaceChildren(toggle, ...data.knobs.map((knob) => this.slider(knob)), h("div", { class: "actions" }, this.reset, ...runs), this.outcome, this.here);
    this.compute();
  }

  slider(knob) {
    const shown = h("span", { class: "value", "aria-hidden": "true" }, value(this.values[knob.name])), ends = { min: String(knob.low), max: String(knob.high), step: String(knob.step) };
    const input = h("input", { type: "range", ...ends, value: String(this.values[knob.name]), "aria-label": knob.name, oninput: () => {
      this.values[knob.name] = Number(input.value);
      shown.textContent = value(this.values[knob.name]);
      this.compute();
    } });
    return h("label", { class: "knob", title: knob.help }, h("span", {}, knob.name), input, shown);
  }

  moved() {
    return this.data.knobs.filter(({ name }) => this.values[name] !== this.data.values[name]).map(({ name }) => name);
  }

  compute() {
    const moved = this.moved();
    this.box.classList.toggle("moved", moved.length > 0);
    for (const button of [this.reset, ...this.runs]) button.disabled = !moved.length || (button.className === "run-beside" && this.inspector.app.lanes.length >= this.inspector.app.data.limits.lanes);
    const walk = page.whatIf.walked(this.data, this.values);
    this.mark(walk);
    this.outcome.replaceChildren(...(moved.length ? this.sentences(walk, moved) : [h("p", { class: "rest" }, "Move a slider: what it would change is computed from what this run has stored.")]));
    this.here.replaceChildren(...(moved.length && this.place ? this.picture(moved) : []));
  }

  // ---- the lane ---------------------------------------------------------------------------------------------------------

  sentences({ open, change }, moved) {
    const { data, values } = this, first = open || change, parts = [h("b", { class: "mark" }, "what if"), " "], { places } = data;
    const jump = (at) => this.inspector.jump(places[at].node, "position " + places[at].position), instead = (at) => " instead of " + this.text(places[at].token);
    const become = ({ token, could, other, at }) => {
      const words = could.filter((id) => id !== places[at].token).slice(0, 3).map((id) => this.text(id));
      return token !== null ? this.text(token) : listed([...words, ...(other || could.length > 4 ? ["another token"] : [])]);
    };
    if (!first) parts.push(moved.some((name) => name !== page.whatIf.LENGTH) ? "All " + places.length + " tokens stay." : "The text stays.");
    else {
      parts.push(first.at ? "Nothing changes before " : "", jump(first.at), ". ");
      if (open) parts.push("The token there is not certain: " + this.text(places[open.at].token) + " stays, or " + become(open) + " takes its place. ");
      if (open && change) parts.push("If it stays, ", jump(change.at), " certainly changes: " + become(change) + instead(change.at) + ". ");
      if (!open) parts.push("There " + become(change) + " would stand" + instead(change.at) + ". ");
      parts.push("From there on the text may differ: press Run to see it.");
    }
    const strip = first ? [this.strip(first)] : [];
    const counts = page.whatIf.passing(data, values), rounds = data.lengths && data.lengths[values[page.whatIf.LENGTH] - 1], lines = [...strip, h("p", {}, ...parts)];
    const draws = moved.some((name) => name !== page.whatIf.LENGTH);
    if (counts.tests && draws) lines.push(h("p", {}, "Taken one by one, " + counts.sure + " of the run's " + counts.tests + " tests pass" + (counts.open ? " and " + counts.open + " more may" : "") + "; in the run " + counts.run + " passed."));
    if (rounds && !draws) {
      const of = ([low, high]) => (low === high ? String(low) : low + " to " + high), own = data.lengths[data.values[page.whatIf.LENGTH] - 1];
      lines.push(h("p", {}, "Drafts of " + values[page.whatIf.LENGTH] + ": " + of(rounds) + " rounds for these " + places.length + " tokens, " + of(rounds.map((n) => places.length - n).reverse()) + " drafted ones accepted. Drafts of "
        + data.values[page.whatIf.LENGTH] + " took " + of(own) + "."));
    }
    return lines;
  }

  // The text around the first place that may change: what stays, the place, and what would be written instead.
  strip({ at, token }) {
    const { places, texts } = this.data, around = places.slice(Math.max(0, at - BEFORE), at + AFTER);
    return h("p", { class: "strip", "aria-hidden": "true" }, at > BEFORE ? "…" : "", ...around.map((place) => h("span",
      { class: "token" + (place === places[at] ? " first" : ""), ...(places.indexOf(place) > at ? { "data-other": "" } : {}) }, texts[place.token],
      ...(place === places[at] ? [h("b", {}, token === null ? " ?" : " → " + texts[token])] : []))), at + AFTER < places.length ? "…" : "");
  }

  // The chips of the places where the text may change, with the would-be token.
  mark({ open, change }) {
    const at = new Map([[open, "?"], [change, "→"]].filter(([one]) => one).map(([one, sign]) => [this.data.places[one.at].node, sign + (one.token !== null ? " " + (this.data.texts[one.token] ?? "") : "")]));
    const { lane } = this.inspector;
    for (const { element, mark } of [lane.chips, lane.text].flatMap((chips) => [...(chips?.made.values() || [])])) {
      if (at.has(mark.node)) element.dataset.whatIf = at.get(mark.node);
      else delete element.dataset.whatIf;
    }
  }

  clear() {
    for (const { element } of this.inspector.app.lanes.flatMap((lane) => [lane.chips, lane.text]).flatMap((chips) => [...(chips?.made.values() || [])])) delete element.dataset.whatIf;
    this.key = "";
  }

  // ---- the token at hand ------------------------------------------------------------------------------------------------

  picture(moved) {
    const { place, data, values } = this, answer = page.whatIf.placed(data, place, values), all = page.whatIf.cases(place.p, values, place.token);
    const now = page.whatIf.shares(all), before = page.whatIf.shares(page.whatIf.cases(place.p, data.values, place.token)), { test } = answer;
    const title = h("h3", {}, "Here, if all before stays ", h("span", {}, "■ what if  □ in the run"));
    const stands = answer.token !== null ? [this.text(answer.token), answer.token === place.token ? " stays." : " would stand here."]
      : ["Open between " + listed([...answer.could.slice(0, 4).map((id) => this.text(id)), ...(answer.other || answer.could.length > 4 ? ["a token that is not shown"] : [])]) + "."];
    const shaped = moved.some((name) => place.p && !(name in { lenience: 1, epsilon: 1, delta: 1 }) && name !== page.whatIf.LENGTH);
    return [title, ...(shaped ? this.bars(now, before) : []), test ? this.test(test, answer) : values.temperature ? this.line(all, answer) : null,
      h("p", { class: "why" }, ...stands)].filter(Boolean);
  }

  bars(now, before) {
    const ids = [...new Set([...now.ids, ...before.ids])].sort((a, b) => before.of(b)[1] - before.of(a)[1]).slice(0, ROWS), size = (id) => Math.max(now.of(id)[1], before.of(id)[1]);
    const largest = Math.max(...ids.map(size), 1e-9), gone = (id) => !now.ids.includes(id);
    const bar = (kind, [low, high]) => {
      const made = h("span", { class: "bar " + kind, hidden: high <= 0 });
      made.style.width = (100 * high) / largest + "%";
      made.style.setProperty("--sure", high > 0 ? (100 * low) / high + "%" : "0%");
      return made;
    };
    const row = (id) => h("div", { class: "offer-row" + (id === this.place.token ? " here" : "") }, h("span", { class: "token", title: this.data.texts[id] }, this.data.texts[id]),
      h("span", { class: "bars-of" }, bar("sure", gone(id) ? [0, 0] : now.of(id)), bar("q", before.of(id))),
      h("span", { class: "number" }, gone(id) ? "removed" : ranged(now.of(id))));
    const others = now.rest[1] > 0 ? "all others: " + ranged(now.rest) + ". The run stored the " + this.place.p.ids.length + " likeliest tokens one by one, the others as a sum, so some numbers are ranges." : null;
    return [...ids.map(row), others ? h("p", { class: "rest" }, others) : null].filter(Boolean);
  }

  // u on the running sum of the probabilities; hatched: which token stands there is not stored.
  line(all, answer) {
    const { place } = this, box = h("div", { class: "draw-box unknown" }), u = probability(place.u);
    for (const { id, low, high } of all.length === 1 ? page.whatIf.surely(all[0]) : []) {
      const piece = h("span", { class: "draw-piece" + (id === answer.token ? " here" : ""), title: this.data.texts[id] }, this.data.texts[id]);
      piece.style.left = 100 * low + "%";
      piece.style.width = 100 * (high - low) + "%";
      box.append(piece);
    }
    const tick = h("span", { class: "draw-tick" });
    tick.style.left = 100 * place.u + "%";
    box.append(tick);
    return h("div", { class: "draw", role: "img", "aria-label": "u " + u }, h("p", { class: "rest" }, "u = " + u + " on the running sum, in the vocabulary's order"), box);
  }

  test(test, { guess }) {
    const token = this.text(guess.token), drafted = guess.token === this.place.draft.token ? "" : "The draft would be " + token + ". ";
    const outcome = test.outcome === "open" ? "which of the two is not known." : "it is " + test.outcome + ".";
    if (test.pass) {
      const { u } = this.place.draft, box = h("div", { class: "test-box" }, h("span", { class: "test-fill" })), tick = h("span", { class: "test-tick" });
      box.firstChild.style.width = 100 * test.pass[0] + "%";
      tick.style.left = 100 * u + "%";
      return h("div", { class: "test-block" }, h("div", { class: "test is-" + test.outcome }, box, tick),
        h("p", { class: "rest" }, drafted + token + " passes if u < " + ranged(test.pass) + " (p " + ranged(test.p) + ", q " + ranged(test.q) + "); u = " + probability(u) + ": " + outcome));
    }
    const bar = test.bar !== undefined ? token + " has p " + ranged(test.p) + " and needs " + probability(test.bar) + ": " : token + ": ";
    return h("p", { class: "rest" }, drafted + bar + outcome);
  }

  // ---- going on from there ------------------------------------------------------------------------------------------------

  run(beside) {
    const { data, values, inspector: { lane, app } } = this, strategy = app.strategies.get(data.run_as), parameters = { ...data.parameters };
    for (const { name, default: usual } of strategy.parameters) {
      if (!(name in values)) continue;
      delete parameters[name];
      if (values[name] !== usual) parameters[name] = values[name];
    }
    const { seed, begin } = lane.setup, setup = { strategy: data.run_as, parameters, seed, ...(begin ? { begin } : {}) };
    this.clear();
    if (beside) app.addLane({ ...setup, view: lane.view });
    else {
      if (lane.setup.strategy !== setup.strategy) lane.wanted = strategy.views[0];
      lane.setup = setup;
      lane.describe();
      app.edited();
    }
    app.press("run");
  }
}

page.Knobs = Knobs;
