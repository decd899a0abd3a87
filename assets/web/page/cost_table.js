// The table of all costs: sorted by a click or a key on a header, copied as text. Draws columns and rows that
// visualizers/analysis/cost_summary.py has made; knows nothing of lanes but their labels.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const REFUSED = "The browser refuses the clipboard: press Ctrl+C or ⌘C to copy the marked text.";

  // Where a column's name may be broken into lines.
  const broken = (name) => name.replace("log p", "log\u00a0p").replace(" / ", "\u00a0/ ").replace(/_/g, "_\u200b");
  const plain = (value) => (value === null ? "—" : Array.isArray(value) ? value.join(" ") : String(value));

  page.CostTable = class {
    constructor() {
      this.sort = null; // {column, down}; column -1 is the lane
      this.table = h("div", { class: "compare-table", tabindex: "0", role: "region", "aria-label": "All costs" });
      this.said = h("span", { class: "soft", role: "status" });
      const copy = h("button", { type: "button", title: "Copies the table as text with tabs between columns",
        onclick: () => this.copy() }, "Copy");
      this.element = h("div", {}, h("div", { class: "compare-head" }, h("h3", {}, "All costs"), copy, this.said), this.table);
    }

    show(data) {
      this.data = data;
      this.draw();
    }

    // The rows in the chosen order; what a lane has not stands last either way.
    rows() {
      const rows = [...this.data.rows];
      if (!this.sort) return rows;
      const { column, down } = this.sort;
      const value = (row) => (column < 0 ? row.lane : row.cells[column].value);
      return rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a.lane - b.lane;
        return (down ? y - x : x - y) || a.lane - b.lane;
      });
    }

    draw() {
      const { columns } = this.data, left = this.table.scrollLeft, focused = document.activeElement;
      const column = this.table.contains(focused) ? focused.dataset.column : undefined;
      const heads = columns.map((one, i) => this.head(one.name, i, `${one.title} (${one.how})`));
      const cell = (one) => h("td", { title: Array.isArray(one.value) ? one.value.join(" ") : null }, one.label);
      const name = (row) => h("th", { scope: "row" }, row.lane + " " + row.label);
      const rows = this.rows().map((row) => h("tr", {}, name(row), ...row.cells.map(cell)));
      this.table.replaceChildren(h("table", {},
        h("thead", {}, h("tr", {}, this.head("lane", -1, "What the lanes are called."), ...heads)), h("tbody", {}, ...rows)));
      this.table.scrollLeft = left;
      if (column !== undefined) this.table.querySelector(`[data-column="${column}"]`)?.focus({ preventScroll: true });
    }

    // A column's header: a button that sorts, but for lists, which have no order.
    head(name, column, title) {
      const listed = column >= 0 && this.data.rows.some((row) => Array.isArray(row.cells[column].value));
      if (listed) return h("th", { scope: "col", title }, h("span", {}, broken(name)));
      const order = !this.sort || this.sort.column !== column ? "none" : this.sort.down ? "descending" : "ascending";
      const glyph = { descending: " ▾", ascending: " ▴", none: "" }[order];
      return h("th", { scope: "col", "aria-sort": order, title }, h("button", { type: "button", "data-column": String(column),
        "aria-label": "Sort by " + name, onclick: () => this.sortBy(column) }, broken(name) + glyph));
    }

    sortBy(column) {
      const same = this.sort && this.sort.column === column;
      this.sort = { column, down: same ? !this.sort.down : column >= 0 };
      this.draw();
    }

    // The table as text, a tab between columns; numbers in full.
    text() {
      const lines = this.rows().map((row) => [row.lane + " " + row.label, ...row.cells.map((cell) => plain(cell.value))]);
      const names = ["lane", ...this.data.columns.map((column) => column.name)];
      return [names, ...lines].map((line) => line.join("\t")).join("\n") + "\n";
    }

    async copy() {
      const text = this.text();
      try {
        await navigator.clipboard.writeText(text);
        this.said.textContent = "Copied.";
      } catch {
        this.offer(text);
      }
    }

    // The clipboard is refused: the text itself, marked, to be copied by hand.
    offer(text) {
      const field = h("textarea", { class: "compare-text", readonly: "", rows: "4", "aria-label": "The table as text" }, text);
      this.table.nextElementSibling?.remove();
      this.table.after(field);
      field.focus();
      field.select();
      this.said.textContent = REFUSED;
    }
  };
})(window.ExplorerPage);
