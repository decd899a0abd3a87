"""What a visitor with a phone asks of the page: 390 x 844, with fingers."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.test_page import press
from tests.browser.test_touch import SMALL
from tests.newcomers.guest import Guest, inspector, lane, moment, run, sideways, tab
from tests.newcomers.tasks import Findings, task
from tests.newcomers.teacher import answered, lesson, onward, stops

SCREENS = 12  # heights of a phone's screen after which nobody scrolls on


def drawn(page: Page) -> int:
    """The number of the lane that the phone shows."""
    return page.evaluate("decodingExplorer.app.phoneLane") + 1


def covered(page: Page, one: Locator) -> bool:
    """Whether something lies over the middle of what is on the screen, or it is not on it."""
    return one.evaluate(
        """(one) => { const box = one.getBoundingClientRect();
        const there = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return !there || !(one.contains(there) || there.contains(one)); }"""
    )


@task("V1", "find out what this is")
def what_is_this(guest: Guest) -> Findings:
    page = guest.opens(first=True)
    status = page.locator(".status-text")
    expect(status).to_contain_text("guessed", timeout=40_000)
    page.wait_for_timeout(1200)
    name = page.get_by_role("heading", name="Decoding Explorer", exact=True)
    about = page.locator(".about-page")
    yield about.is_visible(), f"“{about.inner_text()[:60]} …”"
    yield (
        page.evaluate("scrollY") == 0 and not covered(page, name),
        f"scrolled by {page.evaluate('scrollY')} px",
    )
    chip = lane(page, 2).locator(".chips-row .is-rejected").last
    yield not covered(page, chip), f"the token that it speaks of is on the screen: {chip.inner_text()}"
    yield "Point at" not in status.inner_text(), f"“{status.inner_text()[-60:]}” is meant for a finger"


@task("V2", "run it")
def run_it(guest: Guest) -> Findings:
    page = guest.opens()
    page.get_by_role("button", name="Run", exact=True).tap()
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.app.moments.result")
    yield page.evaluate("decodingExplorer.lanes.every((one) => one.count > 0)"), moment(page)[:90]
    yield sideways(page) <= 0, "no sideways scroll"


@task("V3", "drag the slider")
def drag(guest: Guest) -> Findings:
    page = guest.opens()
    box = page.get_by_role("slider", name="Step position").bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    at = page.evaluate("decodingExplorer.app.playback.position")
    yield 3 < at < 20, f"a touch at a quarter of the slider shows step {at} of 40"
    yield box["height"] >= 43, f"the slider is {box['height']:.0f} px high"


@task("V4", "touch a token")
def touch(guest: Guest) -> Findings:
    page = guest.opens()
    chips = lane(page, drawn(page)).locator(".chips-row .dp-chip:visible")
    sizes = chips.evaluate_all(
        "all => all.map((c) => c.getBoundingClientRect()).map((b) => Math.min(b.width, b.height))"
    )
    chip = chips.last
    chip.tap()
    expect(inspector(page)).to_be_visible()
    page.wait_for_timeout(700)
    yield (
        not covered(page, chip),
        f"its sheet says “{inspector(page).get_by_role('heading', level=2).inner_text()}”",
    )
    yield min(sizes) >= 43.5, f"chips are {min(sizes):.0f} px"


@task("V5", "type a prompt of one's own")
def own_prompt(guest: Guest) -> Findings:
    page = guest.opens()
    page.get_by_role("textbox", name="Prompt").fill("My dog likes")
    run(page)
    text = page.evaluate("decodingExplorer.lanes[1].chips.marksAt().slice(0, 12).map((m) => m.text).join('')")
    yield text.startswith("My␣dog␣likes"), f"“{text.replace('␣', ' ')} …”"


@task("V6", "try another strategy")
def other_strategy(guest: Guest) -> Findings:
    page = guest.opens()
    number = drawn(page)
    picker = lane(page, number).get_by_label("Strategy")
    groups = picker.locator("optgroup").evaluate_all("all => all.map((one) => one.label)")
    picker.select_option(label="Sampling")
    run(page)
    named = page.get_by_role("navigation", name="Lanes").get_by_role("button").nth(number - 1).inner_text()
    yield named == f"{number} Sampling", f"the button of the lane says “{named}”"
    yield (
        groups[0] == "Start here" and len(groups) > 5,
        f"a list of {len(groups)} groups, “{groups[0]}” first",
    )


@task("V7", "change the temperature")
def temperature(guest: Guest) -> Findings:
    page = guest.opens()
    number = drawn(page)
    lane(page, number).get_by_label("Strategy").select_option(label="Sampling")
    one = lane(page, number)
    one.get_by_role("button", name="Parameters", exact=True).tap()
    one.get_by_label("temperature", exact=True).fill("1.7")
    run(page)
    line = one.locator(".parameter-line").inner_text()
    yield "temperature 1.7" in line, f"the head of the lane says “{line}”"
    used = page.evaluate(f"decodingExplorer.app.lanes[{number - 1}].setup.parameters.temperature")
    yield used == 1.7, f"it was decoded with {used}"


@task("V8", "go from lane to lane")
def lane_to_lane(guest: Guest) -> Findings:
    page = guest.opens()
    buttons = page.get_by_role("navigation", name="Lanes").get_by_role("button")
    for number in (1, 2):
        buttons.nth(number - 1).tap()
        expect(lane(page, number)).to_be_visible()
    small = page.evaluate(SMALL)
    yield (
        lane(page, 2).is_visible() and not lane(page, 1).is_visible(),
        "the buttons of the lanes change the lane",
    )
    yield small == [], f"{len(small)} buttons are lower or narrower than 44 px"
    words = page.get_by_role("tablist", name="Views").locator("visible=true").get_by_role("tab")
    shut = words.evaluate_all(BEYOND)
    yield shut == [], f"views whose tab is cut: {shut}"


# Tabs that stick out of their row.
BEYOND = """(tabs) => {
  const room = tabs[0].parentElement.getBoundingClientRect();
  const out = (one) => one.getBoundingClientRect().right > room.right + 1;
  return tabs.filter(out).map((one) => one.textContent);
}"""


@task("V9", "find what the colours mean")
def legend(guest: Guest) -> Findings:
    page = guest.opens()
    run(page)
    one = lane(page, drawn(page))
    for view in one.get_by_role("tab").all()[:2]:
        view.tap()
        page.wait_for_timeout(500)
        button = one.get_by_role("button", name="Legend")
        button.scroll_into_view_if_needed()
        button.tap()
        words = one.locator(".dp-legend .dp-legend-item:visible").all_inner_texts()
        yield len(words) >= 3, f"{view.inner_text()}: {', '.join(word.strip() for word in words)}"
        costs, shown = one.locator(".costs").bounding_box(), one.locator(".dp-legend").bounding_box()
        yield shown["y"] + shown["height"] <= costs["y"] + 1, "it does not lie over the numbers"
        button.tap()


def overlap(one: dict, other: dict) -> bool:
    """Whether two boxes share pixels."""
    across = one["x"] < other["x"] + other["width"] and other["x"] < one["x"] + one["width"]
    return (
        across and one["y"] < other["y"] + other["height"] - 1 and other["y"] < one["y"] + one["height"] - 1
    )


@task("V10", "add a lane")
def add_lane(guest: Guest) -> Findings:
    page = guest.opens()
    add = page.get_by_role("navigation", name="Lanes").get_by_role("button", name="+ Lane")
    yield add.is_visible(), "+ Lane stands in the row of lanes"
    add.tap()
    yield (
        lane(page, 3).is_visible(),
        f"lane 3 is on the screen: {page.evaluate('decodingExplorer.app.lanes[2].title()')}",
    )
    gears = [one for one in page.get_by_text("⚙", exact=True).all() if one.is_visible()]
    names = [one.get_attribute("aria-label") for one in gears]
    yield len(set(names)) == len(names), f"gears on the screen: {names}"


@task("V11", "go through a lesson")
def phone_lesson(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Speculative acceptance and the residual")
    wide = []
    for _ in range(stops(guide)):
        answered(guide)
        wide.append(sideways(page))
        onward(guide)
    yield guide.get_by_text("That was the last stop.").is_visible(), f"{stops(guide)} stops"
    yield max(wide) <= 0, "no sideways scroll at any"
    own, picture = guide.bounding_box(), lane(page, 1).locator(".view").bounding_box()
    yield not overlap(own, picture), "the lesson does not lie over the picture"


def screens(page: Page) -> float:
    """The height of the page, in screens."""
    return page.evaluate("document.documentElement.scrollHeight / innerHeight")


@task("V12", "look for a method")
def find_method(guest: Guest) -> Findings:
    page = guest.opens()
    panel = tab(page, "Methods")
    expect(panel.locator("#methods-count")).to_contain_text("methods")
    whole = screens(page)
    panel.get_by_role("textbox", name="Search methods and papers").fill("Medusa")
    card = panel.get_by_role("article", name="Medusa", exact=True)
    expect(card).to_be_visible()
    expect(panel.locator("#methods-count")).not_to_have_class(re.compile("at-work"))
    page.wait_for_timeout(300)
    yield card.is_visible(), f"“Medusa” leaves {screens(page):.0f} screens"
    yield whole <= SCREENS, f"without a search the tab has {whole:.0f} screens"
    yield sideways(page) <= 0, "no sideways scroll"


@task("V13", "read what was found out")
def experiments(guest: Guest) -> Findings:
    page = guest.opens()
    panel = tab(page, "Experiments")
    links = panel.locator("#experiment-catalogue").get_by_role("link")
    expect(links.first).to_be_visible()
    whole, words = screens(page), links.first.inner_text()
    links.first.tap()
    answer = panel.get_by_role("grid").or_(panel.locator(".js-plotly-plot .main-svg")).first
    expect(answer).to_be_visible()
    yield True, f"“{' '.join(words.split())[:90]} …” opens with its numbers"
    yield whole <= SCREENS, f"the catalogue has {whole:.0f} screens"
    yield sideways(page) <= 0, "no sideways scroll"


@task("V14", "send it to a friend")
def share(guest: Guest) -> Findings:
    page = guest.opens(permissions=["clipboard-read", "clipboard-write"])
    named = "document.querySelector('meta[property=\"og:{}\"]')?.content"
    title, image = (page.evaluate(named.format(name)) for name in ("title", "image"))
    panel = tab(page, "Traces")
    panel.get_by_role("button", name="Copy link").tap()
    code = panel.locator("#traces-qr svg.segno")
    expect(code).to_be_visible()
    yield bool(title and image), f"og: “{title}”, {image}"
    answer = page.request.get(image if image.startswith("http") else guest.address + image.lstrip("/"))
    yield answer.ok, f"the picture answers {answer.status}"
    yield code.bounding_box()["width"] >= 100, f"a QR code {code.bounding_box()['width']:.0f} px wide"


@task("V15", "see it in the dark")
def dark_phone(guest: Guest) -> Findings:
    page = guest.opens(color_scheme="dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    yield (
        max(int(one) for one in re.findall(r"\d+", ground)[:3]) < 60,
        f"as the phone is dark, the ground is {ground}",
    )
    press(page, "Switch between light and dark")
    lighter = page.evaluate("getComputedStyle(document.body).backgroundColor")
    yield min(int(one) for one in re.findall(r"\d+", lighter)[:3]) > 200, f"a touch makes it {lighter}"
    press(page, "Switch between light and dark")


@task("V16", "take an example")
def example(guest: Guest) -> Findings:
    page = guest.opens()
    picker = page.get_by_label("Example prompts")
    picker.select_option(label="Three temperatures")
    page.wait_for_function("decodingExplorer.state === 'done'")
    status = page.locator(".bar.status")
    yield page.evaluate("decodingExplorer.lanes.every((one) => one.count > 0)"), "it has run at once"
    yield len(status.inner_text()) > 40, f"“{' '.join(status.inner_text().split())[:140]}”"
    yield sideways(page) <= 0, "no sideways scroll"
