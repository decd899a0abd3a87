// Only in a saved page: the comparison of the whole run, which the page carries: texts, charts, costs. Charts
// are drawn by the plotly.js that the page carries too; it is unpacked when they come near the screen. All
// else was made by explorer/export/saved_comparison.py.
const CONFIG = { responsive: true, displaylogo: false };

class SavedComparison {
  constructor(app) {
    const { compare, comparison } = app.bar;
    Object.assign(this, { app, body: comparison });
    // One lane has nothing beside it: a page of the site then leaves plotly.js alone until somebody asks.
    compare.open = page.compareOpen() && !(page.common && app.lanes.length === 1);
    compare.addEventListener("toggle", () => page.compareOpen(compare.open ? "open" : "closed"));
    app.on("theme", () => this.draw());
    page.whenNear(this.body, () => this.fill());
  }

  async fill() {
    const { html, charts, orders } = JSON.parse(await page.unpack("comparison"));
    Object.assign(this, { charts, orders });
    this.body.innerHTML = html;
    this.body.addEventListener("change", () => this.draw());
    this.rows = [...this.body.querySelectorAll("tbody tr")];
    this.body
      .querySelector("thead")
      .addEventListener("click", ({ target }) => target.closest("button") && this.sort(target.closest("th")));
    page.whenNear(this.body.querySelector(".saved-charts"), async () => {
      await page.runPlotly();
      this.draw();
    });
  }

  // Every chart under the choices of now.
  draw() {
    if (!window.Plotly) return;
    const charts = this.charts[this.app.theme],
      { charge, likelihood } = Object.fromEntries(new FormData(this.body.querySelector("form")));
    for (const figure of this.body.querySelectorAll("[data-chart]")) {
      const { chart } = figure.dataset,
        counted = `${chart} ${charge}`,
        [plot, caption] = figure.children;
      const { data, layout } = charts[chart] || charts[counted] || charts[`${counted} ${likelihood}`];
      Plotly.react(plot, data, layout, CONFIG);
      caption.textContent = layout.meta.caption;
    }
  }

  // The costs by the column of a head: the largest first, where they are so already the least.
  sort(head) {
    const up = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentNode.children) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    this.rows[0].parentNode.append(...this.orders[head.cellIndex][up ? 0 : 1].map((at) => this.rows[at]));
  }
}

page.addPart((app) => new SavedComparison(app));
