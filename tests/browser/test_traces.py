"""Saving, opening and sharing in the page: files go out and come back, a link runs nothing."""

import base64
import csv
import gzip
import io
import json
import re
import zlib
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from explorer.export import run_file
from tests.browser.conftest import HOSTILE
from tests.browser.test_page import press, ready, run
from tests.browser.window import resize
from tests.decoders.trace.imports import samples

METRICS = b"""# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="some/model"} 100.0
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="some/model"} 300.0
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="some/model"} 150.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="some/model",position="0"} 90.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="some/model",position="1"} 60.0
"""
SIZES = pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])


@pytest.fixture
def page(again):
    """A wide page that the tests share, at its lanes, which show the stored run."""
    return again(1400, 900)


def section(page) -> None:
    page.get_by_role("tab", name="Traces", exact=True).click()


def downloaded(page, click) -> tuple[str, bytes]:
    """Name and bytes of the file that `click` makes the page save."""
    with page.expect_download() as download:
        click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def saved(page, form: str, of: str | None = None) -> tuple[str, bytes]:
    """Saves what is chosen, or a lane, as a kind of file."""
    if of:
        pick(page, "Of", of)
    page.get_by_role("radio", name=form, exact=True).check()
    return downloaded(page, lambda: press(page, "Save"))


def choose(page, name: str, data: bytes) -> None:
    files = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    page.get_by_test_id("Open a file-upload-button").set_input_files(files)


def pick(page, label: str, option: str) -> None:
    """Chooses in one of Gradio's lists."""
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


