// The cards of the tab Methods (explorer/page/tabs/methods.py), one for each strategy, made from its declaration, with a picture that is
// drawn from a stored run when the card comes on screen. Knows no strategy by name, and nothing of how they are searched.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;

  // Prose in which formulas stand between backticks.
  function prose(text) {
    return text.split("`").map((piece, i) => (i % 2 ? h("code", {}, piece) : piece)).filter((piece) => piece !== "");
  }

  function how(parts) {
    const list = (steps) => h("ol", {}, ...steps.map((step) => h("li", {}, ...prose(step))));
    return parts.map((part) => (part.steps ? list(part.steps) : h("p", {}, ...prose(part.text))));
  }

  function parameter(p) {
    return [h("dt", {}, h("code", {}, p.name), " ", h("span", {}, String(p.default))), h("dd", {}, p.help || "")];
  }

  // A part that can be opened; nothing if it is empty.
  function fold(title, list) {
    return list.length ? h("details", {}, h("summary", {}, title + " (" + list.length + ")"), h("dl", {}, ...list.flat())) : null;
  }

  function badge(method) {
    if (!method.badge) return null;
    return h("span", { class: "badge", title: method.promise }, (method.badge === "relaxed" ? "≈ " : "✓ ") + method.badge);
  }

  function caption(picture) {
    const set = Object.entries(picture.parameters).map(([name, value]) => ", " + name + " " + value).join("");
    const by = picture.models ? ", by " + picture.models.target : "";
    return picture.view + " of a real run: up to " + picture.tokens + " tokens after “" + picture.prompt + "”" + set + by;
  }

  // For a method that can test what it wrote by running it: whether and how that is done here.
  function runsCode(app) {
    const says = h("p", { class: "runs-code" });
    const tell = () => {
      says.hidden = !app.models.code;
      says.textContent = "It can test by running code. " + app.models.code;
    };
    tell();
    app.on("models", tell);
    return says;
  }

  // A paper or another source, as far as it is known.
  function cited(source) {
    const who = [source.authors, source.year].filter(Boolean).join(", ");
    const title = source.link ? h("a", { href: source.link, target: "_blank", rel: "noopener" }, source.title) : source.title;
    return h("li", {}, who ? who + ". " : "", title);
  }

  // What a method changed about the one that it grew from, in a sentence; one that grew from none says what it does.
  function what(method) {
    return method.parent ? "Unlike " + method.parent + ", it " + method.differs + "." : method.summary;
  }

  // A row with a thumbnail; opened, it is the whole card.
  class Card {
    constructor(app, method, families) {
      Object.assign(this, { app, method });
      this.sceneElement = h("div", { class: "picture", inert: true, "aria-busy": "true" });
      this.open = h("button", { type: "button", class: "primary", "aria-label": "Open " + method.title + " in a lane",
        onclick: () => this.openInLane() }, "Open in a lane");
      this.more = h("button", { type: "button", "aria-expanded": "false", "aria-label": "All about " + method.title,
        onclick: () => this.unfold(this.whole.hidden) }, "More");
      const first = method.sources[0], by = first && [first.authors, first.year].filter(Boolean).join(", ");
      this.whole = h("div", { class: "whole", hidden: true });
      this.element = h("article", { class: "card", "aria-label": method.title },
        h("div", { class: "thumb" }, method.picture ? this.sceneElement : null),
        h("div", { class: "row" },
          h("header", {}, h("h3", {}, method.title), badge(method)),
          h("p", { class: "what" }, ...prose(what(method))),
          h("p", { class: "caption" }, families[method.family], by ? " · " + by : "", first && first.link ? " · " : "",
            first && first.link ? h("a", { href: first.link, target: "_blank", rel: "noopener" }, "source") : "")),
        h("div", { class: "foot" }, this.open, this.more), this.whole);
      this.enable();
    }

    // What is below the row is made when it is opened for the first time.
    unfold(open) {
      const { method } = this, picture = method.picture;
      if (!this.whole.childNodes.length) this.whole.append(...[
        picture ? h("p", { class: "caption" }, caption(picture)) : null,
        h("p", { class: "what" }, ...prose(method.summary)),
        h("div", { class: "how" }, ...how(method.how)),
        fold("Parameters", method.parameters.map(parameter)),
        fold("Parts", method.parts.map((part) => [h("dt", {}, part.kind + ": " + part.name), h("dd", {}, part.says)])),
        method.runs_code ? runsCode(this.app) : null,
        h("h4", {}, method.sources.length > 1 ? "Sources" : "Source"), h("ul", { class: "sources" }, ...method.sources.map(cited)),
        h("p", { class: "caption" }, "Also called: " + method.aliases.join(", ")),
        method.needs.length > 1 ? h("p", { class: "needs" }, "needs a " + method.needs.join(" and a ") + " model") : null].filter(Boolean));
      this.whole.hidden = !open;
      this.sceneElement.inert = !open;
      this.element.classList.toggle("open", open);
      this.more.setAttribute("aria-expanded", String(open));
      this.more.textContent = open ? "Less" : "More";
    }

    enable() {
      const lacking = this.method.needs.find((role) => !this.app.choice[role]);
      this.open.disabled = Boolean(lacking) || !this.app.strategies.has(this.method.name);
      this.open.title = lacking ? "Needs a " + lacking + " model: choose one under Models" : "Shows Decode with this strategy";
    }

    // In a lane of its own while there is room, else in place of the last one; asks for the models that it needs.
    async openInLane() {
      const app = this.app, last = app.lanes[app.lanes.length - 1], { models } = this.method.picture || {};
      if (app.lanes.length < app.data.limits.lanes) app.addLane({ strategy: this.method.name });
      else last.choose(this.method.name);
      await app.showSection("decode");
      app.phoneLane = app.lanes.length - 1;
      app.drawLaneButtons();
      const lane = app.lanes[app.phoneLane];
      lane.element.scrollIntoView({ block: "nearest" });
      lane.picker.focus({ preventScroll: true });
      if (models) app.ask(models);
    }

    async draw() {
      if (this.asked || !this.method.picture) return;
      this.asked = true;
      const picture = await page.call("explorer_method_picture", { name: this.method.name });
      this.sceneElement.removeAttribute("aria-busy");
      if (picture.error) return this.sceneElement.replaceChildren(h("p", { class: "soft" }, picture.error));
      this.scene = new DecodingPlayer.Scene(this.sceneElement, { palette: this.app.data.palette, theme: this.app.theme });
      this.scene.reset(picture.head);
      this.scene.feed(picture.deltas);
      this.scene.end(true);
    }
  }

  class Methods {
    constructor(app) {
      this.cards = [];
      this.app = app;
      this.element = h("section", { class: "methods cards", "aria-label": "Cards of methods" });
      app.on("theme", () => this.cards.forEach((card) => card.scene && card.scene.theme(app.theme)));
      app.on("models", () => this.cards.forEach((card) => card.enable()));
    }

    // Shows the methods of these names and no others, in this order.
    async keep(names) {
      this.built = this.built || this.build();
      await this.built;
      const byName = new Map(this.cards.map((card) => [card.method.name, card]));
      for (const card of this.cards) card.element.hidden = !names.includes(card.method.name);
      this.element.append(...names.filter((name) => byName.has(name)).map((name) => byName.get(name).element));
    }

    async build() {
      const data = await page.patient("explorer_methods", {});
      if (data.error) {
        this.built = null;
        return this.element.replaceChildren(h("p", { class: "soft" }, data.error));
      }
      this.cards = data.methods.map((method) => new Card(this.app, method, data.families));
      this.element.replaceChildren(...this.cards.map((card) => card.element));
      this.watch();
    }

    // Pictures are fetched when their card is about to be seen.
    watch() {
      const byElement = new Map(this.cards.map((card) => [card.element, card]));
      const seen = new IntersectionObserver((entries) => {
        for (const entry of entries) if (entry.isIntersecting) byElement.get(entry.target).draw();
      }, { rootMargin: "150px" });
      for (const card of this.cards) seen.observe(card.element);
    }
  }

  page.addPart((app) => {
    if (app.data.saved) return;
    const methods = new Methods(app);
    app.addSection("methods", methods.element);
    app.methods = methods;
  });
})(window.ExplorerPage);
