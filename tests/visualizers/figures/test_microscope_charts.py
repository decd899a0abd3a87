"""Charts of the microscope show its numbers, and the sentences that the page reads."""

import pytest

from tests.visualizers.analysis.test_speculation_report import chain, tree
from tests.visualizers.figures.charts_of import analyses, lanes, read, unbroken
from visualizers.analysis.speculation_report import microscope as looked_at
from visualizers.figures import calibration, caption, draft_positions, microscope
from visualizers.figures.theme import theme


def by_state(figure) -> dict:
    """State -> its bars."""
    return {one.meta["state"]: one for one in figure.data if one.meta and "state" in one.meta}


def test_round_by_round():
    figure = microscope.round_by_round(looked_at(chain()))
    bars, colours = by_state(figure), theme("light")
    assert {state: list(one.y) for state, one in bars.items()} == {
        "accepted": [2, None, 1],
        "resampled": [None, 1, 1],
        "bonus": [1, None, None],
        "rejected": [None, -1, -1],
        "unreached": [None, -1, None],
    }
    assert bars["resampled"].text == ("", "◆", "◆") and bars["bonus"].text == ("★", "", "")
    for state in ("accepted", "resampled", "bonus", "unreached"):
        assert bars[state].marker.color == colours.state[state]["color"]
    assert bars["rejected"].marker.color == colours.surface["bg"], "open"
    assert bars["unreached"].marker.pattern.shape == "."
    assert list(lanes(figure)[""].y) == [3, 2, 2]
    assert read(figure)[2] == (
        "Round 2: 0 of 2 accepted, then the target's own token; 1 rejected, 1 never reached; "
        "mean acceptance length of the last rounds 2.00."
    )
    assert "mean_acceptance_length 2.00 = 1 + accepted / rounds" in caption(figure)
    assert figure.layout.barmode == "relative"


def test_what_large_trees_waste_is_cut_but_can_be_scrolled_to():
    found = looked_at(chain())
    found["rounds"][1] |= {"drafted": 40}
    figure = microscope.round_by_round(found)
    assert by_state(figure)["unreached"].y[1] == -39
    assert figure.layout.yaxis.range[0] > -8 and "Down to 6 of up to 40" in caption(figure)


def test_acceptance_by_depth():
    found = looked_at(chain())
    figure = draft_positions.acceptance_by_depth(found)
    bars = next(one for one in figure.data if one.type == "bar")
    assert list(bars.y) == [one["of_rounds"] for one in found["depths"]] == pytest.approx([2 / 3, 1 / 3])
    assert list(lanes(figure)[""].y) == [one["of_tested"] for one in found["depths"]]
    theory = next(one for one in figure.data if one.name == "α^depth")
    assert list(theory.y) == pytest.approx([0.6, 0.36])
    assert read(figure)[2] == (
        "Depth 2 (vLLM: position 1): accepted in .33 of all rounds; 3 drafted, 1 of 2 tested (.50); "
        "α^2 = .36."
    )


def test_the_shape_of_the_drafts():
    figure = draft_positions.draft_shape(looked_at(tree()))
    bars = by_state(figure)
    assert list(bars["accepted"].y) == [1, 1] and list(bars["rejected"].y) == [1, None]
    assert list(bars["unreached"].y) == [None, 2]
    assert read(figure)[2] == (
        "Depth 2: 3 tokens drafted in 1 round; 1 accepted, 0 rejected, 2 never reached."
    )


def test_acceptance_by_rank():
    found = looked_at(tree())
    (grid,) = draft_positions.acceptance_by_rank(found).data
    assert [list(row) for row in grid.z] == [
        [None if cell is None else cell["share"] for cell in row["cells"]] for row in found["ranks"]
    ]
    assert grid.text[0][1] == "1.00<br>1/1"
    assert unbroken(grid.hovertext[0][0]) == "Depth 1, rank 1: 0 of 1 tested (.00)."
    wide = {**found, "ranks": [{"depth": 1, "cells": [found["ranks"][0]["cells"][0]] * 9}]}
    (grid,) = draft_positions.acceptance_by_rank(wide).data
    assert grid.text is None and grid.showscale, "no room for numbers: a scale in their place"


