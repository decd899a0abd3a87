// What a stored distribution says about other values of temperature, top_k, top_p and min_p, and which token
// the recorded random number would choose: arithmetic on plain data (explorer/inspector/knobs.py), as
// decoders/logits does it with all tokens. A trace names the most likely tokens only; of all others it has
// mass, number and entropy. So weights are ranges, [low, high], and what the ranges leave open stays open:
// nothing is guessed.
const NEAR = 2e-6; // stored numbers are 32-bit: what is closer than this is not decided
const LENGTH = "num_assistant_tokens";
const SAMPLER = ["temperature", "top_k", "top_p", "min_p"];
const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
const plus = (one, other) => [one[0] + other[0], one[1] + other[1]];

// The range of Σ p^a over `count` tokens that are not named. `mass`: of all of them; `cap`: the most that one
// of them has; `nats`: their Σ −p ln p, if known.
function powered(a, mass, count, cap, nats) {
  if (count <= 0 || mass <= 0) return [0, 0];
  if (a === 1) return [mass, mass];
  const even = Math.pow(count, 1 - a) * Math.pow(mass, a),
    steep = mass * Math.pow(cap, a - 1),
    [low, high] = even < steep ? [even, steep] : [steep, even];
  if (nats === undefined) return [low, high];
  const surprise = Math.max(-Math.log(cap), Math.min(nats / mass, Math.log(count / mass)));
  // Jensen's inequality.
  return [Math.min(high, Math.max(low, mass * Math.exp((1 - a) * surprise) * (1 - 1e-4))), high];
}

// An offer at another temperature: weights of the named tokens (the most likely has 1), the range of all
// others, and of those on either side of the token that was drawn. `extra`: a named token that others may
// exceed.
function heated(offer, temperature, chosen) {
  const { ids, logs, others, extra, beside } = offer;
  if (!temperature)
    return { ids: [ids[0]], weights: [1], rest: [0, 0], others: 0, cap: 0, sides: null, extra: null };
  const a = offer.temperature / temperature,
    scale = Math.exp(-a * logs[0]),
    cap = Math.exp(logs[logs.length - 1]);
  const weight = (log) => Math.exp(a * (log - logs[0])),
    slack = others ? NEAR * scale : 0;
  const range = (...given) =>
    powered(a, ...given).map((x, i) => Math.max(0, x * scale + (i ? slack : -slack)));
  let rest = range(offer.rest, others, cap, offer.nats),
    sides = null;
  if (beside && beside.id === chosen) {
    const { below, count } = beside;
    sides = {
      id: chosen,
      below: range(below, count, cap),
      above: range(offer.rest - below, others - count, cap),
    };
    const both = plus(sides.below, sides.above);
    rest = [Math.max(rest[0], both[0] - slack), Math.min(rest[1], both[1] + slack)];
  }
  return {
    ids,
    weights: logs.map(weight),
    rest,
    others,
    cap: weight(logs[logs.length - 1]),
    sides,
    extra: extra && { id: extra.id, weight: weight(extra.log) },
  };
}

