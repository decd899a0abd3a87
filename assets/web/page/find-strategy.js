// The dialog that finds a strategy for a lane (the first entry of a lane's list opens it), whose list is
// explorer/page/find_strategy.py's, and what a further lane begins with.

// A strategy that no lane has: one to start with, of a family that is not there yet if there is one.
page.contrast = function (app) {
  const used = app.lanes.map((lane) => lane.setup.strategy),
    families = app.lanes.map((lane) => lane.declaration().family);
  const can = (s) => s && !used.includes(s.name) && s.needs.every((role) => app.choice[role]);
  const starts = app.data.start.map((name) => app.strategies.get(name)).filter(can);
  return (
    starts.find((s) => !families.includes(s.family)) ||
    starts[0] ||
    [...app.strategies.values()].find(can) ||
    app.lanes[0].declaration()
  );
};

page.addLivePart((app) => {
  let lane = null,
    drawn = null;
  const { dialog, field, status, list } = page.made(app.data.frames.find);
  field.addEventListener("input", () => (drawn = draw()));
  field.addEventListener("keydown", async (event) => {
    if (!["Enter", "ArrowDown"].includes(event.key)) return;
    event.preventDefault();
    await drawn;
    const first = list.querySelector("button:not(:disabled)");
    if (!first) return;
    if (event.key === "Enter") first.click();
    else first.focus();
  });
  list.addEventListener("click", ({ target }) => {
    const { name } = target.closest("button")?.dataset || {};
    if (!name) return;
    lane.choose(name);
    dialog.close();
  });
  dialog.addEventListener("close", () => lane.picker.focus({ preventScroll: true }));

  async function draw() {
    const words = field.value,
      { error, sentence, html } = await page.call("explorer_find", { words, models: app.choice });
    if (words !== field.value) return drawn; // the answer to what was typed since
    status.textContent = error || sentence;
    list.innerHTML = html || "";
  }

  app.findStrategy = (forLane) => {
    lane = forLane;
    field.value = "";
    if (!dialog.isConnected) app.bar.controls.append(dialog);
    drawn = draw();
    dialog.showModal();
  };
});
