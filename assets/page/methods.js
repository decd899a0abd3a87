// The Methods section: a card for each strategy, made from its declaration, with a picture that is drawn from a stored run
// when the card comes on screen; below them all papers with their status. Knows no strategy by name.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const STATUS = { works: ["✓", "works here"], card: ["○", "told, not built"], missing: ["○", "not here yet"] };

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

  class Card {
    constructor(app, method, families) {
      this.app = app;
      this.method = method;
      this.sceneElement = h("div", { class: "picture", "aria-busy": "true" });
      this.open = h("button", { type: "button", class: "primary", "aria-label": "Open " + method.title + " in a lane",
        onclick: () => this.openInLane() }, "Open in a lane");
      const picture = method.picture, sources = method.papers.map((paper) => h("li", {}, paper.title));
      this.element = h("article", { class: "card", "aria-label": method.title },
        h("header", {}, h("h3", {}, method.title), h("span", { class: "family" }, families[method.family]), badge(method)),
        h("p", { class: "what" }, ...prose(method.summary)),
        picture ? this.sceneElement : null,
        picture ? h("p", { class: "caption" }, caption(picture)) : null,
        h("div", { class: "how" }, ...how(method.how)),
        fold("Parameters", method.parameters.map(parameter)),
        fold("Parts", method.parts.map((part) => [h("dt", {}, part.kind + ": " + part.name), h("dd", {}, part.says)])),
        method.runs_code ? runsCode(app) : null,
        sources.length ? h("h4", {}, sources.length > 1 ? "Papers" : "Paper") : null,
        sources.length ? h("ul", { class: "sources" }, ...sources) : null,
        h("div", { class: "foot" }, this.open,
          method.needs.length > 1 ? h("span", { class: "needs" }, "needs a " + method.needs.join(" and a ") + " model") : null));
      this.enable();
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
      if (models) app.emit("wanted", models);
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
    }

    text() {
      const m = this.method;
      const names = [m.title, m.name, m.summary, ...m.papers.map((paper) => paper.title), ...m.parts.map((part) => part.name)];
      return names.join(" ").toLowerCase();
    }
  }

  class Methods {
    constructor(app) {
      this.app = app;
      this.cards = [];
      this.search = h("input", { type: "search", "aria-label": "Search methods and papers", placeholder: "Search titles",
        oninput: () => this.filter() });
      this.family = h("select", { "aria-label": "Family", onchange: () => this.filter() });
      this.count = h("p", { class: "count", role: "status" }, "Waiting for the models …");
      this.grid = h("div", { class: "cards" });
      this.papers = h("div", { class: "papers" });
      this.cardsHead = h("h2", { hidden: true }, "Methods");
      this.papersHead = h("h2", { hidden: true }, "Papers");
      this.element = h("section", { class: "section methods", "aria-label": "Methods" },
        h("div", { class: "finder", role: "search" }, this.search, this.family, this.count),
        this.cardsHead, this.grid, this.papersHead, this.papers);
      app.on("theme", () => this.cards.forEach((card) => card.scene && card.scene.theme(app.theme)));
      app.on("models", () => this.cards.forEach((card) => card.enable()));
    }

    async shown() {
      if (this.asked) return;
      this.asked = true;
      const data = await page.patient("explorer_methods", {});
      if (data.error) {
        this.asked = false;
        this.count.textContent = data.error;
        return;
      }
      this.data = data;
      this.build();
      this.filter();
    }

    build() {
      const { families, paper_families: kinds, methods, papers } = this.data;
      const option = (value, text) => h("option", { value }, text);
      this.family.replaceChildren(option("", "All families"),
        h("optgroup", { label: "Methods" }, ...Object.entries(families).map(([name, title]) => option("m:" + name, title))),
        h("optgroup", { label: "Papers" }, ...Object.entries(kinds).map(([name, title]) => option("p:" + name, title))));
      this.cards = methods.map((method) => new Card(this.app, method, families));
      this.grid.replaceChildren(...this.cards.map((card) => card.element));
      this.rows = papers.map((paper) => ({ paper, element: this.row(paper), text: paper.title.toLowerCase() }));
      this.groups = Object.entries(kinds).map(([name, title]) => {
        const rows = this.rows.filter((row) => row.paper.family === name), heading = h("h3", {});
        return { name, title, rows, heading, element: h("section", {}, heading, h("ul", {}, ...rows.map((row) => row.element))) };
      });
      this.papers.replaceChildren(...this.groups.map((group) => group.element));
      this.watch();
    }

    row(paper) {
      const [mark, says] = STATUS[paper.status];
      const users = this.data.methods.filter((m) => m.papers.some((p) => p.slug === paper.slug)).map((m) => m.title);
      return h("li", { class: "is-" + paper.status }, h("span", { class: "mark", "aria-hidden": "true" }, mark),
        h("span", {}, paper.title), h("span", { class: "status" }, users.length ? "works: " + users.join(", ") : says));
    }

    // Pictures are fetched when their card is about to be seen.
    watch() {
      const byElement = new Map(this.cards.map((card) => [card.element, card]));
      const seen = new IntersectionObserver((entries) => {
        for (const entry of entries) if (entry.isIntersecting) byElement.get(entry.target).draw();
      }, { rootMargin: "150px" });
      for (const card of this.cards) seen.observe(card.element);
    }

    filter() {
      if (!this.data) return;
      const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean), [side, family] = this.family.value.split(":");
      const said = (text) => words.every((word) => text.includes(word));
      const slugs = new Set(this.rows.filter((row) => row.paper.family === family).map((row) => row.paper.slug));
      const mine = new Set(this.data.methods.filter((m) => m.family === family).flatMap((m) => m.papers.map((p) => p.slug)));
      for (const card of this.cards) {
        const fits = !side || (side === "m" ? card.method.family === family : card.method.papers.some((p) => slugs.has(p.slug)));
        card.element.hidden = !(fits && said(card.text()));
      }
      for (const row of this.rows) {
        const fits = !side || (side === "p" ? row.paper.family === family : mine.has(row.paper.slug));
        row.element.hidden = !(fits && said(row.text));
      }
      for (const group of this.groups) {
        const left = group.rows.filter((row) => !row.element.hidden);
        group.element.hidden = left.length === 0;
        group.heading.replaceChildren(group.title + " ", h("span", {}, this.works(left) + " of " + left.length + " work here"));
      }
      this.tell();
    }

    works(rows) {
      return rows.filter((row) => row.paper.status === "works").length;
    }

    tell() {
      const cards = this.cards.filter((card) => !card.element.hidden), rows = this.rows.filter((row) => !row.element.hidden);
      const works = this.works(rows), many = (count, word) => count + " " + word + (count === 1 ? "" : "s");
      this.cardsHead.hidden = cards.length === 0;
      this.papersHead.hidden = rows.length === 0;
      this.count.textContent = cards.length + rows.length === 0 ? "Nothing has these words in its title. Search for less."
        : many(cards.length, "method") + " · " + many(rows.length, "paper") + ": " + works + " work here, "
          + (rows.length - works) + " not here yet";
    }
  }

  page.addPart((app) => {
    if (app.data.saved) return;
    const methods = new Methods(app);
    app.addSection("methods", methods.element, () => methods.shown());
    app.methods = methods;
  });
})(window.ExplorerPage);