// What truncations leave: one case for each number of named tokens that may stay, {ids, weights: ranges,
// rest, cap, sides}.
function cases(offer, values, chosen) {
  const hot = heated(offer, values.temperature, chosen),
    named = hot.ids.length,
    { top_k: k = 0, top_p: p = 1, min_p: minP = 0 } = values;
  const few = k > 0 && k < named + hot.others + (hot.extra ? 1 : 0),
    kept = few ? Math.min(named, k) : named;
  const rest = !few
    ? hot.rest
    : k > named
      ? [(hot.rest[0] * Math.max(0, k - named - 1)) / Math.max(1, hot.others), hot.rest[1]]
      : [0, 0];
  const extra = !hot.extra || (few && k <= named) ? [0, 0] : [few ? 0 : hot.extra.weight, hot.extra.weight];
  const sums = [0];
  for (const weight of hot.weights.slice(0, kept)) sums.push(sums[sums.length - 1] + weight);
  const all = sums[kept],
    bar = [0, 1].map((end) =>
      p >= 1 ? Infinity : p * (all + rest[end] + extra[end]) * (1 + (end ? NEAR : -NEAR)),
    );
  const result = [];
  for (let stays = p >= 1 ? kept : 1; stays <= kept; stays++) {
    // a token stays while what is more likely is below the bar
    const can = stays === 1 || sums[stays - 1] < bar[1],
      last = stays === kept || sums[stays] >= bar[0];
    if (can && last) result.push([stays, stays < kept || all >= bar[1]]);
  }
  return result.map(([stays, whole]) => {
    const ids = hot.ids.slice(0, stays),
      weights = hot.weights.slice(0, stays).map((weight) => [weight, weight]);
    let [open, one] = whole
      ? [
          [0, 0],
          [0, 0],
        ]
      : p < 1
        ? [
            [Math.max(0, Math.min(rest[1], bar[0] - all - extra[1])), rest[1]],
            [all + rest[1] < bar[0] ? extra[0] : 0, extra[1]],
          ]
        : [rest, extra];
    const enough = weights.filter(([weight]) => weight >= minP).length;
    if (enough < stays || hot.cap < minP) open = [0, 0];
    else if (minP) open = [0, open[1]];
    if (hot.extra && hot.extra.weight < minP) one = [0, 0];
    const shown = Math.max(1, enough),
      extras = one[1] > 0;
    return {
      ids: [...ids.slice(0, shown), ...(extras ? [hot.extra.id] : [])],
      weights: [...weights.slice(0, shown), ...(extras ? [one] : [])],
      rest: open,
      cap: hot.cap,
      sides: few || p < 1 || minP ? null : hot.sides,
    };
  });
}

// The probability of each named token and of all others, as ranges over all cases; `cap`: of one that is not
// named.
function shares(all) {
  const each = all.map(({ ids, weights, rest, cap }) => {
    const sum = [0, 1].map((end) => total(weights.map((weight) => weight[end])) + rest[end]);
    const of = (weight) => [
      weight[0] / (sum[1] - weight[1] + weight[0]),
      weight[1] / (sum[0] - weight[0] + weight[1]),
    ];
    const others = of(rest),
      top = rest[1] ? Math.min(cap / sum[0], others[1]) : 0;
    return { named: new Map(ids.map((id, i) => [id, of(weights[i])])), rest: others, cap: top };
  });
  const hull = (ranges) => [
    Math.min(...ranges.map(([low]) => low)),
    Math.max(...ranges.map(([, high]) => high)),
  ];
  const ids = [...new Set(all.flatMap((one) => one.ids))],
    cap = Math.max(...each.map((one) => one.cap));
  const named = new Map(ids.map((id) => [id, hull(each.map((one) => one.named.get(id) || [0, 0]))]));
  return { of: (id) => named.get(id) || [0, cap], ids, rest: hull(each.map((one) => one.rest)), cap };
}

// Named tokens in the vocabulary's order, each with the ranges in which its part of [0, 1) starts and ends.
function inOrder({ ids, weights, rest, cap, sides }) {
  const order = ids.map((_, i) => i).sort((i, j) => ids[i] - ids[j]);
  const sum = (keep) =>
    [0, 1].map((end) => total(weights.map((range, j) => (keep(ids[j]) ? range[end] : 0))));
  return order.map((i, before) => {
    const id = ids[i],
      weight = weights[i];
    let below = [0, rest[1]],
      above = [0, rest[1]];
    if (sides && id === sides.id) [below, above] = [sides.below, sides.above];
    else if (sides && id < sides.id)
      [below, above] = [
        [0, sides.below[1]],
        [sides.above[0], rest[1]],
      ];
    else if (sides)
      [below, above] = [
        [sides.below[0], rest[1]],
        [0, sides.above[1]],
      ];
    // At most this many tokens stand before it.
    below = [Math.max(0, below[0], rest[0] - above[1]), Math.min(below[1], rest[1], (id - before) * cap)];
    above = [Math.max(0, above[0], rest[0] - below[1]), Math.min(above[1], rest[1])];
    [below, above] = [
      plus(
        sum((one) => one < id),
        below,
      ),
      plus(
        sum((one) => one > id),
        above,
      ),
    ];
    const share = (part, others) => part / (part + others || 1);
    return {
      id,
      start: [0, 1].map((end) => share(below[end], weight[1 - end] + above[1 - end])),
      end: [0, 1].map((end) => share(below[end] + weight[end], above[1 - end])),
    };
  });
}