@SIZES
def test_a_run_is_saved_and_opened_again(again, width, height):
    page = again(width, height)
    ready(page)
    if width > 760:
        run(page, "A tale", 6)
    section(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    name, data = saved(page, "Data (JSON)")
    setup, traces = run_file.unpack(data)
    assert name.endswith(".run.json.gz") and len(traces) == 2
    texts = page.evaluate("decodingExplorer.lanes.map(l => l.chips.marksAt().map(m => m.text))")
    page.evaluate("decodingExplorer.app.applySetup({prompt: 'x', lanes: [{strategy: 'greedy'}]})")
    section(page)
    choose(page, "tale.run.json.gz", data)
    expect(page.get_by_text("Opened tale.run.json.gz.")).to_be_visible()
    assert page.evaluate("decodingExplorer.lanes.map(l => l.chips.marksAt().map(m => m.text))") == texts
    expect(page.get_by_role("textbox", name="Prompt")).to_have_value(setup["prompt"])
    page.get_by_role("slider", name="Step position").fill("2")
    page.wait_for_function("decodingExplorer.lanes[0].scene.paintedStep === 1")
    if width > 760:
        press(page, "Run")  # decodes it again, with the settings of the file
        page.wait_for_function("decodingExplorer.state === 'done'")
        assert page.evaluate("decodingExplorer.lanes.map(l => l.chips.marksAt().map(m => m.text))") == texts


def test_a_lane_is_saved_as_trace_page_and_picture(page):
    lane = page.get_by_role("region", name="Lane 2")

    def entry(name: str) -> tuple[str, bytes]:
        lane.get_by_role("button", name="Save this lane").click()
        return downloaded(page, lambda: page.get_by_role("menuitem", name=name).click())

    _, data = entry("Save trace")
    traced = json.loads(gzip.decompress(data))
    assert traced["strategy"] == "speculative"
    assert len(traced["steps"]) == page.evaluate("decodingExplorer.lanes[1].count") > 5
    name, data = entry("Save page")
    assert name.endswith(".lane-2.page.html") and run_file.unpack(data)[1][0].strategy == "speculative"
    page.get_by_role("slider", name="Step position").fill("3")
    name, figure = entry("Save figure")
    assert name.endswith(".lane-2.figure.html") and b"after 3 of " in figure
    opened = page.context.new_page()
    opened.set_content(figure.decode())
    opened.wait_for_selector(".plotly .main-svg .scatterlayer .trace")
    opened.close()
    page.get_by_role("slider", name="Step position").fill("40")
    name, png = entry("Picture (PNG)")
    assert name == "once-upon-a-time.lane-2.draft-rounds.png" and png[:8] == b"\x89PNG\r\n\x1a\n"
    name, svg = entry("Picture (SVG)")
    assert name == "once-upon-a-time.lane-2.draft-rounds.svg"
    colours = page.evaluate(
        """data => new Promise((done) => { const image = new Image(); image.onload = () => {
        const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
        canvas.width = image.width; canvas.height = image.height; pen.drawImage(image, 0, 0);
        const pixels = new Uint32Array(pen.getImageData(0, 0, image.width, image.height).data.buffer);
        done([new Set(pixels).size, image.width, image.height]); };
        image.src = "data:image/png;base64," + data; })""",
        base64.b64encode(png).decode(),
    )
    assert colours[0] > 50 and colours[1] > 1400 and colours[2] > 500
    steps, text = len(traced["steps"]), re.sub(r"<[^>]*>", "", svg.decode())
    assert f"Draft rounds · Speculative decoding, after {steps} of {steps} steps" in text
    assert "target forwards" in text and "accepted" in text  # its costs and its legend
    chosen = [event for step in traced["steps"] for event in step["events"]]
    assert len(chosen) > 20 and all(f"round {number} " in text for number in range(1, steps + 1))
    assert svg.startswith(b"<svg") and b"<script" not in svg and b"<image" not in svg


def test_a_lane_is_saved_from_the_tab_and_nobody_leaves_it(page):
    """A picture shows the whole run, wherever the lane's window stands."""
    section(page)
    name, data = saved(page, "Data (JSON)", "Lane 2")
    assert json.loads(gzip.decompress(data))["strategy"] == "speculative"
    page.get_by_role("radio", name="Graph", exact=True).check()
    pick(page, "Format", "DOT")
    pick(page, "Graph", "drafts")
    name, dot = saved(page, "Graph")
    assert name.endswith(".lane-2.graph.dot") and dot.startswith(b"digraph")
    name, data = saved(page, "Costs (CSV)")
    (row,) = csv.DictReader(io.StringIO(data.decode()))
    assert name.endswith(".lane-2.costs.csv") and row["strategy"] == "speculative"
    page.get_by_role("radio", name="Figure (HTML)", exact=True).check()
    press(page, "Show figure")
    expect(page.locator("#traces-figure .main-svg").first).to_be_visible()
    steps = page.evaluate("decodingExplorer.lanes[1].count")
    name, svg = downloaded(page, lambda: press(page, "Save as SVG"))
    assert name == "once-upon-a-time.lane-2.draft-rounds.svg" and f"after {steps} of {steps}".encode() in svg
    name, png = downloaded(page, lambda: press(page, "Save as PNG"))
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    assert name.endswith(".draft-rounds.png") and width > 2000 and height > 500
    expect(page.get_by_role("tab", name="Traces", exact=True)).to_have_attribute("aria-selected", "true")
    page.get_by_role("radio", name="Graph", exact=True).check()
    pick(page, "Graph", "dependencies")
    press(page, "Save")
    expect(page.get_by_text("This trace holds nothing for a graph of kind")).to_be_visible()


def test_a_server_s_counts_are_a_card_and_the_lanes_stay(page):
    before = page.evaluate("[decodingExplorer.run, decodingExplorer.lanes.map(l => l.count)]")
    section(page)
    choose(page, "metrics.txt", METRICS)
    card = page.locator("#imported-counts")
    expect(card).to_contain_text("metrics.txt")
    expect(card).to_contain_text("100 rounds drafted 300 tokens and 150 were accepted: 2.50 tokens per round")
    expect(card.get_by_role("gridcell", name="mean_acceptance_length")).to_be_attached()
    card.locator(".figure").first.scroll_into_view_if_needed()
    expect(card.locator(".js-plotly-plot .main-svg").first).to_be_visible()
    assert page.evaluate("[decodingExplorer.run, decodingExplorer.lanes.map(l => l.count)]") == before
    for size in ((1400, 900), (390, 844)):
        resize(page, *size)  # nothing sticks out
        expect(card.locator(".js-plotly-plot .main-svg").first).to_be_visible()


def test_the_menu_of_a_lane_works_by_keyboard(page):
    button = page.get_by_role("region", name="Lane 1").get_by_role("button", name="Save this lane")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Present")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Save trace")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    expect(page.get_by_role("menu")).to_be_hidden()


