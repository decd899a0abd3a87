"""The frames of a lane and of a lesson's guide: what scripts look for is there once, and a saved page
offers no more than it can do.
"""

import re

import pytest

from decoders import memory_options
from decoders.registry import strategies
from explorer.export import fields
from explorer.export.frames import guide_html, lane_html
from explorer.export.page_files import ASSETS
from tests.explorer.test_markup import Reader


@pytest.mark.parametrize("saved", [False, True])
def test_a_saved_page_offers_what_needs_no_app(saved):
    items = [a for _, a in Reader(lane_html(saved)).elements if a.get("role") == "menuitem"]
    offered = [a["value"] for a in items]
    assert {"present", "trace", "picture", "picture png"} <= set(offered)
    assert saved != bool({"page", "figure", "slide png", "print", "print 84", "caption"} & set(offered))
    assert all("{" not in a["title"] for a in items)
    assert saved != ("restart" in Reader(guide_html(saved)).of("data-part"))


def test_every_part_that_a_lane_is_asked_for_is_there():
    parts = Reader(lane_html(False)).of("data-part")
    assert len(parts) == len(set(parts))
    script = (ASSETS / "web" / "page" / "lane.js").read_text("utf-8")
    used = set(re.findall(r"this\.(\w+)\.(?:addEventListener|replaceChildren|textContent|hidden)", script))
    assert len(used) > 8 and used <= set(parts)


def test_every_part_that_the_guide_is_asked_for_is_there():
    parts = Reader(guide_html(False)).of("data-part")
    assert len(parts) == len(set(parts))
    script = (ASSETS / "web" / "page" / "lessons.js").read_text("utf-8")
    used = set(re.findall(r"\bon\(this\.(\w+),", script))
    used |= set(re.findall(r"this\.(\w+)\.(?:textContent|innerHTML|disabled|replaceChildren)", script))
    assert len(used) > 8 and used - {"solutions"} <= set(parts)


def test_every_group_of_parameters_has_a_place():
    places = Reader(fields.groups_html()).of("data-part")
    declared = {p.get("group") or "own" for s in strategies().values() for p in s.declaration()["parameters"]}
    declared |= {p["group"] for p in memory_options.page_fields()["parameters"]}
    assert declared == set(places) and len(places) == len(declared)