def test_accepted_lengths():
    figure = draft_positions.accepted_lengths(looked_at(chain()))
    bars = next(one for one in figure.data if one.type == "bar")
    assert list(bars.x) == [0, 1, 2] and list(bars.y) == [1, 1, 1]
    assert read(figure)[1] == "1 of 3 rounds accepted 1 token."


def test_kinds_fates_and_times():
    found = analyses()["microscope"]
    (kinds,) = microscope.acceptance_by_class(found).data
    assert list(kinds.x) == [row["share"] for row in found["classes"]]
    assert list(kinds.text) == [f"{row['accepted']} of {row['tested']}" for row in found["classes"]]
    went = microscope.drafted_token_fates(found).data
    assert [one.x[0] for one in went] == [row["share"] for row in found["fates"]]
    assert [one.text[0] for one in went] == [str(row["count"]) for row in found["fates"]]
    assert unbroken(went[0].y[0]) == found["fates"][0]["says"]
    (times,) = microscope.drafting_time(found).data
    assert list(times.x) == [found["drafting"]["draft"], found["drafting"]["target"]]
    share = found["drafting"]["draft"] / sum(found["drafting"].values())
    assert times.text[0] == f"{share:.0%}"
    untimed = {**found, "drafting": {"draft": 0, "target": 0}}
    assert caption(microscope.drafting_time(untimed)) == "No forward of this lane was timed."


def test_shares_by_token_are_not_drawn_of_what_was_not_told():
    figure = microscope.acceptance_by_class({**looked_at(chain()), "classes": []})
    assert caption(figure).startswith("This lane was imported without") and not figure.data


def test_expected_and_realised():
    found = looked_at(chain())
    figure = calibration.tokens_per_round(found)
    (bars,) = figure.data
    assert list(bars.x) == pytest.approx([found["expected"]["realised"], found["expected"]["expected"]])
    assert [unbroken(name) for name in bars.y] == ["realised", "expected from α"]
    assert found["expected"]["says"] in caption(figure)
    (bars,) = calibration.tokens_per_round(analyses()["microscope"]).data
    assert len(bars.x) == 3, "where the draft's probabilities are known"


def test_reliability_with_its_intervals():
    found = analyses()["microscope"]
    figure = calibration.reliability(found)
    (diagram,) = found["reliability"]
    line = next(one for one in figure.data if one.meta and one.meta.get("short") == "q")
    assert list(line.x) == [one["mean"] for one in diagram["bins"]]
    assert list(line.y) == [one["share"] for one in diagram["bins"]]
    assert [y + up for y, up in zip(line.y, line.error_y.array, strict=True)] == pytest.approx(
        [one["share_high"] for one in diagram["bins"]]
    )
    assert [y - down for y, down in zip(line.y, line.error_y.arrayminus, strict=True)] == pytest.approx(
        [one["share_low"] for one in diagram["bins"]]
    )
    dotted = next(one for one in figure.data if one.name == "perfectly calibrated")
    assert list(dotted.x) == list(dotted.y) == [0, 1]
    one = {
        "low": 0.2,
        "high": 0.4,
        "mean": 0.3,
        "accepted": 1,
        "tested": 4,
        "share": 0.25,
        "share_low": 0.05,
        "share_high": 0.7,
    }
    by_hand = calibration.reliability(
        {
            **found,
            "reliability": [
                {"short": "q", "name": "the draft's own probability", "error": 0.05, "bins": [one]}
            ],
        }
    )
    assert unbroken(by_hand.data[1].hovertext[0]) == (
        "Where the draft's own probability was .2 to .4, .30 on average, 1 of 4 tested were accepted: .25 "
        "(95% interval .05 to .70)."
    )
    assert caption(by_hand).startswith(
        "Weighted by tokens tested, the draft's own probability is off by .05."
    )
    silent = calibration.reliability({**found, "reliability": []})
    assert caption(silent).startswith("No probability of acceptance") and not silent.data
