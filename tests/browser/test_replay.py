"""A saved page, opened from the disk by a browser without network: all of it works, it asks for nothing."""

import gzip
import json
from contextlib import contextmanager
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace.events import Commit
from explorer.catalog import recorded_runs
from explorer.export.comparison import charts
from explorer.export.replay_page import replay_html, show
from tests.browser.conftest import HOSTILE, SCRIPT, WAIT
from tests.browser.test_page import all_drawn
from tests.browser.window import resize
from tests.helpers.scripted_lane import ScriptedLane
from visualizers.analysis.comparison import compare
from visualizers.figures.theme import theme

SIZES = pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
MAX_BYTES = 5.5 * 10**6


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The stored run as a file."""
    path = tmp_path_factory.mktemp("saved") / "run.html"
    path.write_text(replay_html(recorded_runs.traces(), recorded_runs.setup()), "utf-8")
    return path


@contextmanager
def offline(chromium):
    """opened(path, width, height): a saved page in a browser without network; it may ask for nothing."""
    contexts, wrong = [], []

    def go(path, width: int = 1400, height: int = 900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        address = path.as_uri()
        local = (address, "data:", "blob:", "about:srcdoc")
        page.on("request", lambda request: request.url.startswith(local) or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def opened(chromium):
    """See `offline`."""
    with offline(chromium) as go:
        yield go


@pytest.fixture(scope="module")
def wide(chromium, saved):
    """The stored run in a wide page that the tests share which only look, or set up what they look at."""
    with offline(chromium) as go:
        page = go(saved)
        ready(page)
        yield page


def ready(page) -> None:
    page.wait_for_function("window.decodingExplorer && decodingExplorer.drawn")


def painted(page, lane: int) -> None:
    page.wait_for_function("n => decodingExplorer.lanes[n].scene.paintedStep >= 0", arg=lane)


@SIZES
def test_slider_playback_hover_and_inspector_work_from_the_disk(opened, saved, width, height):
    page = opened(saved, width, height)
    ready(page)
    painted(page, 0)
    expect(page.get_by_text("A saved run: replay it with the slider.")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_hidden()
    expect(page.get_by_text("step 40 of 40")).to_be_visible()

    page.get_by_role("slider", name="Step position").fill("5")
    page.wait_for_function("decodingExplorer.lanes[0].scene.paintedStep === 4")
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function("decodingExplorer.lanes[0].shown > 7")
    page.get_by_role("button", name="Play", exact=True, pressed=True).click()
    page.get_by_role("slider", name="Step position").fill("20")
    page.wait_for_function("decodingExplorer.lanes[0].scene.paintedStep === 19")

    lane = page.get_by_role("region", name="Lane 1")
    spot = page.evaluate(
        """() => { const scene = decodingExplorer.lanes[0].scene, box = scene.frame.getBoundingClientRect();
        const mark = scene.drawn.filter(m => m.kind === "node" && m.hover && m.x >= scene.view.lo).pop();
        return [box.left + scene.view.px(mark.x), box.top + scene.view.py(mark.y, mark)]; }"""
    )
    page.mouse.move(*spot)
    expect(lane.locator(".dp-card-line").first).to_contain_text("p ")
    page.mouse.click(*spot)
    inspector = page.get_by_role("complementary", name="Inspector")
    expect(inspector).to_be_visible()
    assert inspector.locator(".token").count() > 3
    inspector.get_by_role("button", name="Close inspector").click()
    expect(inspector).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_other_views_are_in_the_file_and_settings_cannot_be_changed(wide):
    page = wide
    page.get_by_role("slider", name="Step position").fill("40")
    lane = page.get_by_role("region", name="Lane 1")
    lane.get_by_role("tab", name="Entropy").click()
    page.wait_for_function(
        "decodingExplorer.lanes[0].view === 'entropy' && decodingExplorer.lanes[0].scene.paintedStep === 39"
    )
    lane.get_by_role("tab", name="Text").click()
    expect(lane.locator(".text-view .dp-chip").first).to_be_visible()
    lane.get_by_role("button", name="Parameters", exact=True).click()
    expect(lane.get_by_label("num_beams")).to_be_disabled()
    expect(lane.get_by_label("Strategy")).to_be_disabled()
    expect(page.get_by_role("textbox", name="Prompt")).not_to_be_editable()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("step 39 of 40")).to_be_visible()


def test_a_picture_of_a_lane_is_in_the_file(wide):
    page = wide
    lane = page.get_by_role("region", name="Lane 2")

    def entry(name: str) -> tuple[str, bytes]:
        lane.get_by_role("button", name="Save this lane").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=name).click()
        return download.value.suggested_filename, download.value.path().read_bytes()

    name, svg = entry("Picture (SVG)")
    text = "".join(ElementTree.fromstring(svg).itertext())
    assert name == "lane-2.draft-rounds.svg" and "Draft rounds · Speculative decoding" in text
    assert "target forwards" in text
    name, png = entry("Picture (PNG)")
    assert name == "lane-2.draft-rounds.png" and png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20]) > 1400
    name, data = entry("Save trace")
    assert name == "lane-2.trace.json.gz" and json.loads(gzip.decompress(data))["strategy"] == "speculative"


def test_tokens_that_look_like_markup_are_text_in_a_saved_page(opened, tmp_path):
    lane = ScriptedLane(SCRIPT)
    while lane.advance():
        pass
    path = tmp_path / "hostile.html"
    path.write_text(replay_html([lane.trace], {"prompt": HOSTILE + "</script>"}), "utf-8")
    page = opened(path)
    ready(page)
    texts = page.evaluate("decodingExplorer.lanes[0].chips.marksAt().map(m => m.text)")
    assert HOSTILE in texts and "</script>" in texts
    page.locator(".saved-compare").scroll_into_view_if_needed()
    expect(page.locator(".lane-text")).to_have_text(lane.trace.text(), use_inner_text=False)
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(HOSTILE + "</script>")


def test_a_browser_that_cannot_unpack_says_so(chromium, saved):
    context = chromium.new_context()
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(saved.as_uri())
    expect(page.get_by_text("This browser cannot unpack the run in this page")).to_be_visible()
    context.close()


def test_a_notebooks_frame_shows_it_without_any_right(opened, tmp_path):
    """As a notebook does: the frame's HTML in a page; its scripts run in the sandbox, with no origin."""
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{show(recorded_runs.traces()[1])._repr_html_()}</body>", "utf-8")
    page = opened(path)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("region", name="Lane 1").locator("svg.dp-marks").first).to_be_visible()
    frame.get_by_role("slider", name="Step position").fill("2")
    expect(frame.get_by_text("step 2 of")).to_be_visible()
    frame.get_by_role("button", name="Switch between light and dark").click()


