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

// Tells the panel what its chat template renders; without a chat only that there is none any more.
page.tellPrompt = function (tell) {
  const { app } = page;
  let told = null;
  const look = () => {
    const prompt = app.chat ? app.bar.prompt.value.slice(0, app.data.limits.prompt) : "";
    const now = JSON.stringify({ models: app.choice, prompt, chat: app.chat });
    if (now !== told && (told !== null || app.chat)) tell((told = now));
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
    const chat = facts.target.chat ? " It has a chat template: switch it on under Models." : "";
    app.remark(sentence + chat);
    app.emit("models");
    if (panel().contains(document.activeElement) || document.activeElement === document.body)
      panel().querySelector("button").focus();
  };

  // The chat has been switched on or off, or its system message has changed.
  app.talk = (chat) => {
    app.chat = chat;
    app.edited();
  };
});
