// What a page carries: texts that Python compressed, and plotly.js, which runs when a chart comes near the
// screen. A saved page has them in itself; a page of the site has the larger ones in scripts beside it, since
// a page that was opened from disk may run a script, and may read no other file.
const NEAR = "300px"; // so far from the screen charts are drawn

// The text of one of the page's blobs.
page.unpack = async function (name) {
  const home = document.getElementById("explorer-" + name),
    { script } = home.dataset;
  if (script && !home.textContent)
    await new Promise((onload, onerror) =>
      document.head.append(h("script", { src: script, onload, onerror })),
    );
  const bytes = page.fromBase64(home.textContent);
  return new TextDecoder().decode(await page.through(new DecompressionStream("gzip"), bytes));
};

// Runs plotly.js, once. The page's policy knows its hash.
page.runPlotly = async function () {
  if (!window.Plotly) document.head.append(h("script", {}, await page.unpack("plotly")));
};

// Calls `then` once, when the element comes near the screen.
page.whenNear = function (element, then) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.at(-1).isIntersecting) return; // on a busy machine several come at once, the newest last
      observer.disconnect();
      then();
    },
    { rootMargin: NEAR },
  );
  observer.observe(element);
};
