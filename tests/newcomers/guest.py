"""A newcomer at a browser, and what newcomers do with the page: by clicks and keys, role and visible name."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.browser.conftest import BEEN_HERE, watched
from tests.browser.test_page import press, ready

PATIENCE = 30_000  # milliseconds that a newcomer waits for what was pressed
expect.set_options(timeout=PATIENCE)
# Width and height of the window, and what else belongs to it.
WINDOWS: dict[str, dict[str, Any]] = {
    "teacher": {"size": (1400, 900), "color_scheme": "light"},
    "researcher": {"size": (1920, 1080), "color_scheme": "dark"},
    "visitor with a phone": {"size": (390, 844), "has_touch": True, "is_mobile": True},
}


class Guest:
    """One person with a browser of their own; `page` is the page that is looked at.

    `address` is that of the app, without its token; `token` the part of it that opens the app; `folder` an
    empty folder.
    """

    def __init__(self, browser: Browser, address: str, token: str, person: str, folder: Path):
        self.browser, self.address, self.token = browser, address, token
        self.window, self.folder = WINDOWS[person], folder
        self.errors: list[str] = []  # of scripts, and requests to other machines
        self.contexts: list[BrowserContext] = []
        self.page: Page

    def opens(self, size: tuple[int, int] | None = None, first: bool = False, **options: Any) -> Page:
        """The app in a fresh browser, its models loaded. `first`: the recorded run replays by itself."""
        width, height = size or self.window["size"]
        wishes = {name: value for name, value in self.window.items() if name != "size"}
        context = self.browser.new_context(viewport={"width": width, "height": height}, **(wishes | options))
        self.contexts.append(context)
        if not first:
            context.add_init_script(BEEN_HERE)
        self.page = watched(context, self.address, self.errors)
        self.page.set_default_timeout(PATIENCE)
        self.page.goto(self.address + self.token, wait_until="domcontentloaded")
        ready(self.page)
        return self.page

    def leaves(self) -> None:
        """Closes all that is open."""
        for context in self.contexts:
            context.close()


def lane(page: Page, number: int) -> Locator:
    """A lane, counted from 1."""
    return page.get_by_role("region", name=f"Lane {number}", exact=True)


def inspector(page: Page) -> Locator:
    """The card of a token."""
    return page.get_by_role("complementary", name="Inspector")


def tab(page: Page, name: str) -> Locator:
    """Goes to a tab; its panel."""
    page.get_by_role("tab", name=name, exact=True).first.click()
    panel = page.get_by_role("tabpanel", name=name, exact=True)
    expect(panel).to_be_visible()
    return panel


def view(page: Page, number: int, name: str) -> None:
    """Shows another view of a lane: by its tab, or by the list of further ones."""
    found = lane(page, number).get_by_role("tab", name=name, exact=True)
    if found.count() and found.is_visible():
        found.click()
    else:
        lane(page, number).get_by_label("More views").select_option(label=name)
    page.wait_for_timeout(300)


def choose(page: Page, number: int, title: str) -> None:
    """Chooses the strategy of a lane by the name on the screen."""
    lane(page, number).get_by_label("Strategy").select_option(label=title)


def lanes(page: Page, *titles: str) -> None:
    """As many lanes as there are names, each with its strategy."""
    shown = page.locator(".lane").count()
    for _ in range(shown, len(titles)):
        press(page, "+ Lane")
    for number in range(shown, len(titles), -1):
        lane(page, number).get_by_role("button", name="Remove lane").click()
    for number, title in enumerate(titles, 1):
        choose(page, number, title)


def parameter(page: Page, number: int, name: str, value: str) -> None:
    """Sets a parameter of a lane."""
    one = lane(page, number)
    gear = one.get_by_role("button", name="Parameters", exact=True)
    if gear.get_attribute("aria-expanded") != "true":
        gear.click()
    one.get_by_label(name, exact=True).fill(value)
    page.keyboard.press("Escape")


def decode(page: Page, prompt: str = "Once upon a time", tokens: int = 40) -> None:
    """Types prompt and length, presses Run and waits for the end and its result."""
    page.get_by_role("textbox", name="Prompt").fill(prompt)
    page.get_by_label("max_new_tokens").fill(str(tokens))
    run(page)


def run(page: Page) -> None:
    """Presses Run and waits for the end."""
    press(page, "Run")
    done(page)


# The run is over, its result is said, and the lanes that are seen are drawn.
DONE = """() => decodingExplorer.state === "done" && decodingExplorer.app.moments.result
  && decodingExplorer.lanes.every(({ view, scene, count }) =>
    view === "text" || !scene.root.offsetParent || scene.paintedStep === count - 1)"""


def done(page: Page) -> None:
    """Waits for the end of a run."""
    page.wait_for_function(DONE)


def moment(page: Page) -> str:
    """The sentence of the moment, or of the result, that is on show."""
    return page.locator(".bar.status .moment").inner_text()


def alert(page: Page) -> Locator:
    """The sentence of what is wrong."""
    return page.locator("#explorer").get_by_role("alert")


def menu(page: Page, number: int, entry: str) -> None:
    """An entry of a lane's menu."""
    lane(page, number).get_by_role("button", name="Save this lane").click()
    page.get_by_role("menuitem", name=entry).click()


def option(page: Page, label: str, name: str | re.Pattern) -> None:
    """Chooses in one of Gradio's lists."""
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=name).first.click()


def sideways(page: Page) -> int:
    """Pixels by which the page can be scrolled sideways."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def filled(page: Page, number: int) -> tuple[float, float]:
    """The shares of width and height of a lane's picture that its nodes and boxes take up."""
    return tuple(page.evaluate(FILLED, number - 1))


FILLED = """lane => {
  const { scene } = decodingExplorer.app.lanes[lane], { view } = scene, { size } = view;
  const spans = scene.drawn.filter((mark) => ["node", "cell"].includes(mark.kind) && mark.drawn !== false)
    .map((mark) => {
      const [x, y] = [view.px(mark.x), view.py(mark.y, mark)];
      const half = (view.px(mark.x + (mark.w || 1)) - x) / 2, tall = Math.abs(view.py(mark.y + (mark.h || 0), mark) - y) / 2;
      return [x - half, x + half, y - tall, y + tall];
    });
  const span = (low, high, room) => (Math.min(room, Math.max(...spans.map((one) => one[high])))
    - Math.max(0, Math.min(...spans.map((one) => one[low])))) / room;
  return [span(0, 1, size.width), span(2, 3, size.height)];
}"""  # noqa: E501
# How many tokens each lane has written.
WRITTEN = """decodingExplorer.app.lanes.map((lane) => lane.chips.marksAt()
  .filter(({ state }) => !["prompt", "rejected"].includes(state)).length)"""
# Texts that are wider than their boxes, of what matches and is not for screen readers alone.
CUT = """selector => [...document.querySelectorAll(selector)]
  .filter((one) => one.checkVisibility() && one.clientWidth > 4)
  .filter((one) => one.scrollWidth > Math.ceil(one.getBoundingClientRect().width) + 1)
  .map((one) => one.textContent.trim())"""


def cut(page: Page, selector: str) -> list[str]:
    """The texts of these elements that do not fit into them."""
    return page.evaluate(CUT, selector)
