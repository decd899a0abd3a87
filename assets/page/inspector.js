// The inspector: why this token here. A panel with what was on offer at a place, what became of the token, and the reason,
// all as the trace recorded it. Tokens are only ever set as text.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;

  // .0352, never 0 for something that is not nothing.
  function probability(p) {
    if (p === null || p === undefined) return "—";
    if (p > 0 && p < 0.0001) return "< .0001";
    return p >= 0.9995 ? "1.00" : p.toPrecision(3).replace(/^0/, "").slice(0, 6);
  }

  function verdict(v) {
    const numbers = [["p", v.p], ["q", v.q], ["u", v.u]].filter(([, value]) => typeof value === "number")
      .map(([name, value]) => name + " " + probability(value)).join(", ");
    return h("p", { class: "verdict is-" + v.status.replace(" ", "-") }, h("b", {}, v.status),
      " in step " + v.step + (numbers ? ": " + numbers + "." : "."), v.reason ? " " + v.reason : "");
  }

  function offer(o, merged) {
    const most = Math.max(...o.rows.map((row) => Math.max(row.p, merged ? merged(row.text) || 0 : 0)), 1e-9);
    const bar = (p, kind) => {
      const made = h("span", { class: "bar " + kind });
      made.style.width = (100 * (p || 0)) / most + "%";
      return made;
    };
    return h("section", { class: "offer" },
      h("h3", {}, o.view + " ", h("span", {}, "entropy " + (o.entropy / Math.LN2).toFixed(2) + " bits")),
      ...o.rows.map((row) => h("div", { class: "offer-row" + (row.here ? " here" : "") },
        h("span", { class: "token" }, row.text),
        h("span", { class: "bars-of" }, bar(row.p, "p"), merged ? bar(merged(row.text), "q") : null),
        h("span", { class: "number" }, probability(row.p) + (merged ? " / " + probability(merged(row.text)) : "")))),
      o.rest > 0.00005 ? h("p", { class: "rest" }, "and all other tokens: " + probability(o.rest)) : null);
  }

  // Target and draft side by side where both were recorded: p filled, q outlined.
  function offers(list) {
    const target = list.find((o) => o.view === "target"), draft = list.find((o) => o.view === "draft");
    if (!target || !draft) return list.map((o) => offer(o));
    const q = new Map(draft.rows.map((row) => [row.text, row.p]));
    const both = offer({ ...target, view: "■ p target  □ q draft" }, (text) => q.get(text));
    return [both, ...list.filter((o) => o !== target && o !== draft).map((o) => offer(o))];
  }

  page.buildInspector = function (app) {
    const title = h("h2", {}), body = h("div", { class: "inspector-body" });
    const close = h("button", { type: "button", "aria-label": "Close inspector", title: "Close (Escape)", onclick: () => hide() }, "×");
    const root = h("aside", { class: "inspector", "aria-label": "Inspector", hidden: true }, h("header", {}, title, close), body);
    function hide() {
      root.hidden = true;
    }
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") hide();
    });

    async function show(lane, node) {
      const run = app.run, number = app.lanes.indexOf(lane) + 1;
      if (!run || lane.runIndex === null) return;
      const found = await page.call("explorer_inspect", { run: run.id, lane: lane.runIndex, node });
      if (app.run !== run) return;
      if (found.error) return app.fail(found.error);
      title.replaceChildren("Lane " + number + (found.born ? ", step " + found.born : ", prompt") + ": ", h("span", { class: "token" }, found.token));
      const score = found.scores[found.scores.length - 1];
      body.replaceChildren(...[
        h("p", { class: "path" }, ...found.path.map((text) => h("span", { class: "token" }, text)), h("span", { class: "token here" }, found.token)),
        ...(found.verdicts.length ? found.verdicts.map(verdict) : [h("p", {}, found.source === "prompt" ? "Given, not decoded." : "From the " + found.source + "; nothing was tested.")]),
        score ? h("p", {}, score.name + " " + score.total.toFixed(2) + (score.rank ? ", rank " + score.rank : "") + " in step " + score.step + ".") : null,
        ...offers(found.offers),
        found.siblings.length ? h("section", { class: "siblings" }, h("h3", {}, "Also tried here"), ...found.siblings.map((s) =>
          h("div", {}, h("span", { class: "token" }, s.text), " ", s.status || "still in play", typeof s.p === "number" ? ", p " + probability(s.p) : "",
            typeof s.q === "number" ? ", q " + probability(s.q) : ""))) : null,
      ].filter(Boolean));
      root.hidden = false;
      body.scrollTop = 0;
    }
    return { root, show, hide };
  };
})(window.ExplorerPage);
