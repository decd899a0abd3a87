// A link that carries the whole setup in the address behind #: nothing of it is sent anywhere. A link that is opened puts the
// setup in place after it has been checked, with one large button that runs it; one that was read off a QR code runs it at once,
// unless it asks for other models than those of the page.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const VERSION = 1;
  const MARK = "#setup=", RUNS = "#run=";
  const MOST = 200000; // bytes of a setup as JSON, and letters of a link
  const CHOSEN = ["target", "draft", "dtype", "device"];
  const DAMAGED = "This link is damaged: part of it is missing. Ask for it again.";

  const shape = (text) => text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const unshape = (text) => text.replace(/-/g, "+").replace(/_/g, "/");

  // The address of the page with this setup.
  page.linkOf = async function (setup) {
    const bytes = new TextEncoder().encode(JSON.stringify({ version: VERSION, ...setup }));
    const packed = await page.through(new CompressionStream("deflate-raw"), bytes);
    return location.href.split("#")[0] + MARK + shape(page.toBase64(packed));
  };

  // A part of a setup as it is. Throws an Error for text with half a character, which can be sent nowhere.
  function sound(name, value) {
    if (typeof value === "string" && /\p{Surrogate}/u.test(value)) throw new Error(DAMAGED);
    return value;
  }

  // A value that a stranger wrote, in few words.
  const short = (value) => (typeof value === "object" ? "something" : String(value).slice(0, 40));

  // What a fragment holds. Throws an Error with one sentence if it is unusable.
  async function read(fragment) {
    let found = null;
    try {
      const bytes = fragment.length < MOST ? page.fromBase64(unshape(fragment.slice(fragment.indexOf("=") + 1))) : null;
      const text = bytes && await page.through(new DecompressionStream("deflate-raw"), bytes, MOST);
      found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text), sound);
    } catch {
      throw new Error(DAMAGED);
    }
    if (!found || typeof found !== "object") throw new Error(DAMAGED);
    if (found.version !== VERSION) throw new Error("This link has version " + short(found.version) + "; this page reads version " + VERSION + ".");
    return found;
  }

  const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;
  const numbers = (value) => Array.isArray(value) && value.length < 100 && value.every((v) => typeof v === "number");
  const plain = (value) => ["string", "number", "boolean"].includes(typeof value) || numbers(value);
  const record = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

  // One lane of a setup, with only what a lane has. Throws an Error with one sentence.
  function lane(given, app) {
    const known = record(given) && app.strategies.get(given.strategy);
    const unknown = (what) => new Error("This link asks for " + what + ", which this app does not know.");
    if (!known) throw unknown("the strategy " + short(record(given) ? given.strategy : given));
    const names = new Set(known.parameters.map((p) => p.name)), parameters = given.parameters || {};
    if (!record(parameters)) throw new Error(DAMAGED);
    const odd = Object.keys(parameters).find((name) => !names.has(name) || !plain(parameters[name]));
    if (odd !== undefined) throw unknown(short(odd) + " of " + known.title);
    const seed = given.seed ?? 0, { begin } = given;
    if (!whole(seed, 0, Number.MAX_SAFE_INTEGER)) throw new Error("This link has an unusable seed.");
    const most = app.data.limits.max_new_tokens;
    const tokens = (list) => Array.isArray(list) && list.length <= most && list.every((token) => whole(token, 0, 2 ** 31));
    if (begin && !(record(begin) && tokens(begin.tokens) && tokens(begin.forced || []))) throw new Error(DAMAGED);
    const view = known.views.includes(given.view) ? { view: given.view } : {};
    return { strategy: given.strategy, parameters, seed, ...view, ...(begin ? { begin } : {}) };
  }

  // A setup as `applySetup` takes it, made of what a link may carry and nothing else. Throws an Error with one sentence.
  page.checkedSetup = function (given, app) {
    const { limits } = app.data, { prompt, max_new_tokens, lanes, models, chat } = given;
    const need = (sound, sentence) => {
      if (!sound) throw new Error(sentence);
    };
    const most = { prompt: limits.prompt, tokens: limits.max_new_tokens };
    need(typeof prompt === "string" && prompt.length <= most.prompt, "The prompt of a link has at most " + most.prompt + " characters.");
    need(whole(max_new_tokens, 1, most.tokens), "The number of tokens in a link must be from 1 to " + most.tokens + ".");
    need(Array.isArray(lanes) && whole(lanes.length, 1, limits.lanes), "A link must have one to " + limits.lanes + " lanes.");
    const setup = { prompt, max_new_tokens, lanes: lanes.map((one) => lane(one, app)) };
    const named = (name) => typeof name === "string" && name.length <= 500;
    const names = record(models) && named(models.target) ? CHOSEN.filter((what) => named(models[what])) : [];
    if (names.length) setup.models = Object.fromEntries(names.map((what) => [what, models[what]]));
    if (chat === null || (record(chat) && typeof (chat.system ?? "") === "string")) setup.chat = chat;
    return setup;
  };

  page.addPart((app) => {
    if (app.data.saved) return;
    const carried = () => [MARK, RUNS].some((mark) => location.hash.startsWith(mark));
    const large = page.h("button", { type: "button", class: "primary run-this", hidden: true, onclick: () => app.press("run") }, "Run this set-up");
    let waiting = carried();
    app.main.before(large);
    app.on("run", () => (large.hidden = true));

    async function follow() {
      if (!waiting || app.models.state === "loading") return; // the strategies are known when the models are
      waiting = false;
      try {
        const setup = page.checkedSetup(await read(location.hash), app), here = !setup.models || page.sameModels(setup.models, app.choice);
        app.applySetup(setup);
        large.hidden = false;
        if (here && location.hash.startsWith(RUNS)) app.press("run");
      } catch (error) {
        app.fail(error.message);
      }
    }
    app.on("models", follow);
    window.addEventListener("hashchange", () => {
      waiting = carried();
      follow();
    });
  });
})(window.ExplorerPage);
