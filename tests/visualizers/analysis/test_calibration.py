"""Reliability: shares of hand-made rounds, and of a lane that was decoded."""

import pytest

from decoders.lane import Lane, Limits
from tests.helpers import tiny_models
from visualizers.analysis.calibration import OWN, PREDICTED, reliability, wilson
from visualizers.analysis.lane_stats import ACCEPTED, BEHIND, REJECTED, Drafted, LaneFacts, Round


def drafted(fate: str, chance: float | None, predicted: float | None = None) -> Drafted:
    return Drafted(1, 1, "other", 0, 1, 0, fate, chance, predicted)


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


def test_predictions_have_a_diagram_of_their_own():
    rounds = [Round(1, [drafted(ACCEPTED, 0.3, 0.9), drafted(REJECTED, None, 0.1)], [])]
    own, predicted = reliability(rounds)
    assert (own["name"], predicted["name"]) == (OWN[1], PREDICTED[1])
    assert own["error"] == pytest.approx(0.7) and predicted["error"] == pytest.approx(0.1)


def test_without_numbers_there_is_no_diagram():
    assert reliability([Round(1, [drafted(ACCEPTED, None), drafted(BEHIND, 0.4)], [])]) == []


def test_a_traced_lane_has_the_drafts_own_probabilities_and_the_predictions():
    models = {"target": tiny_models.make(seed=0, endings=0.0), "draft": tiny_models.make(seed=1, endings=0.0)}
    prompt = models["target"].encode("the cat and the dog")
    settings = {"temperature": 1.0, "predictor": "draft's own probability", "stop": 0.9}
    trace = Lane("specdec_pp", prompt, models, settings, limits=Limits(24)).run()
    own, predicted = reliability(LaneFacts(trace).rounds)
    assert (own["name"], predicted["name"]) == (OWN[1], PREDICTED[1])
    tested = sum(b["tested"] for b in own["bins"])
    assert tested >= sum(b["tested"] for b in predicted["bins"]) > 0
    assert sum(b["accepted"] for b in own["bins"]) == trace.costs.accepted


def test_wilson_s_interval():
    assert wilson(10, 100) == pytest.approx((0.0552, 0.1744), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