def test_a_figure_for_print_is_saved_in_a_width_from_the_menu_and_its_caption_is_copied(page):
    lane = page.get_by_role("region", name="Lane 2")
    button, widths = lane.get_by_role("button", name="Save this lane"), lane.locator(".of-print")

    def unfold():
        button.click()
        expect(widths.first).to_be_hidden()
        page.get_by_role("menuitem", name="Figure for print").click()
        expect(widths.first).to_be_focused()

    unfold()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="1.5 columns, 120 mm")).to_be_focused()
    name, svg = downloaded(page, lambda: page.keyboard.press("Enter"))
    root = ElementTree.fromstring(svg)
    assert name == "once-upon-a-time.lane-2.draft-rounds.print.svg" and root.get("width") == "120mm"
    expect(page.get_by_role("menu")).to_be_hidden()
    unfold()
    page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.clip = text } }")
    page.get_by_role("menuitem", name="Copy its caption").click()
    page.wait_for_function("window.clip")
    assert page.evaluate("window.clip") == root[0].text
    page.evaluate("() => { delete navigator.clipboard.writeText }")
    assert root[0].text.startswith("Draft rounds of Speculative decoding")


def test_hostile_tokens_are_text_in_a_picture_and_a_saved_lane(again):
    page = again()
    page.get_by_role("region", name="Lane 2").get_by_role("button", name="Remove lane").click()
    run(page, "scripted", 8)
    lane = page.get_by_role("region", name="Lane 1")
    lane.get_by_role("tab", name="Text").click()
    expect(lane.locator(".text-view .dp-chip").first).to_be_visible()
    lane.get_by_role("button", name="Save this lane").click()
    _, svg = downloaded(page, lambda: page.get_by_role("menuitem", name="Picture (SVG)").click())
    root = ElementTree.fromstring(svg)
    assert HOSTILE in [element.text for element in root.iter()] and b"<img" not in svg
    section(page)
    _, data = saved(page, "Data (JSON)")
    assert run_file.unpack(data)[1][0].text() == page.evaluate(
        "decodingExplorer.lanes[0].chips.marksAt().slice(1).map(m => m.text).join('')"
    ).replace("↵", "\n").replace("␣", " ")
    choose(page, "run.json.gz", data)
    expect(page.get_by_text("Opened run.json.gz.")).to_be_visible()
    assert page.evaluate("window.hacked") is None


def test_a_chosen_lane_that_has_gone_keeps_nobody_from_saving_the_run(again):
    page = again()
    section(page)
    page.get_by_label("Of", exact=True).click()
    page.get_by_role("option", name="Lane 2", exact=True).click()
    page.get_by_role("tab", name="Decode", exact=True).click()
    page.get_by_role("region", name="Lane 2").get_by_role("button", name="Remove lane").click()
    run(page, "Once", 5)
    section(page)
    expect(page.get_by_label("Of", exact=True)).to_have_value("The whole run")
    _, data = saved(page, "Data (JSON)")
    assert len(run_file.unpack(data)[1]) == 1


def test_costs_are_a_table_of_numbers(page):
    run(page, "Once", 5)
    section(page)
    name, data = saved(page, "Costs (CSV)")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert name == "once.costs.csv" and [row["strategy"] for row in rows] == ["beam", "speculative"]
    assert int(rows[0]["new tokens"]) == 5 and float(rows[1]["seconds"]) > 0


def test_a_run_that_is_opened_does_not_stand_below_the_error_of_the_run_before(page):
    run(page, "Once", 5)
    section(page)
    name, data = saved(page, "Data (JSON)")
    page.evaluate("decodingExplorer.app.fail('Lane 1: temperature must be a number from 0 to 100, not -3.')")
    choose(page, name, data)
    expect(page.locator(".status-text")).to_contain_text(f"Opened {name}")
    expect(page.locator("#explorer").get_by_role("alert")).to_be_hidden()


def test_a_file_that_is_none_is_refused_and_nothing_is_lost(page, tmp_path):
    section(page)
    before = page.evaluate("[decodingExplorer.run, decodingExplorer.lanes.map(l => l.count)]")
    choose(page, "notes.json", b"hello")
    expect(page.get_by_text("notes.json was not opened. This file is not JSON")).to_be_visible()
    choose(page, "counts.json", b'{"speculative_decoding": {"per_step_drafted": [3]}}')
    words = "This file is not recognised: it is not a trace"
    expect(page.get_by_text(f"counts.json was not opened. {words}")).to_be_visible()
    choose(page, "notes.doc", b"hello")
    expect(page.get_by_text("Invalid file type")).to_be_visible()
    large = tmp_path / "large.json"  # from the disk, as Playwright would spell so many bytes out
    large.write_bytes(b" " * (16 * 2**20 + 1))
    page.get_by_test_id("Open a file-upload-button").set_input_files(large)
    expect(page.get_by_text("exceed the maximum allowed size")).to_be_visible()
    choose(page, "page.html", b"<!doctype html><p>hello")
    expect(page.get_by_text("This page was not saved by Decoding Explorer")).to_be_visible()
    assert page.evaluate("[decodingExplorer.run, decodingExplorer.lanes.map(l => l.count)]") == before


