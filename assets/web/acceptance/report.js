// A saved acceptance report: draws its figures in the page's theme, and opens the text that a link leads to.
const LOOK = document.documentElement.dataset.theme;

for (const [name, figure] of Object.entries(FIGURES[LOOK])) {
    const place = document.getElementById(`figure-${name}`);
    if (place) Plotly.newPlot(place, figure.data, figure.layout, { displaylogo: false, responsive: true });
}

function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const text = target.closest("details");
    if (text) text.open = true;
    target.scrollIntoView({ block: "center" });
}

addEventListener("hashchange", openTarget);
openTarget();
