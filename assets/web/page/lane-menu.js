// The menu of a lane (⋯): presents it, and saves what it holds. Its entries are explorer/export/frames.py's.
const NOTHING = "This lane has not been decoded yet; press Run first.";
const NO_CLIPBOARD =
  "This browser does not let pages write to the clipboard here; the saved figure has its caption in <desc>.";

// What an entry does, "present" or what is saved and how; a sentence if that is not possible.
function chosen(lane, entry) {
  const [form, format] = entry.split(" ");
  if (form === "present") return page.present(lane);
  if (lane.runIndex === null) return NOTHING;
  if (form === "caption") return copyCaption(lane);
  const more = form === "print" ? { width_mm: Number(format) } : {};
  return page.save(lane.app, form, lane, format === "png", more);
}

// The caption of a figure for print is the picture's description.
async function copyCaption(lane) {
  const file = await page.fileOf(lane.app, "print", lane);
  if (file.error) return file.error;
  const svg = new TextDecoder().decode(page.fromBase64(file.data)),
    caption = new DOMParser().parseFromString(svg, file.type).querySelector("desc").textContent;
  return (await page.copied(caption)) ? "" : NO_CLIPBOARD;
}

page.openMenu = function (lane) {
  const { menu, dots, app } = lane,
    widths = menu.querySelectorAll(".of-print");
  const unfold = (shown) => widths.forEach((one) => (one.hidden = !shown));
  const open = page.disclose(dots, menu, () => {
    unfold(false);
    return menu.firstChild;
  });
  menu.addEventListener("click", async ({ target }) => {
    if (target.value === "print") {
      unfold(true);
      return widths[0].focus();
    }
    open(false);
    app.fail((await chosen(lane, target.value)) || "");
  });
  page.rove(menu, "button:not([hidden])", (item) => item.focus(), ["ArrowUp", "ArrowDown"]);
  menu.addEventListener("keydown", (event) => event.key === "Tab" && open(false));
  menu.addEventListener(
    "focusout",
    ({ relatedTarget }) => menu.contains(relatedTarget) || relatedTarget === dots || open(false, true),
  );
};