// The token that u draws from ranged weights: {token} if that is sure, else null; `could`: which named ones
// it may be; `other`: whether it may be one that is not named.
function drawn(u, one) {
  const could = [],
    other = one.rest[1] > 0;
  for (const { id, start, end } of inOrder(one)) {
    if ((!start[1] || start[1] <= u - NEAR) && end[0] > u + NEAR)
      return { token: id, could: [id], other: false };
    if (start[0] <= u + NEAR && end[1] > u - NEAR) could.push(id);
  }
  return { token: could.length === 1 && !other ? could[0] : null, could, other };
}

// The same over several cases: sure only if all say so.
function agreed(answers) {
  const [first] = answers;
  if (first.token !== null && answers.every((one) => one.token === first.token)) return first;
  return {
    token: null,
    could: [...new Set(answers.flatMap((one) => one.could))],
    other: answers.some((one) => one.other),
  };
}

const draw = (u, offer, values, chosen) => agreed(cases(offer, values, chosen).map((one) => drawn(u, one)));

// ---- a drafted token's test, by the rules of the verifiers, and the way through a text --------------------

const against = (low, high, bar) =>
  low > bar * (1 + NEAR) ? "accepted" : high < bar * (1 - NEAR) ? "rejected" : "open";
const ruleOf = (data, values) => data.rule[values.temperature ? data.rule.length - 1 : 0];
const changed = (data, values, names) => names.some((name) => values[name] !== data.values[name]);
// A trace holds q after its truncations.
const ofDraft = (data, values) => (data.fixed ? { temperature: values.temperature } : values);

// How a drafted token fares: {outcome: "accepted", "rejected" or "open"}, with ranges of p, q and the
// probability to pass where they decide.
function tested(data, place, values, token = place.draft.token) {
  const { draft, p: offer } = place,
    rule = ruleOf(data, values),
    { lenience = 1 } = values;
  if (rule === "greedy_match") return { outcome: offer.ids[0] === token ? "accepted" : "rejected" };
  const known = token === draft.token && !changed(data, values, SAMPLER) && [draft.tested, draft.tested];
  if (rule === "typical_acceptance") {
    const bar = Math.min(values.epsilon, values.delta * Math.exp(-draft.entropy));
    return { p: known, bar, outcome: against(...known, bar) };
  }
  if (!values.temperature) {
    // lenient: against the target's best token
    const p = shares(cases(offer, { temperature: 1 })),
      of = known || p.of(token),
      bar = lenience * p.of(offer.ids[0])[1];
    return { p: of, bar, outcome: token === offer.ids[0] ? "accepted" : against(...of, bar) };
  }
  const p = known || shares(cases(offer, values)).of(token),
    q = shares(cases(draft.q, ofDraft(data, values))).of(token);
  const pass = [0, 1].map((end) => Math.min(1, p[end] / (lenience * q[1 - end])));
  return { p, q, pass, u: draft.u, outcome: against(...pass, draft.u) };
}

// What the target draws from after a rejection: max(0, p - lenience q), as ranges.
function leftOver(data, place, values) {
  const { lenience = 1 } = values,
    p = shares(cases(place.p, values)),
    q = shares(cases(place.draft.q, ofDraft(data, values)));
  const weights = p.ids.map((id) =>
    [0, 1].map((end) => Math.max(0, p.of(id)[end] - lenience * q.of(id)[1 - end])),
  );
  const taken =
    lenience * (q.rest[1] + total(q.ids.filter((id) => !p.ids.includes(id)).map((id) => q.of(id)[1])));
  return { ids: p.ids, weights, rest: [Math.max(0, p.rest[0] - taken), p.rest[1]], cap: p.cap, sides: null };
}

