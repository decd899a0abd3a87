// A link that carries the whole setup in the address after #. The page makes it; one that is opened is
// checked by the app (explorer/page/links.py) and put in place, with one large button that runs it; one that
// was read off a QR code runs it at once, unless it asks for other models than those of the page.
const VERSION = 1;
const MARK = "#setup=",
  RUNS = "#run=";
const MAX_LETTERS = 200000; // letters that the app reads: a longer link is damaged

// The address of the page with this setup.
page.linkOf = async function (setup) {
  const bytes = new TextEncoder().encode(JSON.stringify({ version: VERSION, ...setup }));
  const packed = page.toBase64(await page.through(new CompressionStream("deflate-raw"), bytes));
  return (
    location.href.split("#")[0] + MARK + packed.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")
  );
};

page.addLivePart((app) => {
  const large = app.bar.runThis;
  large.addEventListener("click", () => app.press("run"));
  app.on("run", () => large.remove());

  async function follow() {
    const { hash } = location,
      mark = [MARK, RUNS].find((one) => hash.startsWith(one));
    if (!mark) return;
    const { error, setup } = await page.patient("explorer_link", {
      packed: hash.slice(mark.length, mark.length + MAX_LETTERS),
    });
    if (hash !== location.hash) return; // another one has come
    if (error) return app.fail(error);
    const here = !setup.models || page.sameModels(setup.models, app.choice);
    app.applySetup(setup);
    app.main.before(large);
    if (here && mark === RUNS) app.press("run");
  }
  // The strategies of a link are known when the models are.
  app.addEventListener("greeted", follow, { once: true });
  window.addEventListener("hashchange", follow);
});
