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

// What whoever gets a link of this page must know, in sentences; empty where the link works for everybody.
const LOOPBACK = /^(127\.[\d.]+|localhost|\[::1\])$/;
page.linkWarnings = function ({ data }) {
  const alone =
    `It opens on this computer only: ${location.hostname} is the computer that opens it. ` +
    "Start the app with --host 0.0.0.0 for other devices of your network, or with --share.";
  const asks =
    "Whoever opens it is asked for this app's token, which the link does not hold: it is at the end of the " +
    "address that the app printed.";
  return [LOOPBACK.test(location.hostname) && alone, data.guarded && asks].filter(Boolean);
};

// How the fragment of the page's address begins, if it carries a setup.
const markOf = ({ hash }) => [MARK, RUNS].find((one) => hash.startsWith(one));

page.addLivePart((app) => {
  const large = app.bar.runThis;
  large.addEventListener("click", () => app.press("run"));
  app.on("run", () => large.remove());

  async function follow() {
    const { hash } = location,
      mark = markOf(location);
    if (!mark) return;
    const { error, setup } = await page.patient("explorer_link", {
      packed: hash.slice(mark.length, mark.length + MAX_LETTERS),
    });
    if (hash !== location.hash) return; // another one has come
    arrived();
    if (error && !app.run) {
      app.bar.prompt.value = app.data.example.prompt;
      app.drawExample();
    }
    if (error) return app.fail(error);
    const here = !setup.models || page.sameModels(setup.models, app.choice);
    app.applySetup(setup);
    app.main.before(large);
    if (here && mark === RUNS) app.press("run");
  }
  // Until the link's set-up is there, no lane of another one is shown, and none can be run.
  function arrived() {
    if (!app.expecting) return;
    app.expecting = app.main.hidden = false;
    page.notice(app, "link", null);
  }
  if (markOf(location)) {
    app.expecting = app.main.hidden = true;
    app.bar.prompt.value = "";
    page.notice(app, "link", {
      text: "This link brings a set-up. It is shown as soon as the models are loaded.",
    });
  }
  // The strategies of a link are known when the models are.
  app.addEventListener("greeted", follow, { once: true });
  window.addEventListener("hashchange", follow);
});
