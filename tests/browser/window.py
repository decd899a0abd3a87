"""What may change around a page that is open: the size of its window, and the system's theme. And what brings
a page that several tests use back to its beginning.
"""

# As a page is when it has been loaded, but for what Gradio's tabs hold: the stored run in its lanes, which
# have the settings `setup`; and nothing chosen, opened, typed or kept.
BEGINNING = """async (setup) => {
  const { app } = decodingExplorer, { bar, playback } = app;
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
  if (app.guide.lesson) app.guide.leave();
  document.activeElement.blur();
  history.replaceState(null, "", location.pathname + location.search);
  localStorage.removeItem("explorer-theme");
  localStorage.removeItem("explorer-keys");
  app.themeChosen = false;
  if (app.theme !== scheme) app.setTheme(scheme);
  bar.keys.checked = bar.speed.querySelector("[value=live]").checked = true;
  bar.controls.classList.remove("settings-open");
  bar.more.setAttribute("aria-expanded", "false");
  playback.setSpeed("live");
  playback.setUnit("step");
  bar.colour.selectedIndex = 0;
  app.setColour(bar.colour.value);
  app.fail("");
  app.remarked = null;
  app.applySetup({ ...setup, ...(app.chat ? { chat: null } : {}) });
  app.drawExample();
  for (const lane of app.lanes) for (const drawing of [lane.chips, lane.drawing()]) drawing.draw();
  scrollTo(0, 0);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def begin_again(page, setup: dict) -> None:
    """Brings a page back to its beginning, with prompt, length and lanes of `setup`."""
    page.mouse.move(0, 0)
    page.evaluate(BEGINNING, {name: setup[name] for name in ("prompt", "max_new_tokens", "lanes")})


def switch(page, scheme: str) -> None:
    """The system changes its theme, and the page follows."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)


def resize(page, width: int, height: int = 844) -> None:
    """Gives the window another size and waits until the page has come to it and nothing sticks out of it."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")
