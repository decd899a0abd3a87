// Only in a saved page: the comparison of the whole run, which the page carries: texts, charts, costs. Charts are drawn by the
// plotly.js that the page carries too; it is unpacked when they come near the screen. Everything was made by explorer/export/comparison.py.
const WHOLE = "Texts, charts and costs are those of the whole run, wherever the slider stands.";
const NEAR = "300px"; // so far from the screen charts are drawn
const CONFIG = { responsive: true, displaylogo: false };

// The text of one of the page's blobs.
page.unpack = async function (name) {
  const bytes = page.fromBase64(document.getElementById("explorer-" + name).textContent);
  return new TextDecoder().decode(await page.through(new DecompressionStream("gzip"), bytes));
};

// Calls `then` once, when the element comes near the screen.
function whenNear(element, then) {
  const observer = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    observer.disconnect();
    then();
  }, { rootMargin: NEAR });
  observer.observe(element);
}

class SavedComparison {
  constructor(app) {
    this.app = app;
    this.body = h("div");
    this.element = h("details", { class: "saved-compare", open: page.compareOpen() ? "" : null,
      ontoggle: () => page.keepCompare(this.element.open) }, h("summary", {}, "Compare"), h("p", { class: "soft" }, WHOLE), this.body);
    app.below.append(this.element);
    app.on("theme", () => this.draw());
    whenNear(this.body, () => this.fill());
  }

  async fill() {
    this.data = JSON.parse(await page.unpack("comparison"));
    const { texts, choices, rows, charts } = this.data;
    this.body.innerHTML = texts + choices; // made and escaped by explorer/export/comparison.py
    for (const row of this.body.querySelectorAll(".choice")) {
      const name = row.dataset.part;
      this[name] = row.firstChild.value;
      page.choice(row, (value) => {
        this[name] = value;
        this.draw();
      });
    }
    this.figures = rows.flat().filter((name) => this.chart(name, charts.light)).map((name) => {
      const plot = h("div"), caption = h("figcaption");
      return { name, plot, caption, element: h("figure", {}, plot, caption) };
    });
    const grid = h("div", { class: "saved-charts" }, ...this.figures.map((figure) => figure.element));
    this.table = h("div", { class: "saved-costs", tabindex: "0", role: "region", "aria-label": "All costs" });
    this.body.append(grid, h("h3", {}, "All costs"), this.table);
    this.tabulate();
    whenNear(grid, () => this.begin());
  }

  // A chart under the choices of now.
  chart(name, charts) {
    return charts[name] || charts[`${name} ${this.charge}`] || charts[`${name} ${this.charge} ${this.likelihood}`];
  }

  async begin() {
    const script = h("script", {}, await page.unpack("plotly")); // the page's policy knows its hash, and no other
    document.head.append(script);
    this.draw();
  }

  draw() {
    if (!window.Plotly) return;
    for (const { name, plot, caption } of this.figures) {
      const { data, layout } = this.chart(name, this.data.charts[this.app.theme]);
      Plotly.react(plot, data, layout, CONFIG);
      caption.textContent = layout.meta.caption;
    }
  }

  // The costs, sorted by the column `by`, the largest first or last; what a lane has not is last either way.
  tabulate(by, up) {
    const { headers, data, metadata } = this.data.table, order = data.map((row, i) => i), value = (i) => data[i][by];
    const compare = (a, b) => (value(a) > value(b)) - (value(a) < value(b));
    if (by !== undefined) order.sort((a, b) => (value(a) === null) - (value(b) === null) || (up ? compare(a, b) : compare(b, a)));
    const head = (name, column) => h("th", { scope: "col", title: column ? this.data.titles[column - 1] : null,
      "aria-sort": column !== by ? "none" : up ? "ascending" : "descending" },
      h("button", { type: "button", "aria-label": "Sort by " + name, onclick: () => this.tabulate(column, column === by && !up) }, name));
    const row = (i) => h("tr", {}, ...metadata.display_value[i].map((cell, at) => h(at ? "td" : "th", at ? {} : { scope: "row" }, cell)));
    this.table.replaceChildren(h("table", {}, h("thead", {}, h("tr", {}, ...headers.map(head))), h("tbody", {}, ...order.map(row))));
    if (by !== undefined) this.table.querySelectorAll("thead button")[by].focus();
  }
}

page.addPart((app) => new SavedComparison(app));
