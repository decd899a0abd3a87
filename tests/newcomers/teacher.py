"""What a teacher asks of the page: on a screen of 1400 x 900, light."""

import re
import struct
from xml.etree import ElementTree

from playwright.sync_api import Locator, Page, expect

from tests.browser.test_page import press, seek
from tests.browser.test_traces import downloaded
from tests.newcomers.guest import (
    WRITTEN,
    Guest,
    cut,
    decode,
    filled,
    inspector,
    lane,
    lanes,
    menu,
    parameter,
    sideways,
    tab,
)
from tests.newcomers.tasks import Findings, task


@task("T1", "show three strategies side by side")
def three_strategies(guest: Guest) -> Findings:
    page = guest.opens()
    groups = lane(page, 1).get_by_label("Strategy").locator("optgroup")
    press(page, "+ Lane")
    titles = page.evaluate("decodingExplorer.app.lanes.map((lane) => lane.title())")
    decode(page)
    tokens = page.evaluate(WRITTEN)
    yield len(set(titles)) == 3 and min(tokens) == 40, f"{', '.join(titles)} wrote {tokens} tokens"
    first = groups.first.get_attribute("label")
    yield first == "Start here", f"the list of strategies begins with “{first}”"
    boxes = [lane(page, number).bounding_box() for number in (1, 2, 3)]
    area = sum(box["width"] * box["height"] for box in boxes) / (
        1400 * max(b["y"] + b["height"] for b in boxes)
    )
    yield area > 0.75, f"the three lanes take {area:.0%} of what they stand in"


