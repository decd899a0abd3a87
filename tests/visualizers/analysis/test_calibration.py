"""Reliability: shares of hand-made rounds, and of a lane that was decoded."""

import pytest

from decoders.lane import Lane, Limits
from tests.helpers import tiny_models
from visualizers.analysis.calibration import FORETOLD, OWN, reliability, wilson
from visualizers.analysis.lane_stats import ACCEPTED, BEHIND, REJECTED, Drafted, LaneFacts, Round


def drafted(fate: str, chance: float | None, foretold: float | None = None) -> Drafted:
    return Drafted(1, 1, "other", 0, 1, 0, fate, chance, foretold)


def test_shares_and_the_error_by_hand():
    """Of .9, .9 and 1 two pass (mean .9333, share .6667), of .1 none: (3 x .2667 + 1 x .1) / 4 = .225."""
    tokens = [
        drafted(ACCEPTED, 0.9),
        drafted(ACCEPTED, 1.0),
        drafted(REJECTED, 0.9),
        drafted(REJECTED, 0.1),
        drafted(BEHIND, 0.1),
        drafted(REJECTED, None),
    ]
    (found,) = reliability([Round(1, tokens, [])])
    assert (found["short"], found["name"]) == OWN and found["error"] == pytest.approx(0.225)
    low, high = found["bins"]
    assert (low["low"], low["high"], low["tested"], low["accepted"]) == (0.0, 0.2, 1, 0)
    assert (high["low"], high["high"], high["tested"], high["accepted"]) == (0.8, 1.0, 3, 2)
    assert high["mean"] == pytest.approx(2.8 / 3) and high["share"] == pytest.approx(2 / 3)
    assert (high["share_low"], high["share_high"]) == wilson(2, 3)


def test_what_was_foretold_has_a_diagram_of_its_own():
    rounds = [Round(1, [drafted(ACCEPTED, 0.3, 0.9), drafted(REJECTED, None, 0.1)], [])]
    own, foretold = reliability(rounds)
    assert (own["name"], foretold["name"]) == (OWN[1], FORETOLD[1])
    assert own["error"] == pytest.approx(0.7) and foretold["error"] == pytest.approx(0.1)


def test_without_numbers_there_is_no_diagram():
    assert reliability([Round(1, [drafted(ACCEPTED, None), drafted(BEHIND, 0.4)], [])]) == []


def test_a_traced_lane_tells_what_the_draft_thought_and_what_was_foretold():
    models = {"target": tiny_models.make(seed=0, endings=0.0), "draft": tiny_models.make(seed=1, endings=0.0)}
    prompt = models["target"].encode("the cat and the dog")
    settings = {"temperature": 1.0, "predictor": "draft's own probability", "stop": 0.9}
    trace = Lane("specdec_pp", prompt, models, settings, limits=Limits(24)).run()
    own, foretold = reliability(LaneFacts(trace).rounds)
    assert (own["name"], foretold["name"]) == (OWN[1], FORETOLD[1])
    tested = sum(b["tested"] for b in own["bins"])
    assert tested >= sum(b["tested"] for b in foretold["bins"]) > 0
    assert sum(b["accepted"] for b in own["bins"]) == trace.costs.accepted


def test_wilson_s_interval():
    assert wilson(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
