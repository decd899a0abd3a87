// Chat: a switch for models that have a chat template. With it the prompt is a user's message, and what the template makes of
// it, which is what is decoded, can be read token by token. The template runs on the server; this file only shows.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const { h, labelled } = page;
  const REST_MS = 300; // from the last key to the question what the template makes of it

  page.addPart((app) => {
    let asked = null, timer = null;
    const box = h("input", { type: "checkbox", onchange: () => turn(box.checked) });
    const system = h("input", { type: "text", "aria-label": "System message", placeholder: "optional", oninput: () => turn(true) });
    const what = h("span", { class: "what" }, "This model has a chat template: with it, the prompt is a message to the model.");
    const summary = h("summary", {}, "Rendered prompt");
    const tokens = h("div", { class: "rendered", tabindex: "0", role: "group", "aria-label": "Rendered prompt" });
    const fold = h("details", { hidden: true }, summary, tokens);
    const field = labelled("system", system, "system");
    const row = h("div", { class: "bar chat", hidden: true }, h("label", { class: "switch" }, box, "chat"), field, fold, what);
    app.bar.status.parentNode.before(row);

    function turn(on) {
      app.chat = on ? { system: system.value } : null;
      app.edited();
    }

    // The row as the settings are now.
    function draw() {
      const facts = (app.models.facts || {}).target, on = app.chat !== null;
      row.hidden = Boolean(app.data.saved) || !((facts && facts.chat) || on);
      box.checked = on;
      what.hidden = on;
      field.hidden = fold.hidden = !on;
      if (on && document.activeElement !== system) system.value = app.chat.system || "";
      if (on && !row.hidden) later();
    }

    function later() {
      const request = { models: app.choice, prompt: app.bar.prompt.value, chat: app.chat }, key = JSON.stringify(request);
      if (key === asked) return;
      asked = key;
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const answer = await page.call("explorer_chat", request);
        if (asked === key) show(answer);
      }, REST_MS);
    }

    function show(answer) {
      summary.textContent = answer.error || "Rendered prompt: " + answer.count.toLocaleString("en") + " tokens, this is what is decoded";
      const shown = answer.tokens || [], rest = (answer.count || 0) - shown.length;
      const chip = ([text, special]) => h("span", special ? { class: "special", title: "a special token" } : {}, text);
      tokens.replaceChildren(...shown.map(chip),
        rest > 0 ? h("span", {}, " … and " + rest.toLocaleString("en") + " more tokens") : "");
    }

    app.on("models", draw);
    app.on("state", draw);
  });
})(window.ExplorerPage);
