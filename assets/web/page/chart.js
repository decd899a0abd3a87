// A small chart in SVG: lanes told apart by dash and mark, never by hue. Draws what it is given; knows nothing of runs.
//
// chart.draw({title: [bold, rest], x: {words, max, [min], whole, [at]}, y: {min, max}, bars, lines, dots, guide, note, read}):
//   x.at   the places that are read, in order, where these are not all whole ones
//   bars   [{x, parts: [{from, to, [state], [fill], [mark]}], [text]}]   stacked, at whole places; a state's colour, else grey;
//          fill "outline" or "dotted" leaves a part open, "pale" lets lines be seen on it, `mark` writes the state's glyph into it,
//          text stands above all
//   lines  [{lane, index, points: [[x, y or null, low, high]], stairs, soft, marked}]   one a lane; equal ones share one label;
//          low and high: a whisker; marked: a small mark at every point
//   dots   [{lane, index, x, y}]                                     marks without a line; those that meet share one label
//   guide  {x, text}                                                 a dotted vertical
//   note   the sentence below the chart while nothing is pointed at
//   read   (x) => the sentence below the chart for a place under the pointer or the arrow keys
// `lane` is the number that is written, `index` chooses dash and mark.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 208, LEFT = 46, TOP = 18, BOTTOM = 38; // pixels
  const DASHES = { solid: "none", dash: "7 4", dot: "2 3", longdashdot: "11 3 2 3" };
  const LINE = 13; // pixels between two lines of small text
  const SHAPES = {
    circle: (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    square: (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}Z`,
    diamond: (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z`,
    "triangle-up": (r) => `M0 ${-1.2 * r}L${1.2 * r} ${r}L${-1.2 * r} ${r}Z`,
  };

  function draw(tag, parent, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  }

  // Round values from low to high, about `count` of them.
  function ticks(low, high, count, whole) {
    const raw = (high - low) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
    let step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    if (whole) step = Math.max(1, Math.round(step));
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n += 1) found.push(n * step);
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const said = (value) => (value === 0 ? "0" : step >= 5000 ? value / 1000 + "k" : value.toFixed(places));
    return found.map((value) => [value, said(value).replace("-", "−")]);
  }

  // Places each label beside its mark, right or left, up or down by whole lines, where it covers no mark and no other label, and
  // as little as possible of the `lines`; one that finds no place is dropped: its mark stays, and the reading says the rest.
  function place(labels, marks, lines, words, box) {
    const taken = [...words, ...marks.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6])], placed = [];
    const free = (own) => own[0] >= box[0] && own[1] >= box[1] && own[2] <= box[2] && own[3] <= box[3] &&
      taken.every((other) => own[0] >= other[2] || other[0] >= own[2] || own[1] >= other[3] || other[1] >= own[3]);
    const steps = [0, 1, -1, 2, -2, 3, -3].flatMap((down) => [[1, down], [-1, down]]);
    for (const { at: [x, y], gap, text } of labels) {
      const wide = 7.4 * text.length, boxes = steps.map(([side, down]) => {
        const left = side > 0 ? x + gap : x - gap - wide, top = y + (down - 0.5) * LINE;
        return [left, top, left + wide, top + LINE];
      });
      const covered = (own) => lines.filter(([px, py]) => px > own[0] && px < own[2] && py > own[1] && py < own[3]).length;
      const [found] = boxes.filter(free).map((own) => [own, covered(own)]).sort((a, b) => a[1] - b[1])[0] || [];
      if (!found) continue;
      taken.push(found);
      placed.push({ x: found[0], y: found[1] + LINE - 2.5, text });
    }
    return placed;
  }

  // The key of a lane: its dash and its mark, as in the charts.
  page.laneKey = function (palette, index) {
    const svg = draw("svg", null, { width: 40, height: 14, "aria-hidden": "true", class: "lane-key" });
    const { marks, dashes } = palette.lane;
    draw("path", svg, { d: "M1 7H39", class: "chart-line", "stroke-dasharray": DASHES[dashes[index % dashes.length]] });
    draw("path", svg, { d: SHAPES[marks[index % marks.length]](3.6), transform: "translate(20 7)", class: "chart-mark" });
    return svg;
  };

  page.Chart = class {
    constructor(palette) {
      this.palette = palette;
      this.caption = page.h("figcaption", {});
      this.frame = page.h("div", { class: "chart-frame", tabindex: "0", role: "img", "aria-label": "A chart without data yet." });
      this.readout = page.h("div", { class: "chart-read", "aria-live": "polite" });
      this.element = page.h("figure", { class: "chart" }, this.caption, this.frame, this.readout);
      this.frame.addEventListener("pointermove", (event) => this.point(event.clientX - this.frame.getBoundingClientRect().left));
      this.frame.addEventListener("pointerleave", () => this.read(null));
      this.frame.addEventListener("blur", () => this.read(null));
      this.frame.addEventListener("keydown", (event) => this.key(event));
      if (window.ResizeObserver) new ResizeObserver(() => this.spec && this.draw(this.spec)).observe(this.frame);
    }

    draw(spec) {
      this.spec = spec;
      this.caption.replaceChildren(page.h("b", {}, spec.title[0]), " " + spec.title[1]);
      const reads = spec.read ? "Arrow keys read it place by place." : "";
      this.frame.setAttribute("aria-label", [spec.title.join(" ") + ".", spec.note, reads].filter(Boolean).join(" "));
      const width = this.frame.clientWidth;
      if (width < 80) return; // hidden: drawn when it comes into view
      this.width = width;
      const numbers = new Set([...(spec.lines || []), ...(spec.dots || [])].map((own) => own.lane));
      this.right = width - 14 - 13 * Math.min(6, numbers.size); // room for "1, 2, 3"
      const { x, y } = spec, span = y.max - y.min || 1;
      const edge = x.whole ? 0.5 : 0.04 * (x.max - x.min) || 0.5; // half a place around whole places
      const low = x.min === undefined ? 0 : x.min - edge, high = x.min === undefined ? x.max || 1 : x.max + edge;
      this.px = (value) => LEFT + ((value - low) / (high - low)) * (this.right - LEFT);
      this.placeOf = (pixels) => low + ((pixels - LEFT) / (this.right - LEFT)) * (high - low);
      this.py = (value) => TOP + ((y.max - value) / span) * (HEIGHT - TOP - BOTTOM);
      const svg = draw("svg", null, { width, height: HEIGHT, "aria-hidden": "true" });
      this.axes(svg);
      this.bars(svg);
      const labels = [], marks = [];
      this.lines(svg, labels, marks);
      this.dots(svg, labels, marks);
      const box = [LEFT, TOP - 12, width, HEIGHT - BOTTOM + 2];
      for (const { x: left, y: base, text } of place(labels, marks, this.drawn, this.words, box)) {
        draw("text", svg, { x: left, y: base, class: "chart-label" }, text);
      }
      this.hair = draw("line", svg, { y1: TOP, y2: HEIGHT - BOTTOM, class: "chart-hair", visibility: "hidden" });
      this.frame.replaceChildren(svg);
      this.read(this.at ?? null);
    }

    axes(svg) {
      const { x, y, guide } = this.spec, bottom = HEIGHT - BOTTOM;
      for (const [value, text] of ticks(y.min, y.max, 4)) {
        draw("line", svg, { x1: LEFT, x2: this.right, y1: this.py(value), y2: this.py(value), class: "chart-grid" });
        draw("text", svg, { x: LEFT - 6, y: this.py(value) + 4, class: "chart-tick", "text-anchor": "end" }, text);
      }
      draw("line", svg, { x1: LEFT, x2: this.right, y1: bottom, y2: bottom, class: "chart-axis" });
      const marks = ticks(x.min || 0, x.max || 1, this.width < 420 ? 4 : 8, x.whole);
      for (const [value, text] of marks) {
        draw("text", svg, { x: this.px(value), y: bottom + 15, class: "chart-tick", "text-anchor": "middle" }, text);
      }
      draw("text", svg, { x: (LEFT + this.right) / 2, y: bottom + 31, class: "chart-tick", "text-anchor": "middle" }, x.words);
      this.words = []; // boxes of words that labels leave free
      if (!guide || guide.x > x.max) return;
      const left = this.px(guide.x) > this.width / 2, anchor = left ? "end" : "start";
      draw("line", svg, { x1: this.px(guide.x), x2: this.px(guide.x), y1: TOP - 4, y2: bottom, class: "chart-guide" });
      const at = this.px(guide.x) + (left ? -5 : 5), wide = 6.5 * guide.text.length;
      this.words.push([left ? at - wide : at, TOP - 17, left ? at : at + wide, TOP - 2]);
      draw("text", svg, { x: at, y: TOP - 6, class: "chart-tick", "text-anchor": anchor }, guide.text);
    }

    bars(svg) {
      const { state } = this.palette, place = this.px(1) - this.px(0), wide = Math.min(44, Math.max(1, 0.76 * place));
      for (const { x, parts, text } of this.spec.bars || []) {
        const left = this.px(x) - wide / 2;
        for (const { from, to, state: name, fill, mark } of parts) {
          const high = Math.max(from, to), tall = Math.max(0, this.py(Math.min(from, to)) - this.py(high)), own = state[name];
          const colours = own ? `--light:${own.light.color};--dark:${own.dark.color}` : "";
          const inset = fill && wide > 4 ? 0.5 : 0; // an outline stands inside its own place
          const box = { x: left + inset, y: this.py(high) + inset, width: wide - 2 * inset, height: Math.max(0, tall - 2 * inset) };
          draw("rect", svg, { ...box, class: ["chart-bar", fill || "", own ? "state" : ""].join(" ").trim(), style: colours });
          if (mark && own && wide >= 11 && tall >= 12) {
            const place = { x: this.px(x), y: this.py((from + to) / 2) + 4, "text-anchor": "middle" };
            draw("text", svg, { ...place, class: "chart-glyph" }, own.glyph);
          }
        }
        const top = Math.max(...parts.flatMap((part) => [part.from, part.to]));
        if (text && wide >= 6.4 * text.length) {
          draw("text", svg, { x: this.px(x), y: this.py(top) - 4, class: "chart-label", "text-anchor": "middle" }, text);
        }
      }
      if (this.spec.y.min < 0 && this.spec.bars) {
        draw("line", svg, { x1: LEFT, x2: this.right, y1: this.py(0), y2: this.py(0), class: "chart-zero" });
      }
    }

    lines(svg, labels, found) {
      const { marks, dashes } = this.palette.lane, ends = new Map();
      this.drawn = []; // points on the lines, in pixels
      for (const line of this.spec.lines || []) {
        const points = line.points.filter((point) => point[1] !== null);
        if (!points.length) continue;
        let path = "", pen = false;
        for (const [vx, vy] of line.points) {
          if (vy === null) pen = false;
          else {
            const at = this.px(vx).toFixed(1), high = this.py(vy).toFixed(1);
            path += !pen ? `M${at} ${high}` : line.stairs ? `H${at}V${high}` : `L${at} ${high}`;
            pen = true;
          }
        }
        draw("path", svg, { d: path, class: "chart-line" + (line.soft ? " soft" : ""), "data-index": line.index,
          "stroke-dasharray": line.soft ? "1 3" : DASHES[dashes[line.index % dashes.length]] });
        const pixels = points.map(([vx, vy]) => [this.px(vx), this.py(vy)]);
        pixels.forEach(([x1, y1], i) => {
          const [x0, y0] = pixels[i - 1] || [x1, y1];
          this.drawn.push([x1, y1], ...[0.25, 0.5, 0.75].map((part) => [x0 + part * (x1 - x0), y0 + part * (y1 - y0)]));
        });
        const mark = (vx, vy, size) => draw("path", svg, { d: SHAPES[marks[line.index % marks.length]](size), class: "chart-mark",
          "data-index": line.index, transform: `translate(${this.px(vx)} ${this.py(vy)})` });
        for (const [vx, , least, most] of points) {
          if (most === undefined) continue;
          draw("line", svg, { x1: this.px(vx), x2: this.px(vx), y1: this.py(least), y2: this.py(most), class: "chart-whisker" });
        }
        if (line.marked) for (const [vx, vy] of points) mark(vx, vy, 2.4);
        const [ex, ey] = points[points.length - 1], end = [Math.round(this.px(ex)), Math.round(this.py(ey))].join();
        if (line.soft) continue;
        mark(ex, ey, 3.4);
        found.push([this.px(ex), this.py(ey)]);
        if (ends.has(end)) ends.get(end).text += ", " + line.lane;
        else ends.set(end, { at: [this.px(ex), this.py(ey)], gap: 8, text: String(line.lane) });
      }
      labels.push(...ends.values());
    }

    dots(svg, labels, found) {
      const { marks } = this.palette.lane;
      for (const dot of this.spec.dots || []) {
        if (dot.x === null || dot.y === null) continue;
        const x = this.px(dot.x), y = this.py(dot.y);
        draw("path", svg, { d: SHAPES[marks[dot.index % marks.length]](6), transform: `translate(${x} ${y})`,
          class: "chart-mark open", "data-index": dot.index });
        found.push([x, y]);
        const near = labels.find((other) => Math.hypot(other.at[0] - x, other.at[1] - y) < 8);
        if (near) near.text += ", " + dot.lane;
        else labels.push({ at: [x, y], gap: 12, text: String(dot.lane) });
      }
    }

    // What stands at a place, in words; null: nothing is pointed at.
    read(value) {
      if (!this.hair) return;
      const { read, x } = this.spec;
      this.at = value;
      this.hair.setAttribute("visibility", value === null || !read ? "hidden" : "visible");
      if (value === null || !read) {
        this.readout.textContent = this.spec.note || "";
        return;
      }
      const at = this.px(Math.min(value, x.max));
      this.hair.setAttribute("x1", at);
      this.hair.setAttribute("x2", at);
      this.readout.textContent = read(value);
    }

    point(pixels) {
      const { x, read } = this.spec || {};
      if (!read || !this.px) return;
      const value = Math.max(x.min || 0, Math.min(x.max, this.placeOf(pixels)));
      const near = (found, at) => (Math.abs(at - value) < Math.abs(found - value) ? at : found);
      this.read(x.at ? x.at.reduce(near) : x.whole ? Math.round(value) : value);
    }

    key(event) {
      const { x, read } = this.spec || {}, step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!read || !step) return;
      event.preventDefault();
      if (x.at) {
        const now = x.at.indexOf(this.at), next = now < 0 ? (step > 0 ? 0 : x.at.length - 1) : now + step;
        return this.read(x.at[Math.max(0, Math.min(x.at.length - 1, next))]);
      }
      const by = x.whole ? 1 : x.max / 40, from = this.at ?? (step > 0 ? (x.min || 0) - by : x.max + by);
      this.read(Math.max(x.min || 0, Math.min(x.max, from + step * by)));
    }
  };
})(window.ExplorerPage);
