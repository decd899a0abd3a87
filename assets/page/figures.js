// Pictures of stored answers that are no curves: heat maps, spreads, parallel coordinates, clouds, texts. Grey says amount, marks
// tell things apart, never hue. Draws what it is given (explorer/experiments/pictures.py); knows no experiment.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h, SVG = "http://www.w3.org/2000/svg";
  const DARKEST = 35; // per cent of the text's colour in the fullest cell: words in it stay readable, in the dark too
  const AXIS = 112, TALL = 250, TOP = 30, LOW = 22; // pixels: between two axes of a board, its height, above and below its axes
  const TILE = 150, LEFT = 28, FAR = 0.05; // height of a cloud, left of it, share of points that may stand at its left edge

  const share = (value) => (value === null ? "—" : Math.abs(value) < 10 ? value.toFixed(2).replace(/^(-?)0\./, "$1.") : value.toFixed(0))
    .replace("-", "−");
  const number = (value) => (value === null ? "—" : typeof value === "string" ? value
    : Number.isInteger(value) ? String(value) : value.toFixed(2)).replace("-", "−");

  function draw(tag, parent, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  // A row of cells for each row and column; words stand in them where there are few.
  function heat({ title, says, columns, rows, low, high }, read) {
    const tone = (value) => "--amount:" + Math.round(DARKEST * Math.max(0, Math.min(1, (value - low) / (high - low)))) + "%";
    const many = Math.max(...rows.map((row) => row.each.length)) > 8;
    const strip = (row, column, values) => h("div", { class: "heat-strip" }, ...values.map((value, at) =>
      h("span", { class: "heat-cell" + (value === null ? " none" : ""), style: value === null ? null : tone(value),
        onpointerenter: () => read([row.label, row.each[at], column].filter(Boolean).join(", ") + ": " + share(value)) },
      many ? null : h("b", {}, share(value)))));
    const grid = h("div", { class: "heat" + (many ? " many" : ""), role: "img", "aria-label": title + ": " + says },
      h("span", {}), ...columns.map((name) => h("span", { class: "heat-head" }, name.replaceAll("_", " "))),
      ...rows.flatMap((row) => [h("span", { class: "heat-name" }, row.label), ...row.values.map((values, at) => strip(row, columns[at], values))]));
    grid.style.setProperty("--columns", columns.length);
    const key = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", { class: "heat-cell", style: tone(low + part * (high - low)) }));
    return [grid, h("p", { class: "figure-key" }, share(low), h("span", { class: "heat-key" }, ...key), share(high), h("span", {}, says))];
  }

  // A cell for each row and token, in columns wide enough for words, which are cut and never turned; many rows are low.
  const WIDE = 46, CELL = 18, LOWER = 7, MANY = 16; // pixels of a cell, its height where there are many rows, from how many on
  function tokens({ title, says, tokens: words, rows, values, high, every }, read) {
    const tall = rows.length > MANY ? LOWER : CELL, name = (at) => rows[at] || (at ? name(at - 1) : "");
    const cell = (value, at, column) => h("span", {
      class: "map-cell" + (every && (column + 1) % every === 0 && column + 1 < words.length ? " behind" : ""),
      onpointerenter: () => read(words[column] + ", " + name(at) + ": " + number(value)),
    }, h("i", { style: "opacity:" + (0.04 + 0.8 * Math.max(0, Math.min(1, value / high))).toFixed(2) }));
    const grid = h("div", { class: "map" }, h("span", {}), ...words.map((word) => h("span", { class: "map-head", title: word }, word)),
      ...rows.flatMap((row, at) => [h("span", { class: "map-name" }, row), ...values[at].map((value, column) => cell(value, at, column))]));
    grid.style.gridTemplate = `20px repeat(${rows.length}, ${tall}px) / max-content repeat(${words.length}, ${WIDE}px)`;
    const frame = h("div", { class: "figure-scroll", tabindex: "0", role: "region", "aria-label": title + ": " + says }, grid);
    return [frame, h("p", { class: "figure-key" }, says + "; full: " + number(high))];
  }

  // A track for each row, with a mark for each name and a line from the lowest to the highest.
  const MARKS = ["diamond", "disc", "bar"];
  function spread({ title, x, names, rows }, read) {
    const all = rows.flatMap((row) => row.values), step = 0.1;
    const low = Math.floor(Math.min(...all) / step) * step, high = Math.ceil(Math.max(...all) / step) * step;
    const at = (value) => (100 * (value - low)) / (high - low) + "%";
    const mark = (name, value) => h("i", { class: "spread-" + name, style: value === undefined ? null : "left:" + at(value) });
    const track = (row) => {
      const [least, most] = [Math.min(...row.values), Math.max(...row.values)];
      const line = h("i", { class: "spread-line", style: "left:" + at(least) + ";right:calc(100% - " + at(most) + ")" });
      const words = row.label + ": " + names.map((name, i) => name + " " + share(row.values[i])).join(", ");
      return h("div", { class: "spread-track", onpointerenter: () => read(words) }, line, ...row.values.map((v, i) => mark(MARKS[i], v)).reverse());
    };
    const ticks = [];
    for (let value = low; value <= high + 1e-9; value += (high - low) / step > 5.5 ? 2 * step : step) ticks.push(value);
    const scale = h("div", { class: "spread-scale" }, ...ticks.map((value) => h("span", { style: "left:" + at(value) }, share(value))));
    const grid = h("div", { class: "spread", role: "img", "aria-label": title + ": " + x },
      ...rows.flatMap((row) => [h("span", { class: "heat-name" }, row.label), track(row)]), h("span", {}), scale, h("span", {}),
      h("span", { class: "spread-x" }, x));
    const key = names.map((name, i) => h("span", { class: "spread-key" }, h("span", { class: "spread-sign" }, mark(MARKS[i])), name));
    return [grid, h("p", { class: "figure-key" }, ...key)];
  }

  // An axis for each column, a line for each row of the answer's table; pointing at a line, or the arrow keys, read it.
  function board({ title, axes }, read, found) {
    const columns = axes.map((name) => found.columns.indexOf(name)), wide = AXIS * axes.length;
    const scales = columns.map((column) => {
      const values = found.rows.map((row) => row[column]), words = typeof values[0] === "string";
      const known = [...new Set(values.filter((value) => value !== null))], places = words || known.length < 6
        ? known.sort((a, b) => (words ? 0 : a - b)) : [Math.min(...known), Math.max(...known)];
      const [low, high] = words ? [0, places.length - 1 || 1] : [Math.min(...known), Math.max(...known)];
      const part = (value) => (places.length < 2 ? 0.5 : ((words ? places.length - 1 - places.indexOf(value) : value) - low) / (high - low));
      const y = (value) => TALL - LOW - (TALL - TOP - LOW) * part(value);
      return { places, y, words };
    });
    const x = (at) => 12 + AXIS * at, svg = draw("svg", null, { width: wide, height: TALL, "aria-hidden": "true" });
    const row = (cells) => cells.map((value, at) => axes[at] + " " + number(value)).join(", ");
    const paths = found.rows.map((cells, index) => {
      const points = columns.map((column, at) => [x(at), cells[column] === null ? null : scales[at].y(cells[column])]).filter((p) => p[1] !== null);
      const d = "M" + points.map((p) => p.map((n) => n.toFixed(1)).join(" ")).join("L");
      const group = draw("g", svg, { class: "board-row" + (index ? "" : " best") });
      draw("path", group, { d, class: "board-line" });
      draw("path", group, { d, class: "board-hit" }).addEventListener("pointerenter", () => point(index));
      return group;
    });
    let pointed = -1;
    const point = (index) => {
      pointed = index;
      paths.forEach((path, at) => path.classList.toggle("pointed", at === index));
      svg.append(paths[index]); // above the others, below the words
      svg.append(words);
      read(row(columns.map((column) => found.rows[index][column])));
    };
    svg.append(paths[0]); // the best above the others
    const words = draw("g", svg, {});
    axes.forEach((name, at) => {
      draw("line", words, { x1: x(at), x2: x(at), y1: TOP, y2: TALL - LOW, class: "chart-axis" });
      draw("text", words, { x: x(at), y: 14, class: "board-name" }, name);
      for (const value of scales[at].places) {
        const text = number(value), cut = text.length > 15 ? text.slice(0, 14) + "…" : text;
        draw("text", words, { x: x(at) + 6, y: scales[at].y(value) + 4, class: "board-tick" }, cut);
      }
    });
    const frame = h("div", { class: "figure-scroll", tabindex: "0", role: "img", "aria-label": title + ": a line for each row of the table. Arrow keys read them." }, svg);
    frame.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      point((pointed + by + paths.length) % paths.length);
    });
    return [frame, h("p", { class: "figure-key" }, "The strong line is the first row of the table.")];
  }

  // A tile for each question: its points, a thin line for each problem, and a dial from −1 to 1 for the rank correlation.
  function clouds({ title, x, y, parts }, read) {
    const tile = ({ label, correlation, groups, lines }) => {
      const points = groups.flat(), wide = 230, ys = points.map((p) => p[1]), xs = points.map((p) => p[0]).sort((a, b) => a - b);
      const [left, right] = [xs[Math.floor(FAR * xs.length)], xs[xs.length - 1]], [low, high] = [Math.min(0, ...ys), Math.max(1, ...ys)];
      const px = (value) => 6 + ((wide - LEFT - 12) * (value - left)) / (right - left || 1);
      const py = (value) => 6 + ((TILE - 46) * (high - value)) / (high - low);
      const svg = draw("svg", null, { viewBox: "0 0 " + wide + " " + TILE, "aria-hidden": "true" });
      for (const value of [low, high]) {
        draw("line", svg, { x1: LEFT, x2: wide, y1: 4 + py(value), y2: 4 + py(value), class: "chart-grid" });
        draw("text", svg, { x: LEFT - 5, y: 8 + py(value), class: "cloud-tick", "text-anchor": "end" }, number(value));
      }
      const inside = draw("svg", svg, { x: LEFT, y: 4, width: wide - LEFT, height: TILE - 34, overflow: "hidden" });
      for (const [x0, y0, x1, y1] of lines) draw("line", inside, { x1: px(x0), y1: py(y0), x2: px(x1), y2: py(y1), class: "cloud-line" });
      for (const [vx, vy] of points) {
        const far = vx < left, at = { cx: far ? 3 : px(vx).toFixed(1), cy: py(vy).toFixed(1), r: 2.4 };
        draw("circle", inside, { ...at, class: "cloud-dot" + (far ? " far" : "") });
      }
      const ends = [[left, "start", LEFT + 2], [right, "end", wide - 2]];
      for (const [value, anchor, at] of ends) {
        draw("text", svg, { x: at, y: TILE - 17, class: "cloud-tick", "text-anchor": anchor }, number(Math.round(value)));
      }
      draw("text", svg, { x: (LEFT + wide) / 2, y: TILE - 17, class: "cloud-tick", "text-anchor": "middle" }, x);
      const dial = h("div", { class: "dial" }, h("i", { class: "dial-middle" }));
      if (correlation !== null) dial.append(h("i", { class: "spread-diamond", style: "left:" + 50 * (1 + correlation) + "%" }));
      const told = label + ": rank correlation " + (correlation === null ? "—" : share(correlation)) + ", " + points.length + " candidates of " + groups.length + " problems";
      return h("div", { class: "cloud", role: "img", "aria-label": told, onpointerenter: () => read(told) },
        h("b", {}, label.replaceAll("_", " ")), h("div", { class: "dial-row" }, "−1", dial, "1"), svg);
    };
    return [h("div", { class: "clouds", "aria-label": title }, ...parts.map(tile)),
      h("p", { class: "figure-key" }, "Dots: candidates, " + y + " against " + x + ". Hollow: further left. Lines: the regression within a problem. ◇ on the dial: the rank correlation.")];
  }

  // Texts side by side, below each other on a phone.
  function passages({ says, columns, begin, texts }) {
    const words = (pieces) => pieces.map(([text, marks]) => (marks ? h("span", { class: marks }, text) : text));
    const rows = texts.flatMap((row, at) => [h("p", { class: "passage-begin" }, begin[at]), ...row.map((pieces, column) =>
      h("div", { class: "passage" }, h("b", {}, columns[column]), h("p", {}, ...words(pieces))))]);
    return [h("div", { class: "passages" }, ...rows), h("p", { class: "figure-key" }, says)];
  }

  // A picture of an answer, with a line below it that says what is pointed at.
  page.figure = function (picture, found) {
    const said = h("div", { class: "chart-read", "aria-live": "polite" }), read = (words) => (said.textContent = words);
    const parts = { heat, tokens, spread, board, clouds, passages }[picture.kind](picture, read, found);
    return h("figure", { class: "figure of-" + picture.kind }, h("figcaption", {}, h("b", {}, picture.title)), ...parts, said);
  };
})(window.ExplorerPage);
