// The keyboard: what works everywhere on the page, the panel that lists it (?), and the link that skips the bars. Keys are never
// taken from fields, and can be switched off. Also says, beside the pictures, what is on screen: politely and not at every step.
window.ExplorerPage = window.ExplorerPage || {};
(function (page) {
  "use strict";
  const h = page.h;
  const STORED = "explorer-keys"; // "off" if a person has switched the keys off
  const QUIET = 700, LONGEST = 5000; // milliseconds without news before a sentence is said; at most between two while running
  const LIST = [
    [["Space"], "run, pause, go on"],
    [["←", "→"], "one step back, one step forward"],
    [["Home", "End"], "before the first step, the last step"],
    [["S"], "decode one more step in every lane"],
    [["P"], "replay what is here, hold the replay"],
    [["N"], "the next rejected token of this lane; with Shift the one before"],
    [["[", "]"], "previous lane, next lane"],
    [["1", "2", "3", "4"], "that lane"],
    [["T"], "the steps of this lane as text"],
    [["Enter"], "in a picture or a text: to its newest mark; again: why this token"],
    [["←", "→", "↑", "↓"], "from there: parent, child, the alternatives"],
    [["L"], "from there: the arcs and hooks that lead to this token"],
    [["Q"], "where a lane is presented: a QR code that opens and runs this set-up"],
    [["Esc"], "close, or leave the marks"],
    [["?"], "this list"],
  ];
  const GLOSSARY = [
    ["token", "a piece of text, often a word: what a model writes at a time. ␣ stands for a space, ↵ for a line break."],
    ["target, draft", "the model whose text is wanted, and a smaller one that guesses ahead for it."],
    ["forward", "one run of a model. The target's forwards are what decoding costs."],
    ["round", "the draft proposes tokens, and one target forward tests them all."],
    ["p, q, u", "the probability of a token under the target and under the draft, and the random number that decides: it is accepted if u < p / q."],
    ["accepted, rejected", "a drafted token passed its test, or did not; what was drafted behind a rejected token is never reached."],
    ["resampled", "the target's own token in the place of a rejected one, drawn from the residual: what p has more than q."],
    ["bonus", "one more token of the target after all drafted ones were accepted; it costs no forward of its own."],
    ["entropy", "how unsure the model is, in bits: 0 is certain, 1 is a coin, 3 a choice of eight."],
    ["log p", "the logarithm of a probability; its sum over a text says how probable the text is. Closer to 0 is more probable."],
    ["beam", "one of the texts that beam search keeps side by side."],
    ["KV slots", "places in the model's memory of the tokens that it has read."],
    ["lossless", "the same text, or the same distribution of texts, as without the draft."],
  ];

  const stored = (value) => {
    try {
      if (value !== undefined) localStorage.setItem(STORED, value);
      return localStorage.getItem(STORED);
    } catch {
      return null; // private windows may refuse: the choice lasts for this page
    }
  };

  // ---- what the keys do -------------------------------------------------------------------------------------------------

  async function focusLane(app, index) {
    const lane = app.lanes[index];
    if (!lane) return;
    await app.showSection("decode");
    app.phoneLane = index;
    app.drawLaneButtons();
    lane.element.tabIndex = -1;
    lane.element.focus();
  }

  // The lane that holds the focus, else the one a phone shows.
  function laneAt(app) {
    const at = app.lanes.findIndex((lane) => lane.element.contains(document.activeElement));
    return at < 0 ? app.phoneLane : at;
  }

  // Goes to the step at which the next token of the lane was rejected, or the one before it.
  function seekRejection(app, back) {
    const lane = app.lanes[laneAt(app)], { history } = lane.chips;
    const steps = history ? history.entries.flatMap((entry) => [[entry.born, entry.base], ...entry.changes]
      .filter(([, fields]) => fields.state === "rejected").map(([step]) => step + 1)) : [];
    const ahead = steps.filter((step) => (back ? step < lane.shown : step > lane.shown) && step <= lane.rows.length);
    if (!ahead.length) return;
    seekStep(app, lane, back ? Math.max(...ahead) : Math.min(...ahead));
  }

  const seekStep = ({ playback }, lane, step) => playback.seek(playback.ticks.indexOf(playback.valueOf(lane, step)) + 1, true);

  // A drafted token of a lane, counted from 1: its round is in the picture, and the inspector says why (explorer/page/tabs/rejections.py).
  page.goToToken = async function ({ lane: number, step, node }) {
    const { app } = page, lane = app.lanes[number - 1], { views } = lane.declaration();
    await focusLane(app, number - 1);
    if (!["draft_tree", "one_round"].includes(lane.view) && views.includes("draft_tree")) lane.showView("draft_tree");
    seekStep(app, lane, step);
    lane.scene.hold({ node });
    lane.element.scrollIntoView({ block: "nearest" });
    await app.inspector.show(lane, { node });
  };

  const ACTIONS = {
    " ": (app) => app.press(app.state() === "running" ? "pause" : "run"),
    ArrowLeft: (app) => app.playback.seek(app.playback.position - 1, true),
    ArrowRight: (app) => app.playback.seek(app.playback.position + 1, true),
    Home: (app) => app.playback.seek(0, true),
    End: (app) => app.playback.seek(app.playback.ticks.length, true),
    s: (app) => app.bar.buttons.step.disabled || app.press("step"),
    p: (app) => app.playback.togglePlay(),
    "[": (app) => focusLane(app, Math.max(0, laneAt(app) - 1)),
    "]": (app) => focusLane(app, Math.min(app.lanes.length - 1, laneAt(app) + 1)),
    t: (app) => app.lanes[laneAt(app)].steps.toggle(),
    n: (app, event) => seekRejection(app, event.shiftKey),
  };

  function attach(app, help) {
    document.addEventListener("keydown", (event) => {
      const target = event.target, name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      if (target.isContentEditable || (target.closest && target.closest("input, textarea, select, dialog"))) return;
      if (!help.on.checked) return;
      if (name === " " && target.closest("button, summary, a")) return; // there it presses
      if (name === "?") help.open();
      else if (app.section !== "decode") return;
      else if (/^[1-4]$/.test(name)) focusLane(app, Number(name) - 1);
      else if (ACTIONS[name]) ACTIONS[name](app, event);
      else return;
      event.preventDefault();
    });
  }

  // ---- the panel --------------------------------------------------------------------------------------------------------

  function scripts(app) {
    const here = location.origin + location.pathname, code = (text) => h("pre", {}, h("code", {}, text));
    const bearer = app.data.token ? ', headers={"Authorization": "Bearer TOKEN"}' : "";
    const box = h("section", { hidden: true }, h("h3", {}, "For scripts and assistants"),
      h("p", {}, "The endpoints /strategies, /run and /trace answer any Gradio client:"),
      code('from gradio_client import Client\nclient = Client("' + here + '"' + bearer + ')\n' +
        'found = client.predict("Once upon a time", "beam", {"num_beams": 4}, 32, api_name="/run")\nprint(found["text"])'),
      app.data.token ? h("p", {}, "TOKEN stands at the end of the address that the app printed when it started.") : null);
    const tools = h("p", {}, "They are MCP tools too, at ", h("code", {}, here + "gradio_api/mcp/" + (bearer && "?token=TOKEN")), ".");
    app.on("models", () => {
      box.hidden = app.models.mcp === undefined; // a saved page has no server
      tools.hidden = !app.models.mcp;
    });
    box.append(tools);
    return box;
  }

  // Whether and how the app runs what a model wrote as code; a saved page runs nothing.
  function programs(app) {
    const says = h("p", {}), box = h("section", { hidden: true }, h("h3", {}, "Programs that a model writes"), says);
    app.on("models", () => {
      box.hidden = !app.models.code;
      says.textContent = app.models.code || "";
    });
    return box;
  }

  function buildHelp(app) {
    const on = h("input", { type: "checkbox", checked: stored() !== "off", onchange: () => stored(on.checked ? "on" : "off") });
    const close = h("button", { type: "button", "aria-label": "Close help", title: "Close (Escape)", onclick: () => panel.close() }, "×");
    const rows = LIST.map(([keys, says]) => h("div", {}, h("dt", {}, ...keys.map((key) => h("kbd", {}, key))), h("dd", {}, says)));
    const panel = h("dialog", { class: "help", "aria-label": "Help" },
      h("header", {}, h("h2", {}, "Keys"), close),
      h("div", { class: "help-body", tabindex: "0", role: "group", "aria-label": "Keys, words and endpoints" }, h("dl", { class: "keys" }, ...rows),
        h("label", { class: "field" }, on, h("span", {}, "Keys work (fields keep theirs in any case)")),
        h("section", {}, h("h3", {}, "Words"), h("dl", { class: "glossary" }, ...GLOSSARY.map(([word, says]) => h("div", {}, h("dt", {}, word), h("dd", {}, says))))),
        scripts(app), programs(app)));
    const button = h("button", { type: "button", class: "theme", "aria-label": "Help", "aria-haspopup": "dialog", title: "Keys, words and endpoints (?)",
      onclick: () => open() }, "?");
    const open = () => panel.open || panel.showModal();
    app.bar.theme.before(button);
    app.bar.root.append(panel);
    return { on, open, panel };
  }

  // ---- what is said -----------------------------------------------------------------------------------------------------

  // The sentences of the steps that are shown, once the picture has come to rest, or now and then while it runs.
  function announce(app) {
    const region = h("div", { class: "unseen", role: "status", "aria-label": "Steps" });
    let timer = null, last = 0, before = "";
    const say = () => {
      timer = null;
      last = performance.now();
      const words = app.lanes.map((lane, i) => [i + 1, lane.steps.sentence()]).filter(([, sentence]) => sentence);
      const text = words.map(([number, sentence]) => (words.length > 1 ? "Lane " + number + ", " : "") + sentence).join(" ");
      if (text !== before && last > QUIET) region.textContent = before = text;
    };
    app.on("shown", () => {
      const moving = app.state() === "running" || app.playback.playing, due = last + LONGEST - performance.now();
      if (timer !== null && moving) return; // one is on its way
      clearTimeout(timer);
      timer = setTimeout(say, moving ? Math.max(QUIET, due) : QUIET);
    });
    app.bar.where.setAttribute("aria-live", "off"); // an output would be read at every step
    app.root.append(region);
  }

  page.addPart((app) => {
    const skip = h("a", { class: "skip", href: "#explorer-main", onclick: (event) => {
      event.preventDefault();
      focusLane(app, app.phoneLane);
    } }, "Skip to the lanes");
    app.bar.root.prepend(skip);
    attach(app, buildHelp(app));
    announce(app);
  });
})(window.ExplorerPage);
