// The menu of a lane (⋯): presents it, and saves what it holds. Its entries are explorer/export/frames.py's.
const NOTHING = "This lane has not been decoded yet; press Run first.";

// What an entry does, "present" or what is saved and how; a sentence if that is not possible.
function chosen(lane, entry) {
  const [form, format] = entry.split(" ");
  if (form === "present") return page.present(lane);
  return lane.runIndex === null ? NOTHING : page.save(lane.app, form, lane, format === "png");
}

page.openMenu = function (lane) {
  const { menu, dots, app } = lane;

  function open(shown) {
    if (shown === !menu.hidden) return;
    menu.hidden = !shown;
    dots.setAttribute("aria-expanded", String(shown));
    (shown ? menu.firstChild : dots).focus({ preventScroll: true });
  }
  dots.addEventListener("click", () => open(menu.hidden));
  menu.addEventListener("click", async ({ target }) => {
    open(false);
    app.fail((await chosen(lane, target.value)) || "");
  });
  page.rove(menu, "button", (item) => item.focus(), ["ArrowUp", "ArrowDown"]);
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" && event.key !== "Tab") return;
    open(false);
    event.stopPropagation();
    if (event.key !== "Tab") event.preventDefault();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (menu.contains(relatedTarget) || relatedTarget === dots) return;
    menu.hidden = true;
    dots.setAttribute("aria-expanded", "false");
  });
};
