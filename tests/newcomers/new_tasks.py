"""The twenty tasks of the second round, each by the person who was given it."""

import json
import re

from playwright.sync_api import Page, expect

from tests.browser.test_models import name_model, panel
from tests.browser.test_page import press, seek
from tests.browser.test_traces import downloaded
from tests.newcomers.guest import (
    WRITTEN,
    Guest,
    alert,
    cut,
    decode,
    filled,
    inspector,
    lane,
    lanes,
    menu,
    moment,
    parameter,
    run,
    sideways,
    tab,
    view,
)
from tests.newcomers.phone import drawn
from tests.newcomers.researcher import (
    MODELS,
    column,
    long_run,
    long_speculative_run,
    press_models,
    rejections,
    sort_by,
)
from tests.newcomers.tasks import Findings, task
from tests.newcomers.teacher import answered, figure_for_print, from_disk, lesson, onward, stops


@task("N1", "show what temperature does to one prompt, without help", "T")
def temperature(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Sampling")
    decode(page, tokens=24)
    lane(page, 1).locator(".chips-row .dp-chip").nth(-10).click()
    card = inspector(page)
    slider = card.get_by_role("slider", name="temperature", exact=True)
    slider.fill("2")
    here = card.locator(".what-if-here .number")
    expect(here.first).to_be_visible()
    hot = here.first.inner_text()
    slider.fill("0.5")
    page.wait_for_timeout(500)
    cold, said = (
        here.first.inner_text(),
        card.locator(".what-if [role=status], [role=status]").last.inner_text(),
    )
    yield hot != cold, f"the bars move at once: the first token has {hot} at 2 and {cold} at 0.5"
    yield len(said) > 20, f"“{' '.join(said.split())[:150]}”"
    run_new = card.get_by_role("button", name="Run in a new lane")
    yield run_new.is_enabled(), "Run in a new lane goes on from there"
    page.keyboard.press("Escape")
    yield lane(page, 1).get_by_role("tab", name="Sampler").is_visible(), "the tab Sampler stands in the lane"


@task("N2", "find the best of three strategies in one minute, and why", "T")
def best_of_three(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Greedy", "Beam search", "Sampling")
    decode(page)
    result = moment(page)
    yield "likeliest" in result, f"“{result}”"
    page.locator("#explorer-compare").scroll_into_view_if_needed()
    repeated = page.locator("#explorer-compared .result")
    expect(repeated).to_be_visible()
    yield "likeliest" in repeated.inner_text(), "the sentence stands on top of Compare too"
    shortened = cut(page, ".bar.status .moment")
    yield shortened == [], f"cut in the status line: {shortened}"


@task("N3", "find the moment where beam search goes back", "T")
def goes_back(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Beam search")
    decode(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    said: list[str] = []
    while len(said) < 30 and not (said and "takes the lead" in said[-1]):
        page.keyboard.press("n")
        page.wait_for_timeout(150)
        said.append(moment(page))
    yield "leaves" in said[-1], f"after {len(said)} times N: “{said[-1]}”"
    page.wait_for_timeout(400)
    kept = page.evaluate(
        "decodingExplorer.app.lanes[0].scene.marksOf(decodingExplorer.app.lanes[0].scene.kept()).length"
    )
    yield kept > 0, f"{kept} mark(s) outlined in the tree"
    ticks = page.locator(".moments .is-lead-change").count()
    yield ticks > 0, f"{ticks} ticks of lead changes on the slider"


@task("N4", "find the five worst rejections and why", "R")
def five_worst(guest: Guest) -> Findings:
    page = long_speculative_run(guest)
    rows = rejections(page)
    sort_by(page, "overconfidence: q − p")
    page.wait_for_timeout(1500)
    card, told = page.locator("#rejection-card"), []
    for number in range(5):
        rows.nth(number).click()
        expect(card.locator(".title")).to_contain_text(column(page, "Token")[number])
        told.append(f"{column(page, 'Token')[number]}: {column(page, 'Cause')[number]}")
    yield len(told) == 5, "; ".join(told)
    table = page.locator("#rejected-tokens").bounding_box()
    headers = page.locator("#rejected-tokens [role=columnheader]")
    inside = [
        one.inner_text().strip()
        for one in headers.all()
        if one.bounding_box()["x"] + one.bounding_box()["width"] <= table["x"] + table["width"] + 1
    ]
    yield "Cause" in inside, f"{len(inside)} of {headers.count()} columns in sight, Cause among them"
    beside = card.bounding_box()
    yield beside["x"] >= table["x"] + table["width"] - 1, "the test of a row stands beside the table"


@task("N5", "make a figure for a paper", "R")
def figure(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page)
    menu(page, 2, "Figure for print …")
    _, svg = downloaded(page, lambda: page.get_by_role("menuitem", name=re.compile("^Full width")).click())
    (guest.folder / "figure.svg").write_bytes(svg)
    yield from figure_for_print(svg)


@task("N6", "send a colleague a link, who opens it in a fresh browser", "R")
def link(guest: Guest) -> Findings:
    page = guest.opens(permissions=["clipboard-read", "clipboard-write"])
    lanes(page, "Greedy", "Jacobi")
    found = tab(page, "Traces")
    found.get_by_role("button", name="Copy link").click()
    said = found.get_by_text("It opens on this computer only")
    expect(said).to_be_visible()
    copied = found.get_by_label("Link").input_value()
    context = guest.browser.new_context(viewport={"width": 1400, "height": 900})
    guest.contexts.append(context)
    other = guest.page = context.new_page()
    other.goto(copied)
    if guest.token:
        field = other.get_by_role("textbox", name="Token")
        yield field.is_visible(), f"“{other.get_by_role('heading').inner_text()}”: a page asks for it"
        field.fill(guest.token.partition("=")[2])
        other.keyboard.press("Enter")
    expect(other.get_by_role("button", name="Run this set-up")).to_be_visible()
    titles = other.evaluate("decodingExplorer.app.lanes.map((one) => one.title())")
    yield titles == ["Greedy", "Jacobi"], f"then the set-up is there: {titles}"
    yield ("token" in said.inner_text()) == bool(guest.token), f"Copy link said “{said.inner_text()}”"
    other.get_by_role("button", name="Run this set-up").click()
    other.wait_for_function("decodingExplorer.state === 'done'")
    yield True, "it runs"


@task("N7", "open a saved page from disk, offline", "T")
def saved_page(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Beam search", "Speculative decoding", "Sampling")
    decode(page, tokens=24)
    saved = from_disk(guest, *downloaded(page, lambda: menu(page, 2, "Save page")))
    tabs = saved.get_by_role("tablist", name="Views").get_by_role("tab").all_inner_texts()
    yield len(tabs) > 2, f"the saved lane has the views {', '.join(tabs)}"
    lane(saved, 1).locator(".chips-row .dp-chip").nth(-4).click()
    yield inspector(saved).is_visible(), "a token's card opens"
    page.bring_to_front()


@task("N8", "open a trace file", "R")
def trace_file(guest: Guest) -> Findings:
    page = guest.opens()
    decode(page, tokens=24)
    name, data = downloaded(page, lambda: menu(page, 2, "Save trace"))
    slots = slots_of(page, 2)
    parameter(page, 2, "temperature", "-3")
    press(page, "Run")
    expect(lane(page, 2).locator(".hint")).to_contain_text("temperature")
    found = tab(page, "Traces")
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    found.get_by_test_id("Open a file-upload-button").set_input_files(file)
    expect(page.locator(".status-text")).to_contain_text("Opened")
    yield page.locator(".lane").count() == 1, f"{page.locator('.status-text').inner_text()[:80]}"
    yield not alert(page).is_visible(), "no error of the run before stands above it"
    yield slots_of(page, 1) == slots, f"KV slots: {slots} before, {slots_of(page, 1)} after"


def slots_of(page: Page, number: int) -> str:
    """The KV slots that a lane names behind *more*."""
    one = lane(page, number)
    more = one.get_by_role("button", name="more")
    if more.count() and more.get_attribute("aria-expanded") != "true":
        more.click()
    found = re.search(r"([\d,]+|—)\s*KV slots", " ".join(one.locator(".costs").inner_text().split()))
    return found[1] if found else "not named"


@task("N9", "measure two drafts on ten prompts", "R")
def two_drafts(guest: Guest) -> Findings:
    page = guest.opens()
    page.set_default_timeout(180_000)
    found = tab(page, "Microscope")
    found.get_by_role("navigation", name="Sections of this tab").get_by_role(
        "button", name="Many prompts"
    ).click()
    found.get_by_role("combobox", name="Second drafter").click()
    page.get_by_role("option", name="llama-tiny-draft", exact=True).click()
    found.get_by_role("button", name="Measure acceptance").click()
    says = found.locator("#acceptance-says")
    expect(says).to_contain_text("texts", timeout=60_000)
    progress = says.inner_text().strip().splitlines()[0]
    save = found.get_by_role("button", name="Save report (HTML)")
    expect(save).to_be_visible(timeout=180_000)
    said = " ".join(says.inner_text().split())
    yield "tokens per round" in said, f"while it runs: “{progress[:60]}”; then “{said[:160]}”"
    _, report = downloaded(page, save.click)
    yield b"<html" in report[:2000], f"a report of {len(report) / 1e6:.1f} MB"


@task("N10", "load another model by its folder", "R")
def by_folder(guest: Guest) -> Findings:
    page = guest.opens()
    found = panel(page)
    name_model(found, "Target model", str(guest.folder / "nothing"))
    said = found.locator("#explorer-models-status")
    expect(said).to_contain_text("nothing")
    yield (
        "Traceback" not in said.inner_text(),
        f"a folder that is not there: “{' '.join(said.inner_text().split())[:110]}”",
    )
    name_model(found, "Target model", str(MODELS / "llama-tiny"))
    found.get_by_role("button", name="Load", exact=True).click()
    expect(found.get_by_label("Target model")).to_be_hidden()
    lanes(page, "Medusa")
    decode(page, tokens=16)
    rounds = page.evaluate("decodingExplorer.lanes[0].count")
    yield (
        0 < rounds < 16,
        f"llama-tiny by its folder has its heads: Medusa writes 16 tokens in {rounds} rounds",
    )
    press_models(page, "llama-tiny", "llama-tiny-draft-distilled")


@task("N11", "find out what “KV slots”, “Σ log p” and “drafted tokens used” mean", "V")
def words_of_the_strip(guest: Guest) -> Findings:
    page = guest.opens()
    run(page)
    page.get_by_role("navigation", name="Lanes").get_by_role("button", name="2 Speculative decoding").tap()
    one = lane(page, drawn(page))
    one.get_by_role("button", name="more", exact=True).or_(
        one.get_by_role("button", name="All costs of this lane")
    ).first.tap()
    told = {}
    for word in ("KV slots", "Σ log p", "drafted tokens used"):
        term = one.locator(".costs dt").get_by_role("button", name=re.compile(rf"^{word}"))
        if term.count() == 0:
            told[word] = ""
            continue
        term.first.scroll_into_view_if_needed()
        term.first.tap()
        told[word] = one.locator(".cost-says").inner_text()
    yield all(told.values()), "; ".join(f"{word}: “{says[:60]}”" for word, says in told.items())
    line = one.locator(".costs dt button").first.evaluate(UNDERLINE)
    yield "underline" in line or "dotted" in line, "a dotted line says that a word can be touched"
    values = one.locator(".costs dd").all_inner_texts()
    yield "—" not in values, f"{len(values)} numbers, none is a dash"


UNDERLINE = (
    """(one) => [getComputedStyle(one).textDecorationLine, getComputedStyle(one).borderBottomStyle].join()"""
)


@task("N12", "do it by keyboard alone", "T")
def keyboard(guest: Guest) -> Findings:
    page = guest.opens()
    page.evaluate("document.activeElement.blur()")
    stops_, rings, reached = 0, 0, False
    for _ in range(80):
        page.keyboard.press("Tab")
        place = page.evaluate(FOCUS)
        stops_ += 1
        rings += place["ring"]
        if place["chips"]:
            reached = True
            break
    yield reached, f"{stops_} stops to the text of the first lane"
    yield rings == stops_, f"{rings} of them with a ring"
    for key in ("Enter", "ArrowLeft", "Enter"):  # to the newest token, one back, its card
        page.keyboard.press(key)
    expect(inspector(page)).to_be_visible()
    yield True, "Enter opens a token's card"
    page.keyboard.press("Escape")
    yield not inspector(page).is_visible(), "Escape closes it"
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    skipped = page.evaluate("document.activeElement.closest('.lanes, #explorer-main, main') !== null")
    yield skipped, "the first stop skips to the lanes"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    yield page.get_by_role("dialog").first.is_visible(), "? lists the keys"
    page.keyboard.press("Escape")


FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const label = one.closest("label"), around = label ? getComputedStyle(label) : style;
  const outline = (look) => look.outlineStyle !== "none" && parseFloat(look.outlineWidth) > 0;
  const ring = [style, around].some((look) => outline(look) || look.boxShadow !== "none");
  return { ring: Number(ring), chips: Boolean(one.closest(".chips-row")) };
}"""


@task("N13", "force JSON by a schema", "T")
def json_schema(guest: Guest) -> Findings:
    page = guest.opens()
    page.get_by_label("Example prompts").select_option(label="A record as JSON")
    page.wait_for_function("decodingExplorer.state === 'done'")
    texts = page.evaluate(TEXTS)
    yield any(is_json(text) for text in texts), f"one lane writes JSON: {[text[:50] for text in texts]}"
    number = [is_json(text) for text in texts].index(True) + 1
    one = lane(page, number)
    one.get_by_role("button", name="Parameters", exact=True).click()
    group = (
        one.get_by_role("group").filter(has=page.locator("summary", has_text=re.compile("^Constraint"))).first
    )
    if not group.locator("textarea").first.is_visible():
        group.locator("summary").first.click()
    group.locator("textarea").first.fill('{"type": "object", ')
    press(page, "Run")
    page.wait_for_timeout(1500)
    said = one.locator(".hint").inner_text() or alert(page).inner_text()
    yield "JSON" in said and "column" in said, f"a broken one: “{said[:140]}”"


# What each lane has written.
TEXTS = r"""decodingExplorer.app.lanes.map((lane) => lane.chips.marksAt()
  .filter(({ state }) => state !== "prompt").map(({ text }) => text).join("")
  .replaceAll("␣", " ").replaceAll("↵", "\n"))"""


def is_json(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text.partition("<|")[0]), dict)  # up to the token that ends the text
    except ValueError:
        return False


@task("N14", "watch a diffusion model fill its canvas", "R")
def diffusion(guest: Guest) -> Findings:
    page = guest.opens()
    picker = page.get_by_label("Example prompts")
    picker.select_option(
        label=picker.locator("optgroup[label='Text out of order'] option").first.inner_text()
    )
    page.wait_for_function("decodingExplorer.state === 'done'")
    for _ in range(2):
        lane(page, 2).get_by_role("button", name="Remove lane").click()
    canvas = [name for name in lane(page, 1).get_by_role("tab").all_inner_texts() if "anvas" in name]
    view(page, 1, canvas[0])
    page.wait_for_timeout(800)
    box, frame = lane(page, 1).locator(".dp-frame").bounding_box(), filled(page, 1)
    yield (
        min(frame) > 0.5,
        f"{canvas[0]} fills {frame[0]:.0%} x {frame[1]:.0%} of {box['width']:.0f} x {box['height']:.0f} px",
    )


@task("N15", "find a paper by its title and run it", "R")
def paper_by_title(guest: Guest) -> Findings:
    page = guest.opens()
    found = tab(page, "Methods")
    search = found.get_by_role("textbox", name="Search methods and papers")
    titles = {
        "Medusa": "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
        "Speculative decoding": "Fast Inference from Transformers via Speculative Decoding",
    }
    first = {}
    for name, title in titles.items():
        search.fill(title)
        page.wait_for_timeout(400)
        expect(found.locator("#methods-count")).not_to_have_class(re.compile("at-work"))
        page.wait_for_timeout(300)
        first[name] = found.locator(".card:visible h3").first.inner_text()
    yield all(name == got for name, got in first.items()), f"first hits: {first}"
    search.fill("Medusa")
    card = found.get_by_role("article", name="Medusa", exact=True)
    expect(card).to_be_visible()
    before = page.locator(".lane").count()
    card.get_by_role("button", name="Open Medusa in a lane", exact=True).click()
    new = lane(page, before + 1)
    expect(new).to_be_visible()
    page.wait_for_timeout(1500)
    count = page.evaluate("decodingExplorer.lanes.at(-1).count")
    yield count > 0 or "Run" in new.inner_text(), f"its lane {'has run' if count else 'says what to press'}"


@task("N16", "go through one lesson to its end", "T")
def one_lesson(guest: Guest) -> Findings:
    page = guest.opens()
    guide = lesson(page, "Greedy against sampling")
    judged = []
    for _ in range(stops(guide)):
        judged.append(answered(guide)[1] is not None)
        onward(guide)
    yield (
        guide.get_by_text("That was the last stop.").is_visible(),
        f"{len(judged)} stops, {sum(judged)} answers judged",
    )
    yield guide.get_by_role("button", name="Next lesson").is_visible(), "it names the next lesson"


@task("N17", "print the page", "T")
def printed(guest: Guest) -> Findings:
    page = guest.opens()
    lanes(page, "Beam search")
    decode(page)
    seek(page, 13)
    page.wait_for_timeout(500)
    costs = " ".join(lane(page, 1).locator(".costs").inner_text().split())
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    tools = [
        name
        for name in ("Run", "+ Lane", "Help")
        if page.get_by_role("button", name=name, exact=True).count()
    ]
    yield tools == [], "no tool bars on paper"
    forwards = re.search(r"([\d.]+) tokens / target forward", costs)
    yield (
        bool(forwards) and float(forwards[1]) >= 0.9 and "best so far" in costs,
        f"costs at step 13: “{costs}”",
    )
    (guest.folder / "page.pdf").write_bytes(page.pdf())


@task("N18", "read it at 150 % and on 320 px", "V")
def small_screens(guest: Guest) -> Findings:
    wide = {}
    for width in (933, 320):
        page = guest.opens((width, 640), has_touch=width < 400, is_mobile=width < 400)
        run(page)
        wide[width] = sideways(page)
        if width == 320:
            page.get_by_role("navigation", name="Lanes").get_by_role("button").first.tap()
            page.wait_for_timeout(600)
    yield max(wide.values()) <= 0, f"pixels of sideways scroll: {wide}"
    columns = page.evaluate("decodingExplorer.app.lanes[0].scene.view.columns")
    fold = page.evaluate("decodingExplorer.app.lanes[0].scene.view.fold")
    yield (
        columns >= 4,
        f"the beam tree shows {columns:.0f} columns at 320 px, {'with' if fold else 'without'} a fold",
    )


@task("N19", "give it a prompt of 200 tokens and four lanes of 512", "R")
def long_prompt(guest: Guest) -> Findings:
    page = guest.opens()
    story = "Once upon a time there was a little dog who lived in a red house near the sea. "
    yield from long_run(page, story * 9, 512)
    prompt = page.get_by_role("textbox", name="Prompt")
    prompt.focus()
    page.wait_for_timeout(300)
    shown, whole = prompt.evaluate(LINES)
    yield shown >= min(3, whole), f"the prompt shows {shown} of its {whole} lines when it is written in"


# Lines of a field that are seen, and all of them.
LINES = """(one) => [one.clientHeight, one.scrollHeight]
  .map((high) => Math.round(high / parseFloat(getComputedStyle(one).lineHeight)))"""


NONSENSE = {"temperature": "-3", "num_assistant_tokens": "0", "top_k": "-1", "top_p": "7", "seed": "x"}


@task("N20", "write nonsense into every field", "R")
def nonsense(guest: Guest) -> Findings:
    page = guest.opens()
    said = {}
    field = page.get_by_label("max_new_tokens")
    for value in ("-5", "0", "99999999", ""):
        field.fill(value)
        said[f"tokens {value or 'empty'}"] = (
            alert(page).inner_text()
            if page.get_by_role("button", name="Run", exact=True).is_disabled()
            else ""
        )
    field.fill("8")
    for prompt in ("", "   "):
        page.get_by_role("textbox", name="Prompt").fill(prompt)
        press(page, "Run")
        page.wait_for_timeout(700)
        said[f"prompt {prompt!r}"] = (
            alert(page).inner_text() if alert(page).is_visible() else "runs" if prompt else ""
        )
    page.get_by_role("textbox", name="Prompt").fill("Once")
    for name, value in NONSENSE.items():
        one = lane(page, 2)
        if one.get_by_role("button", name="Parameters", exact=True).get_attribute("aria-expanded") != "true":
            one.get_by_role("button", name="Parameters", exact=True).click()
        number = one.get_by_label(name, exact=True)
        usual = number.input_value()
        number.click()
        number.press("Control+a")
        number.press_sequentially(value)
        press(page, "Run")
        page.wait_for_timeout(900)
        page.wait_for_function("decodingExplorer.state !== 'running'")
        said[f"{name} {value}"] = (
            one.locator(".hint:visible").inner_text() if one.locator(".hint:visible").count() else ""
        )
        if one.get_by_role("button", name="Parameters", exact=True).get_attribute("aria-expanded") != "true":
            one.get_by_role("button", name="Parameters", exact=True).click()
        number.fill(usual)
        page.keyboard.press("Escape")
    silent = [what for what, words in said.items() if not words]
    yield silent == [], f"without a sentence: {silent}"
    long = [
        words for words in said.values() if len(words) > 200 or "\n" in words.strip() or "Traceback" in words
    ]
    yield long == [], "; ".join(f"{what}: “{words[:70]}”" for what, words in said.items())
    decode(page, "🦊 שלום <b>hi</b> &amp;", 8)
    yield (
        page.evaluate(WRITTEN)[0] > 0 and page.locator(".lane b").count() == 0,
        "emoji, Hebrew and markup are text",
    )
