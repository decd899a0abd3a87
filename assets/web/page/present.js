// One lane alone on the whole screen, in type that a room can read. The keys are those of the page, and those
// of a clicker. And all lanes on paper.
const PAPER = "on-paper"; // pictures are as wide as a sheet, see lane.css: printing does not draw them again
const CLICKER = { PageDown: 1, PageUp: -1 };

// In a corner, until it is asked for again: a QR code that opens and runs this set-up.
async function showCode(lane) {
  if (takeCode(lane.element)) return;
  const { svg } = await page.call("explorer_qr", { link: await page.linkOf(lane.app.setup()) });
  if (svg)
    lane.element.append(
      h("p", { class: "qr-warning" }, page.linkWarnings(lane.app).join(" ")),
      h("img", {
        class: "qr",
        alt: "QR code: opens and runs this set-up",
        src: "data:image/svg+xml," + encodeURIComponent(svg),
      }),
    );
}

// Takes the code away; whether there was one.
function takeCode(root) {
  const there = [...root.querySelectorAll(".qr, .qr-warning")];
  for (const one of there) one.remove();
  return there.length > 0;
}

// Shows the lane; a sentence if this browser does not let it.
page.present = async function (lane) {
  try {
    await lane.element.requestFullscreen();
  } catch {
    return "This browser does not let the page fill the screen; press F11 and remove the other lanes with ×.";
  }
  lane.app.goTo(lane); // the keys are for this lane
  return null;
};

page.addPart((app) => {
  for (const name of ["beforeprint", "afterprint"])
    window.addEventListener(name, () => {
      app.root.classList.toggle(PAPER, name === "beforeprint");
      // Before the scene's observer hears of the new width.
      for (const { scene } of app.lanes) {
        scene?.measure();
        scene?.draw();
      }
    });
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || takeCode(app.root));
  document.addEventListener("keydown", (event) => {
    const lane = app.lanes.find((one) => one.element === document.fullscreenElement);
    if (lane && event.key.toLowerCase() === "q") showCode(lane);
    if (!lane || !(event.key in CLICKER)) return;
    event.preventDefault();
    app.playback.seek(app.playback.position + CLICKER[event.key], true);
  });
});
