// The menu of a lane (⋯): presents it, and saves what it holds. Its entries are explorer/export/frames.py's.
const NOTHING = "This lane has not been decoded yet; press Run first.";

// What an entry does, "present" or what is saved and how; a sentence if that is not possible.
function chosen(lane, entry) {
  const [form, format] = entry.split(" ");
  if (form === "present") return page.present(lane);
  return lane.runIndex === null ? NOTHING : page.save(lane.app, form, lane, format === "png");
}

page.openMenu = function (lane) {
  const { menu, dots, app } = lane,
    open = page.disclose(dots, menu, () => menu.firstChild);
  menu.addEventListener("click", async ({ target }) => {
    open(false);
    app.fail((await chosen(lane, target.value)) || "");
  });
  page.rove(menu, "button", (item) => item.focus(), ["ArrowUp", "ArrowDown"]);
  menu.addEventListener("keydown", (event) => event.key === "Tab" && open(false));
  menu.addEventListener(
    "focusout",
    ({ relatedTarget }) => menu.contains(relatedTarget) || relatedTarget === dots || open(false, true),
  );
};
