// The models in use: what the page does when Gradio's panel (explorer/page/tabs/models.py) has loaded others,
// and what the panel must know of prompt and chat.
const panel = () => document.getElementById("explorer-models");

// A choice with every key, always in the same order.
page.completeChoice = ({ target, draft, dtype, device }) => ({
  target,
  draft: draft || null,
  dtype: dtype || "auto",
  device: device || "auto",
});
page.sameModels = (a, b) => JSON.stringify(page.completeChoice(a)) === JSON.stringify(page.completeChoice(b));

// How models are called where there is little room: the last part of each name.
page.shortNames = function ({ target, draft }) {
  const short = (name) =>
    name
      .replace(/[\\/]+$/, "")
      .split(/[\\/#]/)
      .pop();
  return short(target) + (draft ? ", draft " + draft.split(",").map(short).join(" and ") : ", no draft");
};

// Whether a target is not one that comes with the app; edits may follow its name.
page.isForeign = ({ data, choice }) => !data.shipped.names.includes(choice.target.split(/[:+]/)[0]);

// Tells the panel what its chat template renders; without a chat only that there is none any more.
page.tellPrompt = function (tell) {
  const { app } = page;
  let last = null;
  const look = () => {
    const prompt = app.chat ? app.bar.prompt.value.slice(0, app.data.limits.prompt) : "";
    const now = JSON.stringify({ models: app.choice, prompt, chat: app.chat });
    if (now !== last && (last !== null || app.chat)) tell((last = now));
  };
  app.on("state", look);
  look();
};

page.addPart((app) => {
  // A link, a file, a lesson or an example asks for models or a chat: the panel shows them, and loads nothing
  // by itself.
  let count = 0;
  app.ask = (models, chat) => {
    const others = models && !page.sameModels(models, app.choice);
    if (!others && chat === undefined) return;
    app.emit("wanted", {
      models: others ? page.completeChoice(models) : null,
      chat: app.chat,
      count: count++,
    }); // what is asked again counts again
    if (others && panel()) panel().scrollIntoView({ block: "nearest" });
  };

  // From here on the page decodes with these. Where they could not be loaded, `problem` says why, and the
  // same ones stay.
  app.use = ({ choice, sentence, facts, problem }) => {
    // Else the panel itself shows it.
    if (problem && !panel().querySelector("input").offsetHeight) app.fail(problem);
    if (page.sameModels(choice, app.choice)) return;
    app.fail("");
    app.choice = page.completeChoice(choice);
    app.models = { ...app.models, state: "ready", sentence, facts };
    for (const lane of app.lanes) lane.describe();
    app.remark(sentence);
    app.emit("models");
    app.suit(sentence);
    if (panel().contains(document.activeElement) || document.activeElement === document.body)
      panel().querySelector("button").focus();
  };

  // Fits the settings to models that have come into use: lanes that they cannot run become others, the length
  // fits their context; a prompt that nobody has touched becomes a message where there is a chat template. A
  // recorded run that still stands there is replaced by one of these models.
  app.suit = async (sentence = "") => {
    const { bar, data, lanes } = app,
      asked = app.request();
    const answer = await page.patient("explorer_suit", asked);
    if (answer.error || app.settingsKey() !== JSON.stringify(asked)) return false; // it has been touched
    const prompts = [data.example.prompt, answer.message],
      untouched = prompts.includes(bar.prompt.value),
      said = [sentence, answer.sentence].filter(Boolean);
    answer.lanes.forEach((other, index) => {
      if (!other) return;
      const before = lanes[index].title();
      lanes[index].choose(other.strategy, other.parameters);
      said.push(`Lane ${index + 1} is ${lanes[index].title()}: these models cannot run ${before}.`);
    });
    const chat = answer.chats && (untouched || app.chat);
    if (Boolean(chat) !== Boolean(app.chat)) {
      app.chat = chat ? { system: "" } : null;
      if (untouched) bar.prompt.value = prompts[Number(Boolean(chat))];
      app.ask(null, app.chat);
    }
    if (answer.chats)
      said.push(
        chat
          ? "The prompt is a message in its chat template."
          : "It has a chat template: switch it on under Models.",
      );
    if (Number(bar.tokens.value) > answer.room) bar.tokens.value = String(answer.room);
    app.remark(said.join(" "));
    if (untouched && app.run?.stored) app.press("run");
    return untouched;
  };

  // The chat has been switched on or off, or its system message has changed.
  app.talk = (chat) => {
    app.chat = chat;
    app.edited();
  };
});
