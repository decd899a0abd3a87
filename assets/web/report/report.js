// A saved acceptance report: draws its figures in the page's theme.
const LOOK = document.documentElement.dataset.theme;

for (const [name, figure] of Object.entries(FIGURES[LOOK])) {
  const place = document.getElementById(`figure-${name}`);
  if (place) Plotly.newPlot(place, figure.data, figure.layout, { displaylogo: false, responsive: true });
}
