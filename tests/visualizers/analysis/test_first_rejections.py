"""Why rounds ended: the causes of rejections on traces written by hand, and on a real lane."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from tests.helpers import tiny_models
from tests.helpers.hand_traces import trace_of
from visualizers.analysis import rejection_causes as module
from visualizers.analysis.drafted_tokens import drafted_tokens
from visualizers.analysis.first_rejections import Alone, counted, first_rejections
from visualizers.analysis.lane_stats import LaneFacts

WORDS = [b"Once", b" the", b" dog", b" cat", b" sun"]
THE, DOG, CAT, SUN = 1, 2, 3, 4
SURE, UNSURE = 1.9 * math.log(2), 2.0 * math.log(2)  # nats


def second_rejected(q: float, entropy: float, siblings: int = 1):
    """A draft of two tokens whose second one is rejected."""
    others = [Propose(9 + i, 1, SUN, math.log(0.1), "draft", slot=1 + i) for i in range(siblings - 1)]
    return trace_of(
        WORDS,
        [
            Distribution(0, "target", [[THE, math.log(0.9)]], 0.1, 0.5),
            Distribution(1, "target", [[CAT, math.log(0.8)]], 0.2, entropy),
            Propose(1, 0, THE, math.log(0.5), "draft"),
            Propose(2, 1, DOG, math.log(q), "draft"),
            *others,
            Verdict(1, "accepted", p=0.9, q=0.5),
            Verdict(2, "rejected", p=0.1, q=q),
            *(Verdict(other.node, "rejected", p=0.05) for other in others),
            Propose(3, 1, CAT, None, "target"),
            Verdict(3, "resampled"),
            Commit([1, 3], [None, None]),
        ],
    )


RIGHT, WRONG = [True, True], [True, False]
KNOWN = [True, True]


@pytest.mark.parametrize(
    ("trace", "alone", "cause"),
    [
        (second_rejected(0.5, SURE), None, module.OVER),
        (second_rejected(0.49, SURE), None, module.DOUBT),
        (second_rejected(0.9, UNSURE), None, module.UNSURE),
        (second_rejected(0.9, UNSURE, siblings=2), None, module.TREE),
        (second_rejected(0.9, UNSURE), Alone(RIGHT, KNOWN), module.DRIFT),
        (second_rejected(0.9, UNSURE), Alone(RIGHT, KNOWN, sees_path=False), module.DEPTH),
        (second_rejected(0.9, UNSURE), Alone(WRONG, KNOWN), module.UNSURE),
        (second_rejected(0.9, SURE), Alone([None, None], KNOWN), module.OVER),
        (second_rejected(0.9, SURE, siblings=2), Alone(RIGHT, [True, False]), module.VOCABULARY),
    ],
)
def test_the_first_cause_that_applies_is_the_rejections(trace, alone, cause):
    (rejection,) = first_rejections(trace, alone=alone)
    assert rejection["cause"] == cause and cause in module.CAUSES
    assert (rejection["place"], rejection["depth"]) == (1, 2)
    assert (rejection["token"], rejection["instead"]) == ("␣dog", "␣cat")


def test_without_the_drafters_guesses_the_report_and_the_table_name_the_same_cause():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    for strategy, chosen in (("speculative", {"temperature": 0.9}), ("speculative_tree", {})):
        trace = Lane(strategy, [40, 41, 42], models, chosen, 0, Limits(30)).run()
        causes = {row["node"]: row["cause"] for row in drafted_tokens(trace)}
        assert all(causes[one["node"]] == one["cause"] for one in first_rejections(trace))


def test_a_first_guess_neither_drifts_nor_is_deep():
    """At depth 1 every drafter has the target's true features."""
    trace = trace_of(
        WORDS,
        [
            Distribution(0, "target", [[CAT, math.log(0.9)]], 0.1, 0.1),
            Propose(1, 0, DOG, math.log(0.6), "draft"),
            Verdict(1, "rejected", p=0.05, q=0.6),
            Propose(2, 0, CAT, None, "target"),
            Verdict(2, "resampled"),
            Commit([2], [None]),
        ],
    )
    (rejection,) = first_rejections(trace, alone=Alone([True], [True]))
    assert rejection["cause"] == module.OVER


def test_a_round_has_at_most_one_rejection_and_there_the_target_resamples():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    for strategy, chosen in (("speculative", {"temperature": 0.9}), ("speculative_tree", {})):
        trace = Lane(strategy, [40, 41, 42], models, chosen, 0, Limits(30)).run()
        facts, rejections = LaneFacts(trace), first_rejections(trace)
        resampled = sum(made.own == "resampled" for made in facts.rounds)
        assert len(rejections) == len({one["round"] for one in rejections}) == resampled > 0
        assert sum(counted(rejections).values()) == len(rejections)
        assert all(one["fate"] == "rejected" for one in rejections)
