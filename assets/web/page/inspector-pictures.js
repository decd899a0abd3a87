// The inspector's pictures: tokens on offer as bars, a test of p against q, the stages of a sampler. HTML made from facts;
// tokens are only ever set as text. Knows nothing of runs; `tools.branch(row)` makes the button that forces a row's token.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const MANY_STAGES = 5; // with more, those that change nothing are left out and named
  const DERIVED = "p is what the attempt before left; q is derived: the draft without what was tried";
  const MAX_ROWS = 9; // tokens shown; the rest is one sum

  const digits = (text) => text.replace(/^(-?)0\./, "$1.");

  // .0352: three significant digits, never 0 for something that is not nothing; — for what is not known.
  page.probability = function (p) {
    if (p === null || p === undefined) return "—";
    if (p === 0) return "0";
    if (p < 1e-6) return p.toExponential(1).replace("e-", "e−");
    return p >= 0.9995 ? "1.00" : digits(p.toPrecision(3).replace(/^(0\.0*\d{3}).*/, "$1"));
  };

  // 23 %, 6.7 %, .04 %
  page.percent = function (p) {
    if (p === null || p === undefined) return "—";
    const share = 100 * p;
    if (share < 1e-3) return share > 0 ? "< .001 %" : "0 %";
    return (share >= 9.95 ? share.toFixed(0) : digits(share >= 0.0995 ? share.toFixed(1) : share.toPrecision(1))) + " %";
  };

  const token = (text) => h("span", { class: "token", title: text }, text);

  function bar(kind, share) {
    const made = h("span", { class: "bar " + kind, hidden: !share });
    made.style.width = 100 * Math.min(1, share) + "%";
    return made;
  }

  // A bar in a space of its own, so that the number behind it takes nothing of its scale.
  const track = (kind, share) => h("span", { class: "track" }, bar(kind, share));

  // Whatever is not listed, so that all is accounted for.
  function rest(words, more) {
    return h("p", { class: "rest" }, more > 0 ? "and " + more.toLocaleString("en") + " more: " + words : "all others: " + words);
  }

  // One distribution: bars in order, the entropy, where the chosen token stands.
  page.offerPicture = function (stage, tools) {
    const largest = Math.max(...stage.rows.map((row) => row.p), 1e-9);
    const rows = stage.rows.map((row) => h("div", { class: "offer-row" + (row.here ? " here" : "") }, token(row.text),
      h("span", { class: "bars-of" }, bar("p", row.p / largest)), h("span", { class: "number" }, page.probability(row.p)),
      tools.branch(row)));
    return h("section", { class: "offer" }, page.stageLine(stage), ...rows,
      stage.rest > 0.00005 ? rest(page.percent(stage.rest), stage.more) : null);
  };

  // "model: entropy 2.31 bits, the token is number 3 with .0651".
  page.stageLine = function (stage) {
    const place = stage.rank ? "rank " + stage.rank : stage.p === 0 ? "removed" : stage.p === null ? "" : "below the likeliest";
    const words = ["entropy " + stage.entropy.toFixed(2) + " bits", place, stage.p ? "p " + page.probability(stage.p) : ""];
    return h("h3", { class: "fact" }, stage.title + " ", h("span", {}, words.filter(Boolean).join(" · ")));
  };

  // ---- a test: p filled, q outlined, what is left over, the bar with the draw -----------------------------------

  page.attemptPicture = function (attempt, number, count, tools) {
    const residual = attempt.residual !== null;
    const largest = Math.max(...attempt.rows.map((row) => Math.max(row.p || 0, row.q || 0)), 1e-9);
    const largestLeft = Math.max(...attempt.rows.map((row) => row.left || 0), 1e-9);
    const drafted = attempt.rows.some((row) => row.q !== null);
    const head = h("div", { class: "attempt-head" }, h("span", {}, drafted ? "■ p target  □ q draft" : "■ p target"),
      residual ? h("span", { class: "left-title", title: residualTitle(attempt) }, "residual") : null);
    const rows = attempt.rows.map((row) => {
      const look = row.mark === "tested" ? " here is-" + attempt.status : row.mark === "own" ? " is-resampled" : "";
      return h("div", { class: "offer-row attempt-row" + (residual ? " with-left" : "") + look }, token(row.text),
        h("span", { class: "bars-of" }, bar("p", (row.p || 0) / largest), drafted ? bar("q", (row.q || 0) / largest) : null),
        h("span", { class: "number" }, pair(attempt, row, drafted)),
        residual ? h("span", { class: "left" }, track("left-bar", (row.left || 0) / largestLeft),
          h("span", {}, row.left ? page.probability(row.left) : row.left === 0 ? "" : "?")) : null,
        tools.branch(row));
    });
    const left = (drafted ? ["p", "q"] : ["p"]).map((side) => side + " " + page.percent(attempt.rest[side])).join(", ");
    const which = "Attempt " + number + " of " + count + ": ";
    const title = h("h3", {}, which, token(attempt.text), h("span", {}, " " + attempt.status));
    return h("section", { class: "attempt", "aria-label": "Test " + number }, ...[
      count > 1 ? title : null, head, ...rows, rest(left), residual ? h("p", { class: "rest" }, residualTitle(attempt)) : null,
      attempt.derived ? h("p", { class: "rest" }, DERIVED) : null,
      attempt.accept !== null ? testBar(attempt) : null, attempt.reason ? h("p", { class: "why" }, attempt.reason) : null,
    ].filter(Boolean));
  };

  function residualTitle(attempt) {
    if (attempt.residual !== "all") return "residual: max(0, p − q), derived, as a share of what is left of the tokens shown";
    return "residual: max(0, p − q) as a share of all that is left; all others: " + page.percent(attempt.rest.left);
  }

  function pair(attempt, row, drafted) {
    const tested = row.mark === "tested", p = tested && attempt.shown.p || page.probability(row.p);
    return drafted ? p + " / " + (tested && attempt.shown.q || page.probability(row.q)) : p;
  }

  function testBar(attempt) {
    const share = 100 * attempt.accept, accepted = attempt.status === "accepted";
    const fill = h("span", { class: "test-fill" }), words = "accept if u < " + attempt.shown.accept;
    fill.style.width = share + "%";
    const box = h("div", { class: "test-box" }, fill);
    const said = h("span", { class: "test-words" }, words);
    const line = h("div", { class: "test" + (accepted ? " is-accepted" : " is-rejected"), role: "img",
      "aria-label": words + ", u " + attempt.shown.u + ": " + attempt.status }, box);
    if (attempt.u !== null) {
      const tick = h("span", { class: "test-tick" }), label = h("span", { class: "test-u" }, "u " + attempt.shown.u);
      tick.style.left = label.style.left = 100 * attempt.u + "%";
      if (attempt.u > 0.85) label.classList.add("at-end");
      else if (attempt.u < 0.1) label.classList.add("at-start");
      line.append(label, tick);
    }
    const foot = h("div", { class: "test-foot" }, said, share < 99.95 ? h("span", {}, "else reject") : null);
    return h("div", { class: "test-block" }, line, foot);
  }

  // ---- a sampler: one column a stage, one row a token -----------------------------------------------------------

  page.samplerPicture = function (stages, draw, tools) {
    const still = (stage, i) => i > 0 && i < stages.length - 1 && same(stage, stages[i - 1]);
    const silent = stages.length > MANY_STAGES ? stages.filter(still) : [];
    const shown = stages.filter((stage) => !silent.includes(stage)), first = stages[0], last = stages[stages.length - 1];
    const others = stages.flatMap((stage) => stage.rows).filter((row) => !first.rows.some((other) => other.id === row.id));
    const order = [...new Map([...first.rows, ...others].map((row) => [row.id, row])).values()].slice(0, MAX_ROWS);
    const largest = Math.max(...shown.flatMap((stage) => stage.rows.map((row) => row.p)), 1e-9);
    const grid = h("div", { class: "sampler" });
    grid.style.setProperty("--stages", String(shown.length));
    const removed = (stage) => h("span", { class: "removed" }, stage.removed ? "removed " + page.percent(stage.removed) : "");
    const titles = shown.map((stage) =>
      h("div", { class: "stage-title", title: stage.title }, h("b", {}, stage.title), removed(stage)));
    grid.append(h("span", {}), ...titles, h("span", {}));
    for (const row of order) {
      const name = h("span", { class: "stage-token" + (row.here ? " here" : "") }, token(row.text));
      grid.append(name, ...stageCells(row, shown, largest), tools.branch(row) || h("span", {}));
    }
    const views = stages.some((stage) => stage.view === "unwanted");
    const title = views ? "What each view offered, and what came of it " : "What each processor left ";
    const entropies = shown.map((stage) => stage.entropy.toFixed(2)).join(" → ");
    return h("section", { class: "offer" }, ...[
      h("h3", {}, title, h("span", {}, "entropy " + entropies + " bits")), grid,
      rest(shown.map((stage) => stage.title + " " + page.percent(stage.rest)).join(", "), null),
      silent.length ? h("p", { class: "rest" }, "changed nothing: " + silent.map((stage) => stage.title).join(", ")) : null,
      draw ? drawPicture(draw, last) : null,
    ].filter(Boolean));
  };

  // One token's cells: its bar in each stage, a dotted outline with ✕ where it was removed, nothing after that.
  function stageCells(row, stages, largest) {
    const here = row.here ? " here" : "";
    let before = null, gone = false;
    return stages.map((stage) => {
      const match = stage.rows.find((other) => other.id === row.id);
      if (match) {
        before = match;
        return h("span", { class: "stage-cell" + here }, track("p", match.p / largest),
          h("span", { class: "number" }, page.percent(match.p)));
      }
      if (gone) return h("span", { class: "stage-cell" + here });
      gone = stage.view !== "unwanted" && (stage.more === 0 || stage.rest < 1e-6);
      if (!gone) return h("span", { class: "stage-cell" + here, title: "not among the recorded tokens" }, "·");
      return h("span", { class: "stage-cell" + here, title: "removed by " + stage.title },
        bar("gone", before ? before.p / largest : 1e-9), h("span", { class: "cross" }, "✕"));
    });
  }

  const same = (a, b) => a.rows.length === b.rows.length
    && a.rows.every((row, i) => row.id === b.rows[i].id && Math.abs(row.p - b.rows[i].p) < 1e-9);

  // One random number on the running sums of the probabilities, tokens in the vocabulary's order.
  function drawPicture(draw, stage) {
    const box = h("div", { class: "draw-box" }), whole = stage.more === 0 && stage.rest < 1e-6;
    const chosen = stage.rows.find((row) => row.here), name = chosen ? chosen.text : "";
    const piece = (low, high, row) => {
      const title = row.text + " " + page.percent(high - low);
      const made = h("span", { class: "draw-piece" + (row.here ? " here" : ""), title }, row.text);
      made.style.left = 100 * low + "%";
      made.style.width = 100 * (high - low) + "%";
      return made;
    };
    if (whole) {
      let low = 0;
      for (const row of [...stage.rows].sort((a, b) => a.id - b.id)) box.append(piece(low, (low += row.p), row));
    } else if (draw.low !== null && chosen) box.append(piece(draw.low, draw.high, chosen));
    const tick = h("span", { class: "draw-tick" });
    tick.style.left = 100 * draw.u + "%";
    box.append(tick);
    const u = digits(draw.u.toFixed(4));
    return h("div", { class: "draw", role: "img", "aria-label": "u = " + u + " falls on " + name },
      h("p", { class: "rest" }, "the draw: u = " + u + " falls on ", token(name),
        draw.low !== null ? " (" + digits(draw.low.toFixed(4)) + " to " + digits(draw.high.toFixed(4)) + ")" : ""),
      box, h("p", { class: "rest" }, "one random number on the running sum of the probabilities, in the vocabulary's order"));
  }
})(window.ExplorerPage);
