// All words of a picture as one SVG over the marks: labels, tokens in cells, headings, numbers of the axes. A text is a text, never
// markup. Knows where panels lie.
window.DecodingPlayer = window.DecodingPlayer || {};
(function (player) {
  "use strict";
  const SMALL = 11; // pixels of the numbers at axes

  function write(parent, x, y, item, face) {
    const text = player.svg("text", parent, { x: x + (item.dx || 0), y: y + (item.dy || 0), fill: item.color, "font-size": item.size,
      "text-anchor": item.anchor || "middle", class: (face === "mono" ? "dp-mono" : "") + (item.bare ? " dp-bare" : "") });
    if (item.bold) text.setAttribute("font-weight", "700");
    if (item.lead) player.svg("tspan", text, { "font-weight": "700" }).textContent = item.lead;
    text.append(item.text);
  }

  // Numbers and titles of the axes. Of numbers that would touch, the first is written.
  function axes(svg, view, head, surface) {
    const plain = { color: surface.soft, size: SMALL }, taken = [];
    for (const panel of Object.values(view.panels)) {
      for (const tick of panel.ticks || []) {
        const [value, words] = Array.isArray(tick) ? tick : [tick, String(tick)];
        const y = Math.max(SMALL / 2 + 1, view.py(value, { panel: panel.id })); // never cut at the top
        if (taken.some((other) => Math.abs(other - y) < SMALL + 1)) continue;
        taken.push(y);
        write(svg, view.left - 5, y, { ...plain, text: words, anchor: "end" });
      }
    }
    if (!view.axis) return;
    const low = view.size.height - view.bottom, right = view.size.width - (view.clip ? view.right : 0);
    const sliding = player.svg("g", svg, { class: "dp-slides" });
    const unit = Object.values(view.panels).find((panel) => panel.x_unit)?.x_unit ?? 1; // what a column stands for
    let end = -Infinity; // of the number before
    for (const x of player.xTicks(view)) {
      const at = view.px(x), text = String(Number((x * unit).toPrecision(9))), half = player.textWidth(text, SMALL, "sans") / 2;
      if (at < view.left || at > right - 6 || at - half < end + 6) continue;
      end = at + half;
      write(sliding, at, low + 9, { ...plain, text });
    }
    const words = view.byDepth ? "draft depth" : head.axis || "token position";
    if (view.titled) write(svg, (view.left + right) / 2, low + 23, { ...plain, text: words });
  }

  // `traces`: [{yaxis, face, free, items: [{x, y, text, color, size, anchor, bold, lead, dx, dy}]}]; x and y in data units, dx and
  // dy in pixels; a text stays within its panel unless its trace is free.
  player.drawTexts = function (svg, traces, view, head, surface) {
    const right = view.size.width - (view.clip ? view.right : 0);
    svg.replaceChildren();
    svg.setAttribute("width", view.size.width);
    svg.setAttribute("height", view.size.height);
    axes(svg, view, head, surface);
    for (const panel of Object.values(view.panels)) {
      const { topPx, heightPx } = panel, mark = { panel: panel.id };
      const box = player.svg("svg", svg, { y: topPx, width: right, height: heightPx, overflow: "hidden" });
      const inside = player.svg("g", box, { class: "dp-slides" });
      for (const trace of traces) {
        if (trace.yaxis !== panel.yaxis) continue;
        for (const item of trace.items) {
          const x = view.px(item.x), y = view.py(item.y, mark);
          if (x < view.left - 8 || x > right) continue;
          if (trace.free) write(svg, x, y, item, trace.face);
          else write(inside, x, y - topPx, item, trace.face);
        }
      }
    }
  };
})(window.DecodingPlayer);
