// A picture of a lane, as SVG or PNG: what is on the screen, with its heading, text, legend and costs, without the controls.
// Everything is read off the page, drawings as they stand and the rest by its boxes and texts. Knows no views.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";
  const SKIP = "button, .dp-overlay, .hint, [hidden]";
  const PAD = 10, HEAD = 34, SCALE = 2; // pixels; PNGs have twice the pixels of the screen
  const measure = document.createElement("canvas").getContext("2d");

  function make(tag, attributes, parent) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    if (parent) parent.append(made);
    return made;
  }

  // Characters that no XML may hold are left out.
  const clean = (text) => text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");

  function write(parent, text, x, y, style, width) {
    const made = make("text", { x, y, fill: style.color, "font-family": style.fontFamily, "font-size": style.fontSize,
      "font-weight": style.fontWeight, "text-decoration": style.textDecorationLine === "none" ? null : style.textDecorationLine,
      textLength: width || null, lengthAdjust: width ? "spacingAndGlyphs" : null, style: "white-space:pre" }, parent);
    made.textContent = clean(text);
  }

  const seen = (colour) => colour && colour !== "transparent" && !/, 0\)$|\/ 0\)$/.test(colour);

  // Background and borders of a box.
  function box(parent, style, x, y, width, height) {
    const radius = parseFloat(style.borderTopLeftRadius) || 0;
    if (seen(style.backgroundColor)) make("rect", { x, y, width, height, rx: radius, fill: style.backgroundColor }, parent);
    const right = x + width, bottom = y + height;
    const sides = [["Top", x, y, right, y], ["Bottom", x, bottom, right, bottom],
      ["Left", x, y, x, bottom], ["Right", right, y, right, bottom]];
    for (const [side, x0, y0, x1, y1] of sides) {
      const [thickness, kind, colour] = ["Width", "Style", "Color"].map((part) => style["border" + side + part]);
      const thick = parseFloat(thickness), dashes = { dashed: "3 2", dotted: thick + " " + thick }[kind] || null;
      if (!thick || kind === "none" || kind === "hidden" || !seen(colour)) continue;
      const inward = side === "Top" || side === "Left" ? 1 : -1, level = side === "Top" || side === "Bottom";
      const line = (at, width) => {
        const [across, down] = level ? [0, at] : [at, 0];
        make("line", { x1: x0 + across, y1: y0 + down, x2: x1 + across, y2: y1 + down,
          stroke: colour, "stroke-width": width, "stroke-dasharray": dashes }, parent);
      };
      if (kind === "double") for (const at of [thick / 6, (5 * thick) / 6]) line(inward * at, thick / 3);
      else line((inward * thick) / 2, thick);
    }
  }

  // A text node, line by line as it is laid out.
  function texts(parent, node, style, dx, dy) {
    const range = document.createRange(), lines = [];
    for (let i = 0; i < node.length; i++) {
      range.setStart(node, i);
      range.setEnd(node, i + 1);
      const rect = range.getBoundingClientRect(), last = lines[lines.length - 1];
      if (!rect.width && !rect.height) continue;
      if (last && Math.abs(last.top - rect.top) < 2) {
        last.text += node.data[i];
        last.right = Math.max(last.right, rect.right);
      } else lines.push({ text: node.data[i], left: rect.left, right: rect.right, top: rect.top });
    }
    measure.font = style.fontWeight + " " + style.fontSize + " " + style.fontFamily;
    const ascent = measure.measureText("x").fontBoundingBoxAscent;
    for (const line of lines) {
      if (line.text.trim()) write(parent, line.text, line.left + dx, line.top + dy + ascent, style, line.right - line.left);
    }
  }

  // What style sheets say of the words and of the frames in a drawing: a file has none.
  function dress(copy, element) {
    const names = ["fill", "stroke", "stroke-width", "stroke-dasharray", "paint-order", "font-family", "font-size", "font-weight",
      "font-variant-numeric", "dominant-baseline", "white-space"];
    const kinds = "text, rect", copies = copy.querySelectorAll(kinds);
    element.querySelectorAll(kinds).forEach((original, i) => {
      const style = getComputedStyle(original);
      for (const name of names) copies[i].style.setProperty(name, style.getPropertyValue(name));
    });
  }

  // What an element shows, moved by (dx, dy).
  function paint(parent, element, dx, dy) {
    if (element.matches(SKIP)) return;
    const style = getComputedStyle(element), rect = element.getBoundingClientRect();
    if (style.display === "none" || style.visibility === "hidden" || style.opacity === "0" || !rect.width) return;
    const x = rect.left + dx, y = rect.top + dy;
    if (element instanceof SVGSVGElement) {
      const copy = element.cloneNode(true);
      dress(copy, element);
      for (const [name, value] of Object.entries({ x, y, width: rect.width, height: rect.height })) copy.setAttribute(name, value);
      parent.append(copy);
      return;
    }
    if (element instanceof HTMLCanvasElement) {
      make("image", { x, y, width: rect.width, height: rect.height, href: element.toDataURL() }, parent);
      return;
    }
    let group = style.opacity === "1" ? parent : make("g", { opacity: style.opacity }, parent);
    box(group, style, x, y, rect.width, rect.height);
    if (style.overflowX !== "visible") { // a nested svg cuts off what is outside it
      group = make("svg", { x, y, width: rect.width, height: rect.height, overflow: "hidden" }, group);
      [dx, dy] = [-rect.left, -rect.top];
    }
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) texts(group, child, style, dx, dy);
      else if (child.nodeType === Node.ELEMENT_NODE) paint(group, child, dx, dy);
    }
  }

  // Number, strategy and parameters, and where the slider stands.
  function heading(root, lane, width) {
    const style = getComputedStyle(lane.element), soft = getComputedStyle(lane.line);
    const face = { fontFamily: style.fontFamily, fontSize: "13px", fontWeight: "400", textDecorationLine: "none" };
    const where = "step " + lane.shown + " of " + lane.rows.length, y = PAD + 17;
    measure.font = "700 13px " + face.fontFamily;
    const title = lane.element.getAttribute("aria-label") + ": " + lane.declaration().title;
    const wide = measure.measureText(title).width, line = lane.line.textContent;
    write(root, title, PAD, y, { ...face, fontWeight: "700", color: style.color });
    measure.font = "400 13px " + face.fontFamily;
    const room = width - 2 * PAD - wide - measure.measureText(where).width - 28;
    if (measure.measureText(line).width < room) write(root, line, PAD + wide + 14, y, { ...face, color: soft.color });
    write(root, where, width - PAD - measure.measureText(where).width, y, { ...face, color: soft.color });
  }

  // The lane as an SVG element of its own.
  page.pictureOf = function (lane) {
    const view = lane.element.querySelector(".view"), foot = lane.element.querySelector(".lane-foot");
    const scrolls = lane.textElement.hidden ? null : lane.textElement; // a long text is drawn whole
    if (scrolls) scrolls.style.maxHeight = "none";
    try {
      const outer = lane.element.getBoundingClientRect(), width = Math.ceil(outer.width), root = make("svg", { xmlns: SVG, width });
      const background = make("rect", { width: "100%", fill: getComputedStyle(document.body).backgroundColor }, root);
      heading(root, lane, width);
      let y = HEAD;
      for (const part of scrolls ? [scrolls, foot] : [lane.chipsElement, view, foot]) {
        const rect = part.getBoundingClientRect(), at = part === scrolls ? PAD : rect.left - outer.left;
        paint(root, part, at - rect.left, y - rect.top);
        y += rect.height;
      }
      const height = Math.ceil(y + 4);
      for (const element of [root, background]) element.setAttribute("height", height);
      root.setAttribute("viewBox", "0 0 " + width + " " + height);
      return { root, width, height };
    } finally {
      if (scrolls) scrolls.style.maxHeight = "";
    }
  };

  // The picture as a file's content: kind is "svg" or "png".
  page.pictureFile = async function (lane, kind) {
    const { root, width, height } = page.pictureOf(lane), text = new XMLSerializer().serializeToString(root);
    if (kind === "svg") return new Blob([text], { type: "image/svg+xml" });
    const image = new Image(), canvas = document.createElement("canvas");
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    await image.decode();
    canvas.width = width * SCALE;
    canvas.height = height * SCALE;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };
})(window.ExplorerPage);