// The token in a place with other values, if all before it stay: {token, could, other}, with {guess, test} of
// a drafted one.
function placed(data, place, values) {
  const { draft } = place,
    only = (token) => ({ token, could: [token], other: false });
  if (!draft) return draw(place.u, place.p, values, place.token);
  const shaped = changed(data, values, SAMPLER),
    rule = ruleOf(data, values);
  const guess = shaped ? draw(draft.drawn, draft.q, values) : only(draft.token);
  if (guess.token === null)
    return {
      token: null,
      could: [...new Set([place.token, ...place.p.ids, ...guess.could])],
      other: true,
      guess,
    };
  const test = tested(data, place, values, guess.token),
    more = { guess, test };
  if (test.outcome === "accepted") return { ...guess, ...more };
  const still =
    test.outcome === "rejected" &&
    !draft.accepted &&
    !shaped &&
    (rule === "typical_acceptance" || !changed(data, values, ["lenience"]));
  if (still) return { ...only(place.token), ...more };
  const left = values.temperature && rule !== "typical_acceptance" && guess.token !== null;
  const own = left ? drawn(place.u, leftOver(data, place, values)) : draw(place.u, place.p, values);
  if (test.outcome === "rejected") return { ...own, ...more };
  return { token: null, could: [...new Set([guess.token, ...own.could])], other: own.other, ...more };
}

// Whether an answer leaves the place's own token possible.
function mayStay(place, answer) {
  const { ids, extra } = place.p,
    named = ids.includes(place.token) || Boolean(extra && extra.id === place.token);
  return answer.token === place.token || answer.could.includes(place.token) || (answer.other && !named);
}

// Whether the values of the run lead to the run: else its strategy chooses its tokens in another way than its
// parts say.
const fits = (data) => data.places.every((place) => mayStay(place, placed(data, place, data.values)));

// Through the text: `open` is the first place that may change, `change` the first that does for sure; {at,
// token, could, other}, or null. A draft that may fare otherwise puts later rounds out of step, and what
// those would draft is not stored.
function walked(data, values) {
  const result = { open: null, change: null };
  if (
    !changed(
      data,
      values,
      data.knobs.map((knob) => knob.name).filter((name) => name !== LENGTH),
    )
  )
    return result;
  const lengths = [values[LENGTH], data.values[LENGTH]],
    other = ruleOf(data, values) !== "greedy_match" && lengths[0] !== lengths[1];
  let step = true;
  for (const [at, place] of data.places.entries()) {
    // Drafts of another length are drawn with other numbers from their second round on.
    step = step && !(other && at >= Math.min(...lengths));
    const answer = step ? placed(data, place, values) : { token: null, could: [place.token], other: true };
    if (!mayStay(place, answer)) return { ...result, change: { at, ...answer } };
    if (answer.token === null) result.open ??= { at, ...answer };
    if (place.draft)
      step =
        step &&
        Boolean(answer.test) &&
        (answer.test.outcome === "accepted") === place.draft.accepted &&
        answer.test.outcome !== "open";
  }
  return result;
}

// The tests of the run taken one by one: how many pass for sure, how many may, and how many did.
function passing(data, values) {
  const tests = data.places.filter((place) => place.draft),
    outcomes = tests.map((place) => tested(data, place, values).outcome);
  const count = (outcome) => outcomes.filter((one) => one === outcome).length;
  return {
    tests: tests.length,
    sure: count("accepted"),
    open: count("open"),
    run: tests.filter((place) => place.draft.accepted).length,
  };
}

page.whatIf = { LENGTH, cases, shares, inOrder, draw, placed, walked, passing, fits };
