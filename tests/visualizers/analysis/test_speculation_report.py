"""The microscope's numbers are those that the hand-made traces were written with."""

import json

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.trace import Trace, from_json
from tests.helpers import tiny_models
from tests.helpers.hand_traces import trace_of
from visualizers.analysis.speculation_report import microscope

WORDS = [b"Once", b" the", b" dog", b" cat", b" ran", b"."]  # token 0 is the prompt
THE, DOG, CAT, RAN, STOP = 1, 2, 3, 4, 5


def chain() -> Trace:
    """Two drafts each: both accepted and a bonus; the first rejected; the second rejected."""
    return trace_of(
        WORDS,
        [
            Propose(1, 0, THE, None, "draft"),
            Propose(2, 1, DOG, None, "draft"),
            Verdict(1, "accepted"),
            Verdict(2, "accepted"),
            Propose(3, 2, RAN, None, "target"),
            Verdict(3, "bonus"),
            Commit([1, 2, 3], [None] * 3),
        ],
        [
            Propose(4, 3, STOP, None, "draft"),
            Propose(5, 4, THE, None, "draft"),
            Verdict(4, "rejected"),
            Verdict(5, "never reached"),
            Propose(6, 3, THE, None, "target"),
            Verdict(6, "resampled"),
            Commit([6], [None]),
        ],
        [
            Propose(7, 6, CAT, None, "draft"),
            Propose(8, 7, STOP, None, "draft"),
            Verdict(7, "accepted"),
            Verdict(8, "rejected"),
            Propose(9, 7, RAN, None, "target"),
            Verdict(9, "resampled"),
            Commit([7, 9], [None] * 2),
        ],
    )


def tree() -> Trace:
    """One round, two levels of two: the second sibling and its first child pass; one more is pruned."""
    return trace_of(
        WORDS,
        [
            Propose(1, 0, THE, None, "draft", 0),
            Propose(2, 0, DOG, None, "draft", 1),
            Propose(3, 1, CAT, None, "draft", 0),
            Propose(4, 2, RAN, None, "draft", 0),
            Propose(5, 2, STOP, None, "draft", 1),
            Propose(6, 2, CAT, None, "draft", 2),
            Verdict(6, "pruned"),
            Verdict(1, "rejected"),
            Verdict(2, "accepted"),
            Verdict(4, "accepted"),
            Verdict(3, "never reached"),
            Verdict(5, "never reached"),
            Propose(7, 4, THE, None, "target"),
            Verdict(7, "bonus"),
            Commit([2, 4, 7], [None] * 3),
        ],
    )


def values(found: dict) -> dict:
    return {one["name"]: one["value"] for one in found["metrics"]}


def test_vllm_metrics_of_a_chain_with_their_formulas():
    found = microscope(chain())
    assert values(found) == {
        "num_drafts": 3,
        "num_draft_tokens": 6,
        "draft_token_candidates": 6,
        "num_accepted_tokens": 3,
        "draft_acceptance_rate": 0.5,
        "mean_acceptance_length": 2.0,
        "cut_rounds": 0,
        "mean_acceptance_length_uncut": 2.0,
        "num_accepted_tokens_per_pos": [2, 1],
        "acceptance_rate_per_pos": pytest.approx([2 / 3, 1 / 3]),
        "acceptance_histogram": [1, 1, 1],
    }
    assert all(one["words"] and one["formula"] for one in found["metrics"])
    assert found["sentence"] == (
        "3 rounds drafted 6 tokens and 3 were accepted: 2.00 tokens per round, the target's own included."
    )


def test_places_of_a_chain_and_what_became_of_its_tokens():
    found = microscope(chain())
    assert [(d["depth"], d["rounds"], d["drafted"], d["tested"], d["accepted"]) for d in found["depths"]] == [
        (1, 3, 3, 3, 2),
        (2, 3, 3, 2, 1),
    ]
    assert [d["of_tested"] for d in found["depths"]] == pytest.approx([2 / 3, 1 / 2])
    assert [(f["fate"], f["count"]) for f in found["fates"]] == [
        ("accepted", 3),
        ("rejected", 2),
        ("after a rejection", 1),
    ]
    assert sum(f["share"] for f in found["fates"]) == pytest.approx(1.0)
    rows = [(r["drafted"], r["accepted"], r["rejected"], r["own"], r["recent"]) for r in found["rounds"]]
    assert rows == [(2, 2, 0, "bonus", 3.0), (2, 0, 1, "resampled", 2.0), (2, 1, 1, "resampled", 2.0)]


