"""The picture that moves shows one frame of each lane at a time, and README's is made of stored runs."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from decoders.trace.trace import load
from explorer.catalog.method_cards import file_of
from visualizers.figures.moving import HOLD, moving

ROOT = Path(__file__).resolve().parents[3]
SPACE = "{http://www.w3.org/2000/svg}"
SPANS = re.compile(
    r"@keyframes l(\d)s(\d+)\{(?:0%\{visibility:hidden\})?([\d.]+)%\{visibility:visible\}([\d.]*)"
)


@pytest.fixture(scope="module")
def drawn() -> str:
    return moving([(load(file_of("greedy")), "entropy"), (load(file_of("speculative")), "draft_rounds")])


def spans(drawn: str, lane: str) -> list[tuple[float, float]]:
    """When each frame of a lane is seen, in percent."""
    return [(float(start), float(end or 100)) for one, _, start, end in SPANS.findall(drawn) if one == lane]


def test_one_frame_of_each_lane_is_seen_at_a_time_and_lanes_step_together(drawn):
    long, short = spans(drawn, "0"), spans(drawn, "1")
    steps = [len(load(file_of(name)).steps) for name in ("greedy", "speculative")]
    assert [len(long) - 1, len(short) - 1] == steps and steps[0] > steps[1]
    for lane in (long, short):
        assert lane[0][0] == 0 and lane[-1][1] == 100
        assert all(end == start for (_, end), (start, _) in zip(lane, lane[1:], strict=False))
    assert long[: len(short) - 1] == short[:-1]
    assert long[-1][0] == pytest.approx(100 * steps[0] / (steps[0] + HOLD), abs=0.01)


def test_a_frame_shows_what_the_lane_has_written_by_then(drawn):
    frames = ElementTree.fromstring(drawn).iter(f"{SPACE}g")
    words = {frame.get("id"): "".join(frame.itertext()) for frame in frames if frame.get("id")}
    assert "␣there" not in words["l0s1"] and "␣there" in words["l0s2"]
    assert "Round 1: 3 of 3 drafted tokens accepted" in words["l1s1"]


def test_readers_who_want_less_motion_see_the_end(drawn):
    frames = ElementTree.fromstring(drawn).findall(f".//{SPACE}g[@class='step end']")
    assert [frame.get("id") for frame in frames] == ["l0s10", "l1s3"]
    assert "(prefers-reduced-motion:reduce){.step{animation:none!important;visibility:hidden}" in drawn
    assert ".end{visibility:visible}" in drawn


@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_picture_of_readme_is_what_its_script_makes(look):
    made = runpy.run_path(str(ROOT / "docs" / "moving.py"))["svg"](look)
    stored = (ROOT / "docs" / f"moving-{look}.svg").read_text("utf-8")
    assert stored == made, "run: python docs/moving.py"
    assert len(stored.encode()) < 400_000