def test_its_charts_are_drawn_by_the_plotly_that_it_carries_when_they_come_near(opened, saved):
    """Beside the sentence and the texts of the whole run; in the page's theme, also when that changes."""
    page = opened(saved, 390, 844, color_scheme="dark")
    ready(page)
    compared, plots = page.locator(".saved-compare"), ".saved-charts .js-plotly-plot"
    page.wait_for_timeout(500)
    assert page.evaluate("window.Plotly") is None, "nothing is unpacked before"
    compared.locator("summary").click()  # on a phone it is closed first
    compared.locator(".saved-charts").scroll_into_view_if_needed()
    expect(page.locator(plots).first).to_be_visible()
    all_drawn(page, plots, 6)
    found = compare(recorded_runs.traces())
    expect(page.get_by_role("region", name="How the lanes compare")).to_contain_text(found["sentence"])
    expect(compared).to_contain_text("are those of the whole run")
    texts = [trace.text() for trace in recorded_runs.traces()]
    assert compared.locator(".lane-text").all_text_contents() == texts
    captions = [
        figure.layout.meta["caption"] for figure in charts(found, "forwards", "mean", "dark").values()
    ]
    expect(compared.locator("figcaption")).to_have_text(captions)
    ground = "document.querySelector('.js-plotly-plot').layout.template.layout.paper_bgcolor"
    assert page.evaluate(ground) == theme("dark").surface["bg"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    compared.get_by_role("radio", name="seconds").click()
    compared.get_by_role("radio", name="total").click()
    seconds = [figure.layout.meta["caption"] for figure in charts(found, "seconds", "total", "dark").values()]
    expect(compared.locator("figcaption")).to_have_text(seconds)
    page.get_by_role("button", name="Switch between light and dark").click()
    compared.locator(".saved-charts").scroll_into_view_if_needed()
    page.wait_for_function(f"{ground} === '{theme('light').surface['bg']}'")


def test_its_costs_are_sorted_by_a_click_or_a_key(wide):
    page = wide
    table = page.get_by_role("region", name="All costs")
    table.scroll_into_view_if_needed()
    names, heads = table.locator("tbody th"), table.locator("thead th")
    expect(names).to_have_text(["1 Beam search", "2 Speculative decoding"])
    seconds = heads.filter(has_text="seconds")
    expect(seconds).to_have_attribute("aria-sort", "none")
    seconds.get_by_role("button").click()
    expect(seconds).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("Enter")
    expect(seconds).to_have_attribute("aria-sort", "ascending")
    expect(names).to_have_text(["2 Speculative decoding", "1 Beam search"])
    for _ in range(2):  # a dash is last in either order
        table.get_by_role("button", name="Sort by proposed").click()
        expect(names.first).to_have_text("2 Speculative decoding")


@pytest.fixture(scope="module")
def four_lanes(tmp_path_factory):
    """128 tokens in four lanes on the shipped models."""
    models = {"target": load("llama-tiny", "cpu"), "draft": load("llama-tiny-draft", "cpu")}
    ids = models["target"].encode("Once upon a time")
    wanted = [("beam", {"num_beams": 4}), ("speculative", {}), ("sample", {}), ("jacobi", {})]
    traces = [Lane(name, ids, models, given, 0, Limits(128)).run() for name, given in wanted]
    assert len(traces[0].output()) == 128
    path = tmp_path_factory.mktemp("four") / "run.html"
    path.write_text(replay_html(traces), "utf-8")
    return path


def test_four_lanes_of_128_tokens_stay_small(opened, four_lanes):
    """Opened on a phone, where a lane is painted when it is looked at; then the page becomes wide."""
    assert four_lanes.stat().st_size < MAX_BYTES
    page = opened(four_lanes, 390, 844)
    ready(page)
    assert page.evaluate("decodingExplorer.lanes.map(l => l.count)")[0] == 128
    for lane in range(4):
        page.get_by_role("navigation", name="Lanes").get_by_role("button").nth(lane).click()
        painted(page, lane)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    resize(page, 1400, 900)
    for lane in range(4):
        expect(
            page.get_by_role("region", name=f"Lane {lane + 1}").locator("svg.dp-marks").first
        ).to_be_visible()
        page.wait_for_function("n => !decodingExplorer.lanes[n].scene.waiting", arg=lane)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_tokens_are_coloured_by_depths_that_a_lens_has_told(wide, opened, tmp_path):
    by, depth = wide.get_by_label("Colour tokens by"), "option[value=depth]"
    expect(by.locator(depth)).to_have_count(0)
    trace = recorded_runs.traces()[0]
    nodes = [node for step in trace.steps for commit in step.of(Commit) for node in commit.nodes]
    path = tmp_path / "depths.html"
    path.write_text(replay_html([trace], depths=[{nodes[1]: [3, 12]}]), "utf-8")
    page = opened(path)
    ready(page)
    page.get_by_label("Colour tokens by").select_option("depth")
    expect(page.get_by_title("settled after 3 of 12 layers").first).to_be_visible()


def test_a_lane_of_a_watched_call_says_that_it_was_watched(opened, tmp_path):
    trace = recorded_runs.traces()[0]
    trace.title += " (generate)"
    path = tmp_path / "watched.html"
    path.write_text(replay_html([trace, *recorded_runs.traces()[:1]]), "utf-8")
    page = opened(path)
    for lane, title in (("Lane 1", trace.title), ("Lane 2", trace.title.removesuffix(" (generate)"))):
        chosen = page.get_by_role("region", name=lane).get_by_label("Strategy").locator("option:checked")
        expect(chosen).to_have_text(title)


def test_a_saved_page_offers_no_tab_that_it_cannot_fill(wide):
    page = wide
    expect(page.locator(".decode")).to_be_visible()
    for name in ("Decode", "Experiments", "Lessons", "Methods", "Microscope"):
        expect(page.get_by_role("tab", name=name, exact=True)).to_have_count(0)
