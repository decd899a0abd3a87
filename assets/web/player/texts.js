// All words of a picture as one SVG over the marks: labels, tokens in cells, headings, numbers of the axes. A text is a text, never
// markup. Knows where panels lie.
const SMALL = 11; // pixels of the numbers at axes

function made(x, y, { color, size, anchor = "middle", face, bare, bold, lead, text }) {
  const words = player.svg("text", null, { x, y, fill: color, "font-size": size, "text-anchor": anchor,
    class: (face === "mono" ? "dp-mono" : "") + (bare ? " dp-bare" : "") });
  if (bold) words.setAttribute("font-weight", "700");
  if (lead) player.svg("tspan", words, { "font-weight": "700" }).textContent = lead;
  words.append(text);
  return words;
}

// A text for `player.refill`.
const text = (x, y, item) => [JSON.stringify([x, y, item]), () => made(x, y, item)];

// Numbers and titles of the axes. Of numbers that would touch, the first is written.
function axes(view, head, surface) {
  const plain = { color: surface.soft, size: SMALL }, taken = [], still = [], sliding = [];
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
  const low = view.size.height - view.bottom, right = view.size.width - (view.clip ? view.right : 0);
  const unit = Object.values(view.panels).find((panel) => panel.x_unit)?.x_unit ?? 1; // what a column stands for
  let end = -Infinity; // of the number before
  for (const x of player.xTicks(view)) {
    const at = view.px(x), number = String(Number((x * unit).toPrecision(9))), half = player.textWidth(number, SMALL, "sans") / 2;
    if (at < view.left || at > right - 6 || at - half < end + 6) continue;
    end = at + half;
    sliding.push(text(at, low + 9, { ...plain, text: number }));
  }
  const words = view.byDepth ? "draft depth" : head.axis || "token position";
  if (view.titled) still.push(text((view.left + right) / 2, low + 23, { ...plain, text: words }));
  return { still, sliding };
}

// `words`: [{yaxis, face, free, x, y, text, color, size, anchor, bold, bare, lead}], x and y in pixels of the frame; they stay
// within their panel unless they are free.
player.drawTexts = function (svg, words, view, head, surface) {
  const right = view.size.width - (view.clip ? view.right : 0), { still, sliding } = axes(view, head, surface);
  const groups = [["axis", () => player.svg("g", null, { class: "dp-slides" }), (group) => group, sliding]];
  const seen = words.filter(({ x }) => x >= view.left - 8 && x <= right);
  for (const { yaxis, topPx, heightPx } of Object.values(view.panels)) {
    const own = seen.filter((word) => word.yaxis === yaxis && !word.free);
    const box = { y: topPx, width: right, height: heightPx, overflow: "hidden" };
    groups.push([JSON.stringify([yaxis, box]), () => {
      const made = player.svg("svg", null, box);
      player.svg("g", made, { class: "dp-slides" });
      return made;
    }, (made) => made.firstChild, own.map((word) => text(word.x, word.y - topPx, word))]);
  }
  still.push(...seen.filter((word) => word.free).map((word) => text(word.x, word.y, word)));
  player.refill(svg, [...groups, ...still]);
  for (const [key, , home, texts] of groups) player.refill(home(svg.items.get(key)), texts);
  for (const side of ["width", "height"]) if (svg.getAttribute(side) !== String(view.size[side])) svg.setAttribute(side, view.size[side]);
};
