"""Words of figures: none hits another, and none is cut where it could be whole or stand in two lines."""

from html import unescape
from xml.etree import ElementTree

import pytest

from decoders.registry import strategies
from decoders.trace.trace import load
from explorer.catalog import method_cards
from visualizers.figures.scene_figure import figure
from visualizers.figures.svg import svg
from visualizers.figures.wrapping import LINE, token_lines
from visualizers.scene.words import cells

SPACE = "{http://www.w3.org/2000/svg}"
WIDTHS = {True: 0.602, False: 0.5}  # of a letter by its height: of one width, or not
SOME = ["beam", "speculative", "specinfer", "lm_guidance", "asap", "edu_plans", "fsd", "dola", "jacobi"]


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float, str]]:
    """Every line of every text: left, top, right, bottom, words."""
    found = []
    for group in root.iter(f"{SPACE}g"):  # has the look of the words in it
        for element in group.iter(f"{SPACE}text"):
            element.attrib |= group.attrib
    for element in root.iter(f"{SPACE}text"):
        size, x, y = (float(element.get(name)) for name in ("font-size", "x", "y"))
        lines = [element.text or ""]
        for span in element:
            lines += [""] if span.get("dy") else []
            lines[-1] += "".join(span.itertext()) + (span.tail or "")
        for number, words in enumerate(lines):
            wide = cells(words) * size * WIDTHS["mono" in (element.get("font-family") or "")]
            left = x - wide * {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor")]
            foot = y + number * LINE * size
            found.append((left, foot - 0.72 * size, left + wide, foot + 0.1 * size, words))
    return [one for one in found if one[4].strip()]


@pytest.mark.parametrize("name", SOME)
def test_no_word_of_a_figure_hits_another(name):
    trace = load(method_cards.file_of(name))
    for view in strategies()[name].views:
        seen = sorted(boxes(ElementTree.fromstring(svg(figure(trace, view)))))
        for i, one in enumerate(seen):
            for other in seen[i + 1 :]:
                apart = other[0] >= one[2] - 1 or one[1] >= other[3] - 1 or other[1] >= one[3] - 1
                assert apart, (view, one[4], other[4])


def test_tokens_of_draft_rounds_and_beams_are_whole_in_a_figure():
    for name, view in (("speculative", "draft_rounds"), ("beam", "beam_tree"), ("speculative", "entropy")):
        words = [
            one[4]
            for one in boxes(ElementTree.fromstring(svg(figure(load(method_cards.file_of(name)), view))))
        ]
        assert words and not [word for word in words if word.endswith("…")]


def test_what_is_cut_all_the_same_is_whole_when_it_is_pointed_at():
    trace = load(method_cards.file_of("fsd"))
    long = "␣" + "incomprehensibilities" * 3
    trace.vocabulary[trace.output()[3]] = long.replace("␣", " ").encode()
    root = ElementTree.fromstring(svg(figure(trace, "entropy")))
    cut = [one for one in root.iter(f"{SPACE}g") if one.find(f"{SPACE}title") is not None]
    assert cut and {unescape(one.find(f"{SPACE}title").text) for one in cut} == {long}
    assert all("".join(one.find(f"{SPACE}text").itertext()).endswith("…") for one in cut)


@pytest.mark.parametrize(
    ("text", "lines", "shown"),
    [
        ("␣day", 2, "␣day"),
        ("␣Suddenly", 1, "Sudde…"),
        ("␣Suddenly", 2, "␣Sudde\nnly"),
        ("␣garden", 2, "garden"),
        ("in the garden", 2, "in the\ngarden"),
        ("incomprehensibilities", 2, "incomp\nrehen…"),
        ("x" * 20_000, 3, "xxxxxx\nxxxxxx\nxxxxx…"),  # of a foreign file; minutes if each line measured all
        ("", 2, ""),
    ],
)
def test_a_token_is_broken_into_lines_before_it_is_cut(text, lines, shown):
    assert token_lines(text, 40, 11, lines) == shown
