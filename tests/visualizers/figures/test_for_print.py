"""A figure for print: as wide as it should be, letters of 8 pt and more, no round split, words apart, and a
caption with the facts.
"""

import re
from xml.etree import ElementTree

import pytest

from decoders.refusal import Refusal
from decoders.registry import strategies
from decoders.trace.trace import load
from explorer.catalog import method_cards, recorded_runs
from visualizers.figures import for_print
from visualizers.figures.for_print import ASIDE, arranged, fitted, without_sentences
from visualizers.figures.outlines import UNIT, definitions, one_line, width, words
from visualizers.figures.run_lines import rounds
from visualizers.figures.scene_figure import picture
from visualizers.figures.svg import frame
from visualizers.figures.theme import theme

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
CASES = [
    (name, view)
    for name in ("greedy", "beam", "speculative", "specinfer", "eagle2", "jacobi", "mbr")
    for view in strategies()[name].views
]


def drawn(svg: str) -> tuple[float, float, float, list[tuple[str, float, tuple[float, float, float, float]]]]:
    """(mm of a unit, width, height, words: text, size, box), all in units of the drawing."""
    root = ElementTree.fromstring(svg)
    _, _, wide, high = map(float, root.get("viewBox").split())
    return float(root.get("width").removesuffix("mm")) / wide, wide, high, list(lines_of(root, (0, 0), False))


def lines_of(element, shift, turned):
    """The words below an element with their boxes."""
    for child in element:
        moved = re.match(r"translate\((\S+) (\S+)\)(?: rotate\((\S+)\))?", child.get("transform", ""))
        if child.get("class") == "words":
            x, y = float(moved[1]), float(moved[2])
            across, up = map(float, re.search(r"scale\((\S+) (\S+)\)", child.get("transform")).groups())
            text = child.get("aria-label")
            size, long = -up * UNIT, across * UNIT * width([(text, False)], 1)
            box = (x, y - 0.75 * size, x + long, y + 0.2 * size)
            if turned:
                box = (box[1], -box[2], box[3], -box[0])
            yield text, size, tuple(edge + shift[i % 2] for i, edge in enumerate(box))
        elif child.tag == f"{SVG}g" and moved:
            yield from lines_of(child, (float(moved[1]), float(moved[2])), moved[3] == "-90")


@pytest.mark.parametrize("width_mm", [84, 120, 174])
@pytest.mark.parametrize(("name", "view"), CASES)
def test_a_figure_is_as_wide_as_asked_and_its_words_are_large_inside_and_apart(name, view, width_mm):
    check_words(for_print(load(method_cards.file_of(name)), view, width_mm=width_mm), width_mm)


@pytest.mark.parametrize("width_mm", [84, 120, 174])
def test_the_same_holds_for_runs_of_many_lines(width_mm):
    for trace in recorded_runs.traces():
        for view in strategies()[trace.strategy].views:
            check_words(for_print(trace, view, width_mm=width_mm), width_mm)


def check_words(printed, width_mm):
    mm, wide, high, found = drawn(printed.svg)
    assert mm * wide == pytest.approx(width_mm) and mm * high == pytest.approx(printed.height_mm, abs=0.01)
    for text, size, (x0, y0, x1, y1) in found:
        assert size * mm / 25.4 * 72 >= 7.99, text
        assert x0 >= -2 and x1 <= wide + 2 and y0 >= -1 and y1 <= high + 1, (text, x0, x1, y0, y1)
    for i, (one, _, a) in enumerate(found):
        for other, _, b in found[:i]:
            across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across < 2 or down < 2, (one, other)
    root = ElementTree.fromstring(printed.svg)
    known = {element.get("id") for element in root.iter()}
    assert {use.get(LINK)[1:] for use in root.iter(f"{SVG}use")} <= known
    assert not list(root.iter(f"{SVG}text"))  # all letters of these runs are outlines


