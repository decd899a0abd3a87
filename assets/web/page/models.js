// The models: buttons in the bar that say which are in use, and the panel where others are chosen. The page goes on with the
// models it has until the chosen ones are there; prompt and lanes stay. Knows names, numbers and sentences of the server only.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const { h, choice, labelled } = page;
  const ROLES = ["target", "draft"];
  const KINDS = [["embedded", "embedded", "Models that come with the app"], ["hub", "Hub id", "owner/model or owner/model@revision; several drafts with commas"],
    ["folder", "folder", "A folder with config.json, safetensors weights and tokenizer"]];
  const HELD = { hub: "owner/model or owner/model@revision", folder: "/path/to/model" };
  const NONE = "none";

  const same = (a, b) => JSON.stringify(page.completeChoice(a)) === JSON.stringify(page.completeChoice(b));
  const short = (names) => names.split(/\s*,\s*/).map((name) => name.replace(/[/\\]+$/, "").split(/[/\\]/).pop()).join(", ");

  // A choice with nothing left out, in one order.
  page.completeChoice = ({ target, draft, dtype, device }) =>
    ({ target, draft: draft || null, dtype: dtype || "auto", device: device || "auto" });

  // One role's picker: what kind of name, and the name.
  class Picker {
    constructor(role, changed) {
      this.role = role;
      this.changed = changed;
      this.kind = "embedded";
      this.list = h("select", { "aria-label": role + " model", onchange: changed });
      this.text = h("input", { type: "text", "aria-label": role + " model name", spellcheck: "false", autocomplete: "off",
        onchange: changed });
      this.kinds = choice("Kind of " + role + " model", KINDS, this.kind, (kind) => {
        this.show(kind);
        (kind === "embedded" ? this.list : this.text).focus();
        changed();
      });
      this.also = h("select", { "aria-label": "second draft model", title: "A second draft model, for strategies that take several: SpecInfer",
        onchange: changed });
      this.more = h("label", { class: "also" }, "and ", this.also);
      this.element = h("fieldset", {}, h("legend", {}, role), this.kinds.element, this.list, ...(role === "draft" ? [this.more] : []), this.text);
      this.show(this.kind);
    }

    show(kind) {
      this.kind = kind;
      this.kinds.select(kind);
      this.list.hidden = this.more.hidden = kind !== "embedded";
      this.text.hidden = kind === "embedded";
      this.text.placeholder = HELD[kind] || "";
    }

    // The list, from what the server offers.
    offer(offered) {
      const facts = (m) => m.name + ", " + (m.parameters / 1e6).toFixed(1) + " M parameters, loss " + m.held_out_loss.toFixed(2);
      const more = (m) => m.layers + " layers, context of " + m.context + " tokens; the loss is in nats a token, on held-out text";
      this.names = [...offered.embedded.map((m) => m.name), ...offered.others];
      this.list.replaceChildren(
        ...(this.role === "draft" ? [h("option", { value: NONE }, "none")] : []),
        ...offered.embedded.map((m) => h("option", { value: m.name, title: more(m) }, facts(m))),
        ...offered.others.map((name) => h("option", { value: name }, name)));
      this.also.replaceChildren(...[NONE, ...this.names].map((name) => h("option", { value: name }, name)));
      this.kinds.element.hidden = !offered.any;
    }

    get value() {
      const typed = this.text.value.trim();
      if (this.kind !== "embedded") return typed === NONE ? null : typed;
      const names = [this.list.value, ...(this.role === "draft" ? [this.also.value] : [])].filter((name) => name && name !== NONE);
      return names.join(", ") || null;
    }

    set value(name) {
      const [first, also, ...more] = (name || NONE).split(/\s*,\s*/);
      const listed = !more.length && [first, also || NONE].every((one) => one === NONE || this.names.includes(one));
      this.show(listed ? "embedded" : /^[.~/\\]|^[A-Za-z]:|\\/.test(name) || name.split("/").length !== 2 ? "folder" : "hub");
      if (!listed) return (this.text.value = name);
      this.list.value = first;
      this.also.value = also || NONE;
    }
  }

  // The server takes ~/folder, and refuses the homes of other people before it looks at anything.
  const HOMES = "A folder may begin with ~/, your own home, and no other's.";
  const elsewhere = (models) => ROLES.some((role) => /^~[^/\\]/.test(models[role] || ""));

  class ModelsPanel {
    constructor(app) {
      this.app = app;
      const changed = () => this.changed();
      this.buttons = Object.fromEntries(ROLES.map((role) => [role, h("button", { type: "button", class: "model", "aria-haspopup": "dialog",
        "aria-expanded": "false", onclick: () => this.toggle(role) })]));
      this.pickers = Object.fromEntries(ROLES.map((role) => [role, new Picker(role, changed)]));
      this.dtype = h("select", { "aria-label": "dtype", onchange: changed,
        title: "Numbers of the weights; auto: float32 on the CPU, the model's own on CUDA" });
      this.device = h("select", { "aria-label": "device", title: "auto: CUDA where there is one", onchange: changed });
      this.memory = h("div", { class: "memory", role: "status" });
      this.bar = h("progress", { max: "1", "aria-label": "Loading", hidden: true });
      this.alert = h("p", { class: "wrong", role: "alert", hidden: true });
      this.load = h("button", { type: "button", class: "primary", onclick: () => this.start() }, "Load");
      this.cancel = h("button", { type: "button", hidden: true,
        onclick: () => page.call("explorer_models_cancel", { models: this.loading }) }, "Cancel");
      this.close = h("button", { type: "button", class: "remove", "aria-label": "Close models", onclick: () => this.hide() }, "×");
      this.element = h("div", { class: "models-panel", role: "dialog", "aria-label": "Models", hidden: true },
        h("header", {}, h("h2", {}, "Models"), this.close),
        ...ROLES.map((role) => this.pickers[role].element),
        h("div", { class: "numbers" }, labelled("dtype", this.dtype), labelled("device", this.device)),
        this.memory, this.alert, h("div", { class: "actions" }, this.load, this.cancel, this.bar));
      document.addEventListener("keydown", (event) => {
        if (event.key !== "Escape" || this.element.hidden) return;
        event.preventDefault();
        this.hide();
      });
      this.name();
    }

    // What the buttons say: the models in use, and whether others are loading.
    name() {
      for (const role of ROLES) {
        const button = this.buttons[role], name = this.app.choice[role], facts = (this.app.models.facts || {})[role];
        button.replaceChildren(role + ": ", h("b", {}, this.loading ? "loading …" : name ? short(name) : NONE), " ▾");
        const said = ([what, v]) => what + ": " + (typeof v === "number" ? v.toLocaleString("en") : v);
        button.title = facts ? Object.entries(facts).map(said).join("\n") : name || "No draft model: strategies that draft with one cannot run";
      }
    }

    toggle(role) {
      if (!this.element.hidden) return this.hide();
      this.show(this.loading || this.app.choice, role);
    }

    // Opens with these models in the fields; `asked` is a sentence that says who asks for them.
    async show(models, role, asked) {
      this.opener = this.buttons[role || "target"];
      this.element.hidden = false;
      ROLES.forEach((r) => this.buttons[r].setAttribute("aria-expanded", "true"));
      this.close.focus({ preventScroll: true });
      if (!this.offered) this.say("Asking the app which models there are …");
      const offered = await page.call("explorer_models", {});
      if (offered.error) return this.fail(offered.error);
      this.offered = offered;
      ROLES.forEach((r) => this.pickers[r].offer(offered));
      for (const what of ["dtype", "device"]) {
        this[what].replaceChildren(...offered[what + "s"].map((name) => h("option", { value: name }, name)));
      }
      this.fill(models);
      const picker = this.pickers[role || "target"];
      if (!this.element.hidden) (picker.kind === "embedded" ? picker.list : picker.text).focus({ preventScroll: true });
      if (asked) this.say(asked);
      else if (!this.loading) this.changed();
    }

    hide() {
      if (this.element.hidden) return;
      const focused = document.activeElement, inside = focused === document.body || this.element.contains(focused);
      this.element.hidden = true;
      ROLES.forEach((r) => this.buttons[r].setAttribute("aria-expanded", "false"));
      if (inside && this.opener) this.opener.focus({ preventScroll: true });
    }

    fill(models) {
      ROLES.forEach((role) => (this.pickers[role].value = models[role]));
      this.dtype.value = models.dtype || "auto";
      this.device.value = models.device || "auto";
    }

    read() {
      const [target, draft] = ROLES.map((role) => this.pickers[role].value);
      return page.completeChoice({ target, draft, dtype: this.dtype.value, device: this.device.value });
    }

    say(...lines) {
      this.memory.replaceChildren(...lines.filter(Boolean).map((line) => h("p", {}, line)));
    }

    fail(sentence) {
      this.alert.textContent = sentence || "";
      this.alert.hidden = !sentence;
    }

    // Other models stand in the fields: says what memory they would take.
    async changed() {
      if (this.loading) return;
      const models = this.read(), key = (this.asked = JSON.stringify(models));
      this.fail("");
      this.load.disabled = true;
      if (!models.target) return this.say("Name a target model.");
      if (elsewhere(models)) return this.fail(HOMES);
      if (same(models, this.app.choice)) return this.say("These are in use.");
      this.say("Asking how large they are …");
      const answer = await page.call("explorer_models_memory", { models });
      if (this.asked !== key || this.loading) return;
      this.say(...(answer.parts || []), answer.fits ? answer.sentence : "");
      this.fail(answer.error || (answer.fits ? "" : answer.sentence));
      this.load.disabled = Boolean(answer.error) || !answer.fits;
    }

    async start() {
      if (elsewhere(this.read())) return this.fail(HOMES);
      const models = (this.loading = this.read());
      this.fail("");
      this.draw();
      let answer = await page.patient("explorer_models_load", { models });
      while (!answer.error && answer.state === "loading") {
        this.say(answer.sentence);
        if (answer.share === null) this.bar.removeAttribute("value");
        else this.bar.value = answer.share;
        answer = await page.patient("explorer_models_progress", { models, sentence: answer.sentence });
      }
      this.loading = null;
      const problem = answer.error || (answer.state === "failed" ? answer.sentence : "");
      if (!problem) this.use(models, answer);
      else {
        if (this.element.hidden) this.app.fail(problem);
        this.fail(problem);
        this.say("The models in use stay.");
      }
      this.draw();
    }

    draw() {
      const busy = Boolean(this.loading), [from, to] = busy ? [this.load, this.cancel] : [this.cancel, this.load];
      this.load.disabled = this.cancel.hidden = this.bar.hidden = false;
      if (document.activeElement === from) to.focus({ preventScroll: true });
      this.load.disabled = busy;
      this.cancel.hidden = this.bar.hidden = !busy;
      for (const control of this.element.querySelectorAll("fieldset, .numbers select")) control.disabled = busy;
      this.name();
    }

    // From here on the page decodes with these.
    use(models, answer) {
      const app = this.app;
      app.fail("");
      app.choice = models;
      app.models = answer;
      this.hide();
      for (const lane of app.lanes) lane.describe();
      app.remark(answer.sentence + " Prompt and lanes are as they were.");
      app.emit("models");
    }
  }

  page.addPart((app) => {
    if (app.data.saved) {
      const names = ROLES.filter((role) => app.choice[role]);
      const shown = names.map((role) => h("span", { class: "model" }, role + ": ", h("b", {}, short(app.choice[role]))));
      return app.bar.models.append(...shown);
    }
    const panel = new ModelsPanel(app);
    app.bar.models.append(...ROLES.map((role) => panel.buttons[role]));
    app.bar.controls.append(panel.element);
    app.on("models", () => panel.name());
    app.on("wanted", (models) => {
      if (same(models, app.choice)) return;
      panel.show(page.completeChoice(models), "target",
        "These models are asked for by what you opened. Nothing is loaded until you press Load.");
      panel.load.disabled = false;
    });
  });
})(window.ExplorerPage);