def test_expected_tokens_by_hand():
    """Five levels were tested and three accepted: alpha = .6, so 1 + .6 + .36 = 1.96 tokens per round."""
    found = microscope(chain())["expected"]
    assert found["alpha"] == pytest.approx(0.6) and found["realised"] == 2.0
    assert found["expected"] == pytest.approx(1.96) and found["says"].startswith("as if every token")


@pytest.mark.parametrize(("budget", "worth"), [(1, 0.6), (4, 1.7712), (8, 2.66357)])
def test_what_the_draft_s_own_probabilities_predict_is_the_worth_of_the_tree(budget, worth):
    """OPT-Tree's worked example: .6 .3 .1 at the root, .8 .1 .1 after a, .5 .4 .1 after b; what is pruned
    does not count.
    """
    rows = {(): [0.6, 0.3, 0.1], (0,): [0.8, 0.1, 0.1], (1,): [0.5, 0.4, 0.1], (2,): [0.4, 0.3, 0.3]}
    model = TableModel(lambda tokens: rows[tuple(tokens[1:][-1:])], 3)
    parameters = {"budget": budget, "max_depth": 6, "delta": 0.0, "temperature": 1.0}
    lane = Lane("opt_tree", [0], {"target": model, "draft": model}, parameters, limits=Limits(16))
    lane.advance()
    assert microscope(lane.trace)["expected"]["by_draft"] == pytest.approx(1 + worth, abs=1e-5)
    lane.close()
    assert microscope(chain())["expected"]["by_draft"] is None


def test_a_tree_by_depth_and_rank_and_the_two_ways_of_not_being_reached():
    found = microscope(tree())
    first, second = found["ranks"]
    assert first["cells"] == [
        {"rank": 1, "tested": 1, "accepted": 0, "share": 0.0},
        {"rank": 2, "tested": 1, "accepted": 1, "share": 1.0},
    ]
    assert second["cells"] == [{"rank": 1, "tested": 1, "accepted": 1, "share": 1.0}, None]
    assert {f["fate"]: f["count"] for f in found["fates"]} == {
        "accepted": 2,
        "rejected": 1,
        "after a rejection": 1,
        "beside an accepted one": 1,
        "not sent": 1,
    }
    assert values(found)["num_accepted_tokens_per_pos"] == [1, 1] and values(found)["num_drafts"] == 1
    assert values(found)["num_draft_tokens"] == 5 and values(found)["draft_token_candidates"] == 6
    assert "drafted 5 tokens (sent to the target, of 6 candidates)" in found["sentence"]


def test_only_counted_steps_and_lanes_that_draft_nothing():
    assert values(microscope(chain(), 1))["mean_acceptance_length"] == 3.0
    empty = microscope(trace_of(WORDS, [Propose(1, 0, THE, None, "target"), Commit([1], [None])]))
    assert empty["metrics"] == [] and empty["sentence"] == "This lane has drafted nothing so far."
    assert microscope(chain(), 0)["metrics"] == []


@pytest.mark.parametrize("strategy", ["speculative", "speculative_tree", "prompt_lookup", "token_recycling"])
def test_a_decoded_lane_live_and_loaded_agrees_with_its_bill(strategy):
    models = {"target": tiny_models.make(seed=0, endings=0.0), "draft": tiny_models.make(seed=1, endings=0.0)}
    prompt = models["target"].encode("the cat and the dog and the")
    trace = Lane(strategy, prompt, models, {"temperature": 1.0}, limits=Limits(24)).run()
    found, bill = microscope(trace), trace.costs.metrics()
    loaded = from_json(json.loads(json.dumps(trace.to_json())))
    assert microscope(loaded) == found
    metrics = values(found)
    assert metrics["num_draft_tokens"] == trace.costs.proposed > 0
    assert metrics["num_accepted_tokens"] == trace.costs.accepted
    assert metrics["draft_acceptance_rate"] == bill["draft_acceptance_rate"]
    assert sum(metrics["num_accepted_tokens_per_pos"]) == metrics["num_accepted_tokens"]
    assert sum(f["count"] for f in found["fates"]) == metrics["num_draft_tokens"]
    json.dumps(found, allow_nan=False)
