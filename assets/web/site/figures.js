// The Plotly figures of a page of the site, each drawn when it comes near the screen, in the page's theme.
const CONFIG = { responsive: true, displaylogo: false };

async function start() {
  const looks = JSON.parse(await page.unpack("figures")),
    near = new Set();
  const draw = (figure) => {
    const { data, layout, frames } = looks[document.documentElement.dataset.theme][figure.dataset.figure];
    // A copy: Plotly changes what it draws.
    return window.Plotly.react(figure.firstChild, structuredClone({ data, layout, frames, config: CONFIG }));
  };
  for (const figure of document.querySelectorAll("[data-figure]"))
    page.whenNear(figure, async () => {
      await page.runPlotly();
      near.add(figure);
      draw(figure);
    });
  page.themed(() => near.forEach(draw));
}

start();
