"""The bars as HTML: examples are text, and what the page looks for is there."""

import re
from pathlib import Path

from explorer.export.bars import Around, bars_html, choice
from explorer.export.help_text import help_html
from explorer.export.page_files import ASSETS
from tests.explorer.test_markup import HOSTILE, Reader

PROMPTS = [
    {"group": "Alone", "title": HOSTILE, "prompt": "a"},
    {"group": "With lanes", "title": "b", "prompt": "b", "says": HOSTILE, "lanes": [{}]},
]
MODELS = {"target": "a/b", "draft": "c, d"}
AROUND = Around(help_html(True), [("decode", "Decode")], HOSTILE)


def test_examples_are_text_in_their_groups_and_those_with_lanes_wait_for_models():
    read = Reader(bars_html(PROMPTS, 64, 512, MODELS, AROUND))
    groups = [attributes for tag, attributes in read.elements if tag == "optgroup"]
    assert groups == [{"label": "Alone"}, {"label": "With lanes", "disabled": None}]
    assert (
        HOSTILE in read.text
        and HOSTILE in read.of("title")
        and "img" not in [tag for tag, _ in read.elements]
    )
    assert [a["value"] for tag, a in read.elements if tag == "option"][:3] == ["", "0", "1"]
    assert "Models: b, draft c and d◀" in read.text
    (number,) = [a for _, a in read.elements if a.get("type") == "number"]
    assert (number["value"], number["max"]) == ("64", "512")


def test_every_part_that_the_page_asks_for_is_there():
    parts = Reader(bars_html(PROMPTS, 64, 512, MODELS, AROUND)).of("data-part")
    assert len(parts) == len(set(parts))
    scripts = [path.read_text("utf-8") for path in Path(ASSETS / "web").rglob("*.js")]
    asked = set(re.findall(r"\bapp\.bar\.(\w+)", "\n".join(scripts))) - {"buttons"}
    assert len(asked) > 10 and asked <= set(parts)


def test_one_radio_button_of_a_choice_is_checked():
    read = Reader(choice("Speed", "speed", [("1", "1×", None), ("4", "4×", "Faster")], "4"))
    radios = [attributes for tag, attributes in read.elements if tag == "input"]
    assert [(radio["name"], radio["value"], "checked" in radio) for radio in radios] == [
        ("speed", "1", False),
        ("speed", "4", True),
    ]
    assert read.of("role") == ["radiogroup"] and read.of("title") == ["Faster"]