def test_a_file_may_be_dropped_anywhere(page):
    section(page)
    _, data = saved(page, "Data (JSON)")
    page.get_by_role("tab", name="Decode", exact=True).click()
    dropped = page.evaluate_handle(
        "bytes => { const carried = new DataTransfer();"
        "carried.items.add(new File([new Uint8Array(bytes)], 'dropped.json.gz')); return carried; }",
        list(data),
    )
    page.dispatch_event("main", "dragover", {"dataTransfer": dropped})
    expect(page.get_by_role("tab", name="Decode", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#explorer.dropping")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    expect(page.get_by_text("Opened dropped.json.gz.")).to_be_visible()
    # The next test begins on another tab, so this one ends when the page has come to this one.
    expect(page.get_by_role("tab", name="Decode", exact=True)).to_have_attribute("aria-selected", "true")


def test_several_dropped_files_are_a_table_and_a_row_of_it_a_hatched_lane(page):
    section(page)
    sound, wrong = samples.LLAMA, samples.LLAMA | {"content": "The cow sat."}
    held = [["good.json", json.dumps(sound)], ["bad.json", json.dumps(wrong)], ["notes.md", "Notes."]]
    dropped = page.evaluate_handle(
        "held => { const carried = new DataTransfer();"
        "for (const [name, text] of held) carried.items.add(new File([text], name)); return carried; }",
        held,
    )
    page.dispatch_event("main", "drop", {"dataTransfer": dropped})
    expect(page.locator("#opened-records")).to_contain_text("2 records. Not recognised: 1.")
    expect(page.get_by_test_id("cell-0-1")).to_have_text("bad.json")  # the untrusted one first
    page.get_by_test_id("cell-0-1").click()
    lane = page.locator(".lane.untrusted")
    expect(lane.locator(".trust summary")).to_contain_text("the tokens do not spell the text")
    assert "gradient" in lane.locator(".view").evaluate("e => getComputedStyle(e, '::after').backgroundImage")
    lane.locator(".trust summary").click()
    expect(lane.locator(".trust li").first).to_contain_text("log-probabilities, before any processor")
    section(page)
    page.get_by_test_id("cell-1-1").click()
    expect(page.locator(".lane .trust summary")).to_have_text("All checks passed.")
    expect(page.locator(".lane.untrusted")).to_have_count(0)


# Says what the page says to each link, one after the other.
FOLLOW = """async (links) => {
  const said = [], alert = () => document.querySelector("#explorer [role=alert]").textContent;
  for (const link of links) {
    decodingExplorer.app.fail("");
    location.hash = link;
    for (let i = 0; i < 100 && !alert(); i++) await new Promise((done) => setTimeout(done, 20));
    said.push(alert());
  }
  return said;
}"""


def raw(data: bytes) -> str:
    """A link to bytes, packed as the page packs a setup."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(data) + packer.flush()
    return "setup=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def test_nonsense_in_a_link_is_one_sentence_and_no_error_of_a_script(page):
    before = page.evaluate("JSON.stringify(decodingExplorer.app.setup())")
    sound = {"prompt": "a", "max_new_tokens": 4, "lanes": [{"strategy": "greedy"}]}
    odd = [None, True, -1, 1.5, "constructor", "__proto__", [], [[]], {}, {"toString": 1}]
    links = [
        {**sound, name: value} for name in ("prompt", "max_new_tokens", "lanes", "version") for value in odd
    ]
    links += [{**sound, "lanes": [value]} for value in odd]
    links += [{**sound, "lanes": [{"strategy": value}]} for value in odd]
    links += [{**sound, "lanes": [{"strategy": "greedy", "seed": value}]} for value in odd[1:]]
    links += [
        {**sound, "lanes": [{"strategy": "greedy", "parameters": {name: 1}}]} for name in ("__proto__", "")
    ]
    links = [link for link in links if link["prompt"] not in odd[4:6]]  # which are texts
    links.append({**sound, "prompt": "\ud800"})
    fragments = [raw(json.dumps({"version": 1, **link}).encode()) for link in links]
    fragments += [f"setup={text}" for text in ("", "%", "%ff%fe", "A" * 250_000, "é", "AAAA", "====")]
    odd_bytes = (b"", b"null", b"[]", b"\xff", b"[" * 50_000, b'{"version": 1e999}', b" " * 10**7)
    fragments += [raw(data) for data in odd_bytes]
    said = page.evaluate(FOLLOW, fragments)
    silent = [link for link, words in zip(fragments, said, strict=True) if not words]
    assert silent == []
    assert all(words.startswith(("This link", "The prompt", "The number", "A link")) for words in said), said
    assert all(len(words) < 200 and words.endswith(".") for words in said)
    assert page.evaluate("JSON.stringify(decodingExplorer.app.setup())") == before


def link_of(page) -> str:
    section(page)
    press(page, "Copy link")
    expect(
        page.get_by_text("The link is copied.").or_(page.get_by_text("copy the link from the"))
    ).to_be_visible()
    return page.get_by_label("Link").input_value()


def test_a_copied_link_says_who_cannot_open_it(page):
    link_of(page)
    said = page.get_by_text("It opens on this computer only: 127.0.0.1 is the computer that opens it.")
    expect(said).to_be_visible()
    expect(said).not_to_contain_text("token")
    expect(page.locator("#traces-qr")).to_contain_text("No other device can open this code")
    page.evaluate("decodingExplorer.app.data.guarded = true")
    link_of(page)
    expect(said).to_contain_text("Whoever opens it is asked for this app's token")
    page.evaluate("decodingExplorer.app.data.guarded = false")


def test_a_link_brings_the_whole_setup_and_runs_nothing(visit):
    page = visit()
    ready(page)
    press(page, "+ Lane")
    page.get_by_role("region", name="Lane 3").get_by_label("Strategy").select_option("sample")
    page.get_by_role("region", name="Lane 1").get_by_role("tab", name="Entropy").click()
    page.evaluate("decodingExplorer.app.lanes[2].setup.parameters = {temperature: 0.5}")
    page.evaluate("decodingExplorer.app.lanes[2].setup.seed = 7")
    page.get_by_role("textbox", name="Prompt").fill("A prompt with ünïcode 🦊 & <b>")
    page.get_by_label("max_new_tokens").fill("9")
    link = link_of(page)
    other = visit()
    ready(other)
    other.evaluate("link => { location.hash = link.split('#')[1]; }", link)
    expect(other.get_by_role("textbox", name="Prompt")).to_have_value("A prompt with ünïcode 🦊 & <b>")
    assert other.evaluate("decodingExplorer.app.setup()") == page.evaluate("decodingExplorer.app.setup()")
    assert other.evaluate("decodingExplorer.state") == "none"


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        (None, "damaged"),
        ({"version": 2}, "version 2"),
        ({"prompt": 7}, "The prompt of a link"),
        ({"max_new_tokens": 10**9}, "number of tokens"),
        ({"lanes": []}, "one to 4 lanes"),
        ({"lanes": [{"strategy": "<img src=x>"}]}, "the strategy <img src=x>"),
        ({"lanes": [{"strategy": "greedy", "parameters": {"colour": 1}}]}, "colour of Greedy"),
        ({"lanes": [{"strategy": "greedy", "seed": -1}]}, "seed"),
    ],
)
def test_a_bad_link_is_one_sentence(page, setup, says):
    page.evaluate("decodingExplorer.app.fail('')")  # what the link before has left
    before = page.evaluate("JSON.stringify(decodingExplorer.app.setup())")
    given = {"prompt": "a", "max_new_tokens": 4, "lanes": [{"strategy": "greedy"}]} | (setup or {})
    link = page.evaluate("given => ExplorerPage.linkOf(given)", given)
    fragment = link.split("#")[1] if setup else "setup=abc"
    page.evaluate("fragment => { location.hash = fragment; }", fragment)
    expect(page.locator("#explorer").get_by_role("alert")).to_contain_text(says)
    assert page.evaluate("JSON.stringify(decodingExplorer.app.setup())") == before
