// The dialog that finds a strategy for a lane by title, alias, author or what it does (the first entry of a lane's list opens it),
// and what a further lane begins with.
// Knows strategies by their declarations, and no lane but by its `choose`.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;

  // All strategies by their titles; where the words begin words of names and aliases, those first.
  page.findStrategies = function (strategies, words) {
    const wanted = words.toLowerCase().split(/[\s_-]+/).filter(Boolean), ranked = [];
    const fits = (text) => wanted.every((word) => (" " + text.toLowerCase().replace(/[_(“-]/g, " ") + " " + text.toLowerCase()).includes(" " + word));
    for (const one of strategies) {
      const names = [one.title, one.name, ...(one.aliases || [])].join(" "), all = [names, one.by, one.summary, one.differs].join(" ");
      if (fits(names)) ranked.push([0, one]);
      else if (fits(all)) ranked.push([1, one]);
    }
    return ranked.sort((a, b) => a[0] - b[0] || a[1].title.localeCompare(b[1].title)).map(([, one]) => one);
  };

  // A strategy that no lane has: one to start with, of a family that is not there yet if there is one.
  page.contrast = function (app) {
    const used = app.lanes.map((lane) => lane.setup.strategy), families = app.lanes.map((lane) => lane.declaration().family);
    const can = (s) => s && !used.includes(s.name) && s.needs.every((role) => app.choice[role]);
    const starts = app.data.start.map((name) => app.strategies.get(name)).filter(can);
    return starts.find((s) => !families.includes(s.family)) || starts[0] || [...app.strategies.values()].find(can) || app.lanes[0].declaration();
  };

  page.addPart((app) => {
    if (app.data.saved) return;
    let lane = null;
    const field = h("input", { type: "search", "aria-label": "Search strategies", placeholder: "nucleus, Leviathan, draft tree …", oninput: () => draw(),
      onkeydown: (event) => {
        const first = list.querySelector("button:not(:disabled)");
        if (!first || !["Enter", "ArrowDown"].includes(event.key)) return;
        event.preventDefault();
        if (event.key === "Enter") first.click();
        else first.focus();
      } });
    const status = h("p", { class: "soft", role: "status" }), list = h("ul", {});
    const dialog = h("dialog", { class: "help find", "aria-label": "Find a strategy" },
      h("header", {}, h("h2", {}, "Find a strategy"), h("button", { type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "×")), field, status, list);
    dialog.addEventListener("close", () => lane.picker.focus({ preventScroll: true }));

    // Of a real run, where one is recorded.
    const picture = ({ name }) => h("img", { loading: "lazy", alt: "", src: `explorer-pictures/${name}/${app.theme}?${app.data.started}`, onerror: ({ target }) => target.remove() });

    function draw() {
      const results = page.findStrategies([...app.strategies.values()], field.value), start = ({ name }) => app.data.start.indexOf(name) + 1 || Infinity;
      if (!field.value.trim()) results.sort((one, other) => start(one) - start(other) || 0); // what to start with comes first
      status.textContent = results.length ? results.length + (results.length > 1 ? " strategies" : " strategy")
        : "Nothing found for “" + field.value.trim().slice(0, 60) + "”. Try fewer words.";
      list.replaceChildren(...results.map((one) => {
        const lacking = one.needs.find((role) => !app.choice[role]), what = one.parent ? "Unlike " + one.parent + ", it " + one.differs + "." : one.summary;
        return h("li", {}, h("button", { type: "button", disabled: Boolean(lacking), onclick: () => {
          lane.choose(one.name);
          dialog.close();
        } }, picture(one), h("strong", {}, one.title), h("span", {}, lacking ? "Needs a " + lacking + " model: choose one under Models." : what)));
      }));
    }

    app.findStrategy = (forLane) => {
      lane = forLane;
      field.value = "";
      if (!dialog.isConnected) app.bar.controls.append(dialog);
      draw();
      dialog.showModal();
      field.focus();
    };
  });
})(window.ExplorerPage);
