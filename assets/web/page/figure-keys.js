// Arrow keys read a Plotly figure place by place: the sentences that a pointer reads on its hover cards,
// below it and aloud. Plotly draws figures again whenever they change, so the focus is on what they stand in.

// The sentences of a figure in the order of their places: those of its reader (`charts.reader`), else those
// of all its marks.
function sentences(plot) {
  const reader = plot.data.find((trace) => trace.meta?.reads),
    traces = reader ? [reader] : plot.data;
  return [
    ...new Set(
      traces
        .flatMap((trace) => [trace.hovertext || []].flat(2))
        .filter(Boolean)
        .map(page.plain),
    ),
  ];
}

function read(host, step) {
  const plot = host.querySelector(".js-plotly-plot"),
    all = plot ? sentences(plot) : [];
  if (!all.length) return host.querySelector(".figure-reading")?.remove();
  const before = Number(host.dataset.place ?? (step > 0 ? -1 : all.length));
  const place = (host.dataset.place = Math.max(0, Math.min(all.length - 1, before + step)));
  let reading = host.querySelector(".figure-reading");
  if (!reading) host.append((reading = h("p", { class: "figure-reading", role: "status" })));
  if (reading.textContent !== all[place]) reading.textContent = all[place]; // the same is not said twice
}

// A figure has been drawn again, of another step say: what is read below it is what it shows now.
page.readAgain = (host) => {
  if (host?.dataset.place !== undefined) read(host, 0);
};

document.addEventListener(
  "keydown",
  (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key],
      host = event.target;
    if (!step || !host.matches?.(page.FIGURE) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    read(host, step);
  },
  true,
);