@pytest.mark.parametrize("width_mm", [84, 120, 174])
@pytest.mark.parametrize("name", ["speculative", "specinfer", "eagle2", "typical_acceptance"])
def test_no_round_is_split_and_lines_stay_in_their_column(name, width_mm):
    trace, wide = load(method_cards.file_of(name)), width_mm / (8 / 11 * 25.4 / 72)
    made, _ = fitted(trace, picture(trace, "draft_rounds"), theme("light"), wide)
    rows, at = arranged(frame(made), wide)
    lines, count = [line for row in rows for line in row], max(map(len, rows))
    for one in rounds(at):
        (home,) = [line for line in lines if line.first <= one.first < line.last]
        assert one.last <= home.last and home.start <= one.start and one.end <= home.end
    room = (wide - (count - 1) * ASIDE) / count
    assert all(at.left + line.end - line.start <= room + 0.5 for line in lines)


@pytest.mark.parametrize("name", ["greedy", "speculative", "specinfer", "eagle2"])
def test_all_tokens_of_the_rounds_are_in_the_figure_once(name):
    trace = load(method_cards.file_of(name))
    view = "draft_rounds" if "draft_rounds" in strategies()[name].views else "entropy"
    shown = without_sentences(picture(trace, view))
    cells = [m for m in shown.marks if m["kind"] == "cell" and m.get("text") and not m.get("gone")]
    _, _, _, found = drawn(for_print(trace, view).svg)
    printed = "\n".join(text for text, _, _ in found)
    assert cells and all(m["text"].removeprefix("␣")[:3] in printed for m in cells)


def test_the_caption_has_the_facts_and_is_the_description(tmp_path):
    trace = recorded_runs.traces()[1]
    printed = for_print(trace, "draft_rounds")
    prompt = trace.text(trace.prompt)
    for fact in (
        "Draft rounds of Speculative decoding",
        prompt,
        trace.models["target"],
        trace.models["draft"],
    ):
        assert fact in printed.caption
    for fact in (
        "with ★: bonus",
        "with ✕: rejected",
        "num_assistant_tokens = ",
        "rounds",
        "KV slots",
        "seed 0",
    ):
        assert fact in printed.caption
    assert ElementTree.fromstring(printed.svg).find(f"{SVG}desc").text == printed.caption
    printed.save(tmp_path / "rounds.svg")
    assert (tmp_path / "rounds.txt").read_text("utf-8") == f"{printed.caption}\n"
    earlier = for_print(trace, "draft_rounds", step=2)
    assert "after 2 of" in earlier.caption and earlier.height_mm < printed.height_mm


def test_what_cannot_be_printed_is_refused_and_what_is_too_high_is_said(tmp_path):
    trace = recorded_runs.traces()[0]
    with pytest.raises(Refusal, match="60 to 1,000 mm"):
        for_print(trace, "beam_tree", width_mm=10)
    with pytest.raises(Refusal, match="steps"):
        for_print(trace, "beam_tree", step=10_000)
    with pytest.raises(Refusal, match=r"saved as \.svg"):
        for_print(trace, "beam_tree").save(tmp_path / "beams.png")
    high, low = for_print(trace, "beam_tree", width_mm=60), for_print(trace, "beam_tree", width_mm=1000)
    assert high.height_mm > 240 and "higher" not in high.note and "choose a greater width" in high.note
    assert low.note == ""


def test_states_that_share_a_fill_differ_in_their_glyph_in_figure_and_legend():
    _, _, _, found = drawn(for_print(recorded_runs.traces()[1], "draft_rounds").svg)
    texts = [text for text, _, _ in found]
    for glyph in "★✕":
        assert glyph in texts and any(text.startswith(f"{glyph} ") for text in texts)


def test_a_text_without_outlines_is_held_to_its_width_and_markup_is_text():
    foreign = one_line([("猫が", False)], 0, 0, 11, "#000", 1)
    assert 'textLength="' in foreign and "猫が" in foreign
    hostile = words("&lt;script&gt;&quot;\x01", 0, 0, 11, "#000")
    assert ElementTree.fromstring(hostile.replace("xlink:", "")).get("aria-label") == '<script>"'
    assert definitions([hostile]).count("<path") == len(set('<script>"'))