@task("T2", "read the texts and find where they part")
def read_texts(guest: Guest) -> Findings:
    page = guest.opens(permissions=["clipboard-read", "clipboard-write"])
    decode(page)
    page.locator("#explorer-compare").scroll_into_view_if_needed()
    texts = page.get_by_role("region", name=re.compile("^Text of lane"))
    expect(texts).to_have_count(2)
    first = texts.nth(1).locator("mark").first
    sign = first.evaluate("one => getComputedStyle(one, '::before').content")
    yield sign == '"≠"', f"Compare marks “{first.inner_text().strip()}” with ≠ as the first difference"
    chip = lane(page, 2).locator(".chips-row .dp-parted").first.get_attribute("title")
    badges, compare = page.locator(".badge.relation:visible"), page.locator("#explorer-compare").inner_text()
    place = re.search(r"[Tt]oken (\d+)", chip)[1]
    agree = f"at token {place}" in compare and f"at token {place}" in badges.first.inner_text()
    yield agree, f"chip, badge and Compare say token {place}"
    shortened = cut(page, ".badge")
    yield shortened == [], f"badges cut: {shortened}"
    texts.nth(1).get_by_role("button", name="Copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    yield not set("␣↵≠") & set(copied) and len(copied) > 50, f"Copy gives prose: “{copied[:30]} …”"


def lesson(page: Page, title: str) -> Locator:
    """Starts a lesson from the list; its guide, when it can go on."""
    start = tab(page, "Lessons").get_by_role(
        "button", name=re.compile(rf"^Start lesson \d+: {re.escape(title)}$")
    )
    start.click()
    guide = page.get_by_role("region", name="Lesson", exact=True)
    expect(guide.get_by_role("button", name="Start", exact=True)).to_be_enabled()
    guide.get_by_role("button", name="Start", exact=True).click()
    return guide


def onward(guide: Locator) -> None:
    """To the next stop."""
    guide.locator(".guide-foot .primary").click()
    guide.page.wait_for_timeout(400)


def stops(guide: Locator) -> int:
    """How many stops the lesson on show has."""
    return int(guide.get_by_role("progressbar").get_attribute("max"))


def answered(guide: Locator) -> tuple[str, bool | None]:
    """Chooses the first answer; what stands there then, and whether it was right, None without a choice."""
    choices = guide.locator(".guide-body [data-answer]:visible")
    if not choices.count():
        return "", None
    choices.first.click()
    told = guide.locator(".guide-body .answer")
    expect(told).to_be_visible()
    said = told.inner_text()
    return said, said.startswith("Right") if said.startswith(("Right", "Not quite")) else None


def outlined(page: Page, number: int) -> list[str]:
    """The tokens of a lane that are outlined in what is on show, chips or picture."""
    return page.evaluate(
        """lane => { const { chips, text } = decodingExplorer.app.lanes[lane];
        return [chips, text].filter((one) => one.root.offsetParent).map((one) =>
          [...one.root.querySelectorAll(".dp-chip.dp-outlined")].map((chip) => chip.textContent)); }""",
        number - 1,
    )


@task("T3", "find out why beam search repeats itself, in its lesson")
def beam_repeats(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Why beam search repeats itself")
    said = guide.locator(".guide-body").inner_text()
    phrase = re.search(r"wrote “(.+?)” from token", said)[1]
    page.wait_for_timeout(600)
    words = "".join(outlined(page, 1)[-1]).replace("␣", " ").replace("↵", "\n")
    twice = words.count(phrase.strip())
    yield twice == 2, f"“{phrase}” is outlined {twice} times in the text"
    said, right = answered(guide)
    yield right is not None, f"an answer is judged: “{said.splitlines()[0][:60]}”"


@task("T4", "explain what the residual is")
def residual(guest: Guest) -> Findings:
    page = guest.opens()
    parameter(page, 2, "temperature", "1")
    decode(page)
    lane(page, 2).locator(".chips-row .is-rejected").last.click()
    card = inspector(page)
    expect(card).to_contain_text("rejected in step")
    said = card.inner_text()
    yield "residual: max(0, p − q)" in said, "the card of a rejected token shows the residual beside p and q"
    written = card.get_by_text(re.compile(r"written instead, p \.?\d")).first
    yield (
        written.count() == 1,
        f"and what was drawn from it: {written.inner_text() if written.count() else 'not said'}",
    )


@task("T5", "go through the lesson on speculative decoding")
def speculative_lesson(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Speculative acceptance and the residual")
    count, shares, judged = stops(guide), [], 0
    for _ in range(count):
        judged += answered(guide)[1] is not None
        if lane(page, 1).get_by_role("tab", name="One round").get_attribute("aria-selected") == "true":
            shares.append(filled(page, 1))
        onward(guide)
    yield guide.get_by_text("That was the last stop.").is_visible(), f"{count} stops, {judged} answers judged"
    widths = [wide for wide, _ in shares]
    yield min(widths) > 0.5, f"One round takes {min(widths):.0%} to {max(widths):.0%} of its width"


@task("T6", "show what temperature does, in its lesson")
def temperature_lesson(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Temperature and top-p")
    page.wait_for_function(f"({BARS})().length > 6")
    bars = page.evaluate(BARS)
    scales = [width / share for width, share, broken in bars if not broken and share >= 0.1]
    rests = [(share, broken) for _, share, broken in bars if share > 0.3]
    yield (
        max(scales) < 1.1 * min(scales),
        f"{len(scales)} bars are {min(scales) / 100:.2f} to {max(scales) / 100:.2f} px per %",
    )
    yield (
        len(rests) > 0,
        f"large rests: {', '.join(f'{s:.0%}' + (' (cut, marked //)' if c else '') for s, c in rests)}",
    )
    right = guide.locator(".guide-body").get_by_role("button", name=re.compile("temperature 1.5"))
    right.first.click()
    yield guide.get_by_text("Right.").is_visible(), "lane 3 is the flattest, says the lesson"


# Bars of the first column of all lanes: width in pixels, share that their card says, whether they are cut.
BARS = r"""() => decodingExplorer.app.lanes.flatMap(({ scene }) => {
  const { view } = scene;
  const listed = (panel) => /^(rows|few)/.test(panel) && view.panels[panel]; // few: of a low picture
  const rows = scene.drawn.filter(({ panel, kind }) => listed(panel) && kind === "cell");
  const first = Math.min(...rows.map((mark) => mark.x - mark.w / 2));
  return rows.filter((mark) => mark.x - mark.w / 2 < first + 1).map((mark) => {
    const says = (mark.hover || []).join(" "), number = says.match(/: (?:p )?(\.?\d[\d.]*)( %)?/);
    const share = number ? Number(number[1]) / (number[2] ? 100 : 1) : 0;
    return [view.px(mark.x + mark.w / 2) - view.px(mark.x - mark.w / 2), share, says.includes("bar is cut")];
  });
})"""


@task("T7", "go through all other lessons")
def other_lessons(guest: Guest) -> Findings:
    page = guest.opens()
    names = (
        tab(page, "Lessons")
        .get_by_role("button", name=re.compile("^Start lesson"))
        .evaluate_all("all => all.map((one) => one.getAttribute('aria-label'))")
    )
    ended, first_right, questions, by_chance, missing = 0, 0, 0, 0.0, []
    for name in names:
        guide = lesson(page, re.sub(r"^Start lesson \d+: ", "", name))
        for _ in range(stops(guide)):
            told = guide.locator(".guide-body").inner_text()
            if "does not happen in this run" in told or not told.strip():
                missing.append(name)
            choices = guide.locator(".guide-body [data-answer]:visible").count()
            right = answered(guide)[1]
            by_chance += 1 / choices if right is not None else 0
            questions += right is not None
            first_right += bool(right)
            onward(guide)
        ended += guide.get_by_text("That was the last stop.").is_visible()
        guide.get_by_role("button", name="Leave the lesson").click()
    yield ended == len(names), f"{ended} of {len(names)} lessons end"
    yield missing == [], f"{len(missing)} stops find nothing to show in the run"
    told = f"the first answer is right in {first_right} of {questions}, by chance in {by_chance:.0f}"
    yield abs(first_right - by_chance) < 2 * (questions / 4) ** 0.5, told


@task("T8", "look into a token during a lesson")
def inspect_in_a_lesson(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Speculative acceptance and the residual")
    guide.locator(".inspect button").first.click()
    expect(inspector(page)).to_be_visible()
    page.wait_for_timeout(500)
    parts = [guide, lane(page, 1), inspector(page)]
    boxes = sorted((part.bounding_box() for part in parts), key=lambda box: box["x"])
    apart = all(a["x"] + a["width"] <= b["x"] + 1 for a, b in zip(boxes, boxes[1:], strict=False))
    yield apart, "guide, lane and inspector stand side by side"
    yield sideways(page) <= 0, f"they are {', '.join(str(round(box['width'])) for box in boxes)} px wide"
    marked = page.evaluate(
        "decodingExplorer.app.lanes[0].scene.marksOf(decodingExplorer.app.lanes[0].scene.kept()).length"
    )
    yield marked > 0, f"{marked} mark(s) outlined in the picture"


@task("T9", "save a page and open it without a network")
def offline_page(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page, tokens=24)
    panel = tab(page, "Traces")
    name, data = downloaded(page, lambda: panel.get_by_role("button", name="Save", exact=True).click())
    saved = from_disk(guest, name, data)
    seek(saved, 5)
    yield saved.get_by_text("step 5 of").is_visible(), f"{name}, {len(data) / 1e6:.1f} MB, replays"
    lane(saved, 2).locator(".chips-row .dp-chip").last.click()
    yield inspector(saved).is_visible(), "a token's card opens there"


def from_disk(guest: Guest, name: str, data: bytes) -> Page:
    """A saved page, opened by a browser without network, whose errors are the guest's."""
    path = guest.folder / name
    path.write_bytes(data)
    context = guest.browser.new_context(viewport={"width": 1400, "height": 900}, offline=True)
    guest.contexts.append(context)
    page = context.new_page()
    page.on("pageerror", lambda error: guest.errors.append(str(error)))
    page.on("console", lambda said: said.type == "error" and guest.errors.append(said.text))
    page.goto(path.as_uri())
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    page.wait_for_function("decodingExplorer.lanes[0].scene.paintedStep >= 0")
    guest.page = page
    return page


@task("T10", "save pictures for a slide and a hand-out")
def pictures(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page)
    name, png = downloaded(page, lambda: menu(page, 2, "Slide (PNG, 16:9)"))
    wide, high = struct.unpack(">II", png[16:24])
    yield abs(wide / high - 16 / 9) < 0.02 and wide >= 1900, f"{name}: {wide} x {high} px"
    menu(page, 2, "Figure for print …")
    name, svg = downloaded(page, lambda: page.get_by_role("menuitem", name=re.compile("^One column")).click())
    yield from figure_for_print(svg)


def figure_for_print(svg: bytes) -> Findings:
    """What a paper needs of a figure."""
    root = ElementTree.fromstring(svg)
    width, box = root.get("width"), [float(one) for one in root.get("viewBox").split()]
    points = float(width.removesuffix("mm")) / 25.4 * 72 / box[2]  # of one unit
    sizes = [float(size) * points for size in re.findall(rb'font-size="([\d.]+)', svg)]
    yield width.endswith("mm"), f"a figure {width} wide"
    letters = b"<text" not in svg or b"@font-face" in svg
    yield letters, f"letters as {'paths' if b'<text' not in svg else 'text'}"
    if sizes:
        yield min(sizes) >= 7.9, f"the smallest type has {min(sizes):.1f} pt"
    yield bool(root[0].text), f"a caption of {len(root[0].text or '')} characters"


@task("T11", "send the set-up as a link to the class")
def link(guest: Guest) -> Findings:
    page = guest.opens(permissions=["clipboard-read", "clipboard-write"])
    lanes(page, "Greedy", "Sampling", "Beam search")
    page.get_by_role("textbox", name="Prompt").fill("The cat sat on")
    panel = tab(page, "Traces")
    panel.get_by_role("button", name="Copy link").click()
    says = panel.get_by_text("It opens on this computer only")
    expect(says).to_be_visible()
    copied = panel.get_by_label("Link").input_value()
    other = guest.opens()
    other.goto("about:blank")
    other.goto(copied)
    expect(other.get_by_role("button", name="Run this set-up")).to_be_visible()
    titles = other.evaluate("decodingExplorer.app.lanes.map((lane) => lane.title())")
    prompt = other.get_by_role("textbox", name="Prompt").input_value()
    yield (titles, prompt) == (["Greedy", "Sampling", "Beam search"], "The cat sat on"), f"{prompt}: {titles}"
    yield True, f"Copy link says “{says.inner_text()[:120]}”"
    yield "token" in panel.inner_text() if guest.token else True, "the token is spoken of, as the app has one"
    code = panel.locator("#traces-qr")
    yield "No other device can open this code" in code.inner_text(), "so does the QR code"
    counts = other.evaluate("decodingExplorer.lanes.map((lane) => lane.count)")
    yield counts == [0, 0, 0], "no run of another set-up is on the screen"


@task("T12", "see enough of it from the last row: 1920 px")
def wide_screen(guest: Guest) -> Findings:
    page = guest.opens((1920, 1080), first=True)
    page.wait_for_function(
        "document.querySelector('.status-text').textContent.includes('guessed')", timeout=40_000
    )
    page.wait_for_timeout(800)
    wide, high = filled(page, 2)
    yield wide > 0.6, f"the lane that the intro speaks of fills {wide:.0%} x {high:.0%} of its picture"
    words = page.evaluate(CUT_WORDS)
    yield words == [], f"words cut in the intro: {words[:4]}"
    decode(page)
    seen = page.evaluate("decodingExplorer.app.lanes.map(({ scene: { view } }) => [view.lo, view.columns])")
    yield all(lo <= 1 and columns >= 40 for lo, columns in seen), "a run of 40 is shown whole in both lanes"
    boxes = [filled(page, number) for number in (1, 2)]
    yield (
        min(wide for wide, _ in boxes) > 0.5,
        "it fills " + ", ".join(f"{w:.0%} x {h:.0%}" for w, h in boxes),
    )


CUT_WORDS = """[...document.querySelectorAll(".lane .dp-texts text")].map((text) => text.textContent)
  .filter((text) => /[^ ]…$/.test(text))"""


@task("T13", "show it in dark, and find it dark again")
def dark(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page, tokens=24)
    press(page, "Switch between light and dark")
    theme = "document.documentElement.dataset.theme"
    page.reload()
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark_ = max(int(one) for one in re.findall(r"\d+", ground)[:3]) < 60
    yield page.evaluate(theme) == "dark" and dark_, f"the ground is {ground}, also after a reload"
    faint = page.evaluate(CONTRASTS)
    yield min(faint)[0] >= 3, f"the faintest words have a contrast of {min(faint)[0]:.1f}: “{min(faint)[1]}”"


# Contrast and text of all words of the page against the ground of the page.
CONTRASTS = """() => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(getComputedStyle(document.body).backgroundColor);
  return [...document.querySelectorAll(".lane .parameter-line, .lane .costs *, .dp-chip, .bar *")]
    .filter((one) => one.checkVisibility() && !one.children.length && one.textContent.trim() && !one.disabled)
    .filter((one) => getComputedStyle(one).backgroundColor === "rgba(0, 0, 0, 0)")
    .filter((one) => !one.closest("button, label, select, option"))
    .map((one) => [light(getComputedStyle(one).color), one.textContent])
    .map(([own, text]) => [(Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05), text]);
}"""


@task("T14", "print a lane for the hand-out")
def printed(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": 760, "height": 1000})
    page.wait_for_timeout(500)
    buttons = page.get_by_role("button").evaluate_all(
        "all => all.filter((one) => one.checkVisibility()).length"
    )
    tools = [
        name
        for name in ("Run", "+ Lane", "Help")
        if page.get_by_role("button", name=name, exact=True).count()
    ]
    yield tools == [] and lane(page, 1).is_visible(), f"no tool bar, {buttons} buttons in all"
    edges = page.locator(".chips-row .dp-chip").evaluate_all(
        "all => all.map((c) => c.getBoundingClientRect().right)"
    )
    beyond = sum(edge > 760 for edge in edges)
    yield beyond == 0, f"{beyond} tokens stick out of the sheet"
    pages = page.pdf().count(b"/Type /Page\n") or None
    yield True, f"{pages} sheets" if pages else "a PDF"


@task("T15", "go on from another token and keep both")
def branch(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page)
    lane(page, 1).locator(".chips-row .dp-chip").nth(-8).click()
    expect(inspector(page)).to_be_visible()
    title = inspector(page).get_by_role("heading", level=2).inner_text()
    inspector(page).get_by_role("button", name=re.compile("^Branch here with")).nth(1).click()
    expect(lane(page, 3)).to_be_visible()
    page.wait_for_function("decodingExplorer.state === 'done' && decodingExplorer.lanes[2].count > 0")
    page.wait_for_timeout(800)
    head = lane(page, 3).locator(".parameter-line").inner_text()
    place = re.search(r"position (\d+)", title)[1]
    yield f"lane 1, token {place}" in head, f"“{title}”: its head says “{head}”"
    texts = cut(page, ".lane .badge, .lane .parameter-line")
    badges = [text for text in texts if "≠" in text or "✓" in text]
    yield badges == [], f"badges cut: {badges}"
    lo, columns = page.evaluate(
        "(({ lo, columns }) => [lo, columns])(decodingExplorer.app.lanes[2].scene.view)"
    )
    told = f"its picture shows tokens {lo:.0f} to {lo + columns - 1:.0f}"
    yield lo <= int(place) < lo + columns, told
    outside = page.evaluate(OUTSIDE)
    yield outside == [], f"buttons out of sight in the heads: {outside}"


OUTSIDE = """[...document.querySelectorAll(".lane-head button")].filter((one) => {
  const own = one.getBoundingClientRect(), head = one.closest(".lane").getBoundingClientRect();
  return one.checkVisibility() && own.right > head.right + 1;
}).map((one) => one.getAttribute("aria-label") || one.textContent)"""
