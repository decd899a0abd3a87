"""Thumbnails of views: as large as a thumb whatever the run, with marks, and without words but for a text."""

import xml.etree.ElementTree as ET

import pytest

from decoders.refusal import Refusal
from decoders.trace.trace import load
from explorer.catalog import method_cards
from visualizers.figures.thumbnail import HIGH, WIDE, thumbnail

SVG = "{http://www.w3.org/2000/svg}"


def drawn(name: str, **given) -> ET.Element:
    """The thumbnail of a method's recorded run."""
    return ET.fromstring(thumbnail(load(method_cards.file_of(name)), **given))


@pytest.mark.parametrize("name", ["beam", "specbranch", "transfer_q", "speculative"])
def test_a_short_and_a_long_run_are_of_one_size_and_without_words(name):
    small = drawn(name)
    assert float(small.get("width")) == pytest.approx(WIDE, abs=1)
    assert float(small.get("height")) == pytest.approx(HIGH, abs=HIGH / 2)
    assert small.get("preserveAspectRatio") == "none"
    assert not list(small.iter(f"{SVG}text")) and len(list(small)) > 3


def test_a_text_keeps_its_words():
    words = "".join(drawn("greedy", view="text").itertext())
    assert "Once" in words and "upon" in words


def test_a_step_shows_what_was_there_then_and_a_look_has_its_ground():
    early, late = drawn("beam", step=2), drawn("beam")
    assert len(list(early.iter(f"{SVG}circle"))) < len(list(late.iter(f"{SVG}circle")))
    assert drawn("beam", look="dark").find(f"{SVG}rect").get("fill") == "#10151B"
    with pytest.raises(Refusal):
        drawn("beam", look="red")
