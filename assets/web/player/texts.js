// All words of a picture as one SVG over the marks: labels, tokens in cells, headings, numbers of the axes. A
// text is a text, never markup.
const SMALL = 11; // pixels of the numbers at axes
const thousandth = (value) => Math.round(value * 1000) / 1000;

const lookOf = ({ color, size, anchor = "middle", face, bare, bold, lead }) =>
  lead ? undefined : `${color} ${size} ${anchor} ${face} ${bare} ${bold}`;

function made(x, y, item) {
  const { color, size, anchor = "middle", face, bare, bold, lead, text } = item;
  const words = player.svg("text", null, {
    x,
    y,
    fill: color,
    "font-size": size,
    "text-anchor": anchor,
    class: (face === "mono" ? "dp-mono" : "") + (bare ? " dp-bare" : ""),
    "font-weight": bold ? 700 : null,
  });
  if (lead) player.svg("tspan", words, { "font-weight": "700" }).textContent = lead;
  words.append(text);
  return Object.assign(words, { look: lookOf(item), at: [x, y] });
}

// Another text of the same look, somewhere else.
function turn(words, x, y, { text }) {
  if (words.at[0] !== x) words.setAttribute("x", x);
  if (words.at[1] !== y) words.setAttribute("y", y);
  if (words.lastChild.data !== text) words.lastChild.data = text;
  words.at = [x, y];
}

// A text for `player.refill`.
function text(x, y, item) {
  const look = lookOf(item);
  return [
    `${look ?? JSON.stringify(item)} ${x} ${y} ${item.text}`,
    () => made(x, y, item),
    look,
    (words) => turn(words, x, y, item),
  ];
}

// Numbers and titles of the axes. Of numbers that would touch, the first is written.
function axes(view, head, surface) {
  const plain = { color: surface.soft, size: SMALL },
    taken = [],
    still = [],
    sliding = [];
  for (const panel of Object.values(view.panels)) {
    for (const tick of panel.ticks || []) {
      const [value, words] = Array.isArray(tick) ? tick : [tick, String(tick)];
      const y = Math.max(SMALL / 2 + 1, view.py(value, { panel: panel.id })); // never cut at the top
      if (taken.some((other) => Math.abs(other - y) < SMALL + 1)) continue;
      taken.push(y);
      still.push(text(view.left - 5, y, { ...plain, text: words, anchor: "end" }));
    }
  }
  if (!view.axis) return { still, sliding };
  const low = view.size.height - view.bottom;
  let end = -Infinity; // of the number before
  for (const x of player.xTicks(view)) {
    const at = view.px(x),
      number = String(Number((x * view.unit).toPrecision(9))),
      half = player.textWidth(number, SMALL, "sans") / 2;
    if (at < view.left || at > view.edge - 6 || at - half < end + 6) continue;
    end = at + half;
    sliding.push(word(at - view.px(0), low + 9, { ...plain, text: number }));
  }
  const words = view.byDepth ? "draft depth" : head.axis || "token position";
  if (view.titled) still.push(text((view.left + view.edge) / 2, low + 23, { ...plain, text: words }));
  return { still, sliding };
}

// A word of a panel whose text is placed from its zeros: where a window moves on, its words go with it.
const word = (x, y, item) => text(thousandth(x), thousandth(y), item);

// The part of a panel that moves: its zeros, in pixels, are where `move` is.
function moved(group, x, y) {
  const move = `translate(${thousandth(x)} ${thousandth(y)})`;
  if (group.getAttribute("transform") !== move) group.setAttribute("transform", move);
  return group;
}

// `words`: [{panel, face, free, x, y, text, color, size, anchor, bold, bare, lead}], x and y in pixels of the
// frame; they stay within their panel unless they are free.
player.drawTexts = function (svg, words, view, head, surface) {
  const { still, sliding } = axes(view, head, surface),
    left = view.px(0);
  const slides = (parent) => player.svg("g", player.svg("g", parent, { class: "dp-slides" }));
  const groups = [
    ["axis", () => slides(null).parentNode, (group) => moved(group.firstChild, left, 0), sliding],
  ];
  const seen = words.filter(({ x }) => x >= view.left - 8 && x <= view.edge);
  for (const panel of Object.values(view.panels)) {
    const { index, topPx, heightPx, grow } = panel,
      own = seen.filter((one) => one.panel === panel && !one.free);
    const box = { y: topPx, width: view.edge, height: heightPx, overflow: "hidden" },
      zero = grow ? view.py(0, { panel: panel.id }) - topPx : 0;
    groups.push([
      JSON.stringify([index, box]),
      () => slides(player.svg("svg", null, box)).parentNode.parentNode,
      (made) => moved(made.firstChild.firstChild, left, zero),
      own.map((one) => word(one.x - left, one.y - topPx - zero, one)),
    ]);
  }
  still.push(...seen.filter((one) => one.free).map((one) => text(one.x, one.y, one)));
  player.refill(svg, [...groups, ...still]);
  for (const [key, , home, texts] of groups) player.refill(home(svg.items.get(key)), texts);
  for (const side of ["width", "height"])
    if (svg.getAttribute(side) !== String(view.size[side])) svg.setAttribute(side, view.size[side]);
};
