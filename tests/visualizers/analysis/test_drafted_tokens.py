"""One row per drafted token, and the cause of each rejection, on traces written by hand and on real lanes."""

import csv
import io
import math

import pytest

from decoders.lane import Lane, Limits
from decoders.trace.events import Commit, Distribution, Propose, Verdict
from decoders.trace.imports.dialects import trace_of as from_response
from decoders.trace.trace import Trace
from tests.helpers import tiny_models
from tests.helpers.hand_traces import trace_of
from visualizers.analysis import drafted_tokens as module
from visualizers.analysis import rejection_causes as causes
from visualizers.analysis.drafted_tokens import by_entropy, drafted_csv, drafted_tokens, grouped

WORDS = [b"Once", b" the", b" dog", b" cat", b"ing", b"=1+1"]  # token 0 is the prompt
THE, DOG, CAT, ING, SUM = 1, 2, 3, 4, 5


def one_rejection(
    token: int, instead: int, best: float = 0.9, nats: float = 1.0, guessed: float | None = 0.5, **verdict
) -> Trace:
    """A draft of two: the first is rejected, the second was never reached. `guessed`: the draft's own
    probability of the first.
    """
    logprob = None if guessed is None else math.log(guessed)
    return trace_of(
        WORDS,
        [
            Distribution(0, "target", [[instead, math.log(best)]], 1 - best, nats),
            Propose(1, 0, token, logprob, "draft"),
            Propose(2, 1, DOG, math.log(0.5), "draft"),
            Verdict(1, "rejected", **verdict),
            Verdict(2, "never reached"),
            Propose(3, 0, instead, None, "target"),
            Verdict(3, "resampled"),
            Commit([3], [None]),
        ],
    )


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        (one_rejection(THE, CAT, p=0.0, q=0.5, u=0.1), causes.OUTSIDE),
        (one_rejection(THE, CAT, p=0.3, q=0.5, u=0.9), causes.LUCK),
        (one_rejection(THE, CAT, best=0.5, p=0.3), causes.TIE),
        (one_rejection(THE, CAT, best=0.7, p=0.3), causes.OVER),
        (one_rejection(ING, CAT, p=0.1, q=0.5, u=0.9), causes.OVER),
        (one_rejection(THE, CAT, nats=1.4, p=0.1, q=0.5, u=0.9), causes.UNSURE),
        (one_rejection(THE, CAT, p=0.1, q=0.05), causes.DOUBT),
        (one_rejection(THE, CAT, guessed=None, p=0.1), causes.WITHOUT),
    ],
)
def test_the_cause_of_a_rejection(trace, cause):
    rejected, behind = drafted_tokens(trace)
    assert rejected["cause"] == cause and cause in causes.CAUSES
    assert rejected["context"] == "Once" and rejected["instead"] in ("␣cat", "ing")
    assert (rejected["discarded"], behind["fate"], behind["cause"]) == (1, "after a rejection", None)


def test_siblings_that_all_fail_are_not_in_the_tree():
    trace = trace_of(
        WORDS,
        [
            Propose(1, 0, THE, math.log(0.5), "draft", 0),
            Propose(2, 0, DOG, math.log(0.3), "draft", 1),
            Propose(3, 1, CAT, math.log(0.9), "draft", 0),
            Verdict(1, "rejected", p=0.1, q=0.5, u=0.9),
            Verdict(2, "rejected", p=0.1, q=0.3, u=0.9),
            Verdict(3, "never reached"),
            Propose(4, 0, CAT, None, "target"),
            Verdict(4, "resampled"),
            Commit([4], [None]),
        ],
    )
    rows = drafted_tokens(trace)
    assert [row["cause"] for row in rows] == [causes.TREE, causes.TREE, None]
    assert [(row["depth"], row["rank"], row["discarded"]) for row in rows] == [
        (1, 1, 1),
        (1, 2, 0),
        (2, 1, 0),
    ]
    (group,) = grouped(rows, "cause")
    assert group == {
        "cause": causes.TREE,
        "rejected": 2,
        "tested": 2,
        "discarded": 1,
        "causes": {causes.TREE: 2},
        "example": "Once “␣the”; “␣cat” written instead",
    }


def test_by_token_it_says_how_many_of_its_tests_failed_and_why():
    models = {"target": tiny_models.make(seed=0), "draft": tiny_models.make(seed=1)}
    trace = Lane("speculative", [1, 2, 3], models, {"temperature": 1.0}, 3, Limits(60)).run()
    rows = drafted_tokens(trace)
    groups = grouped(rows, "token")
    assert [group["rejected"] for group in groups] == sorted(
        (group["rejected"] for group in groups), reverse=True
    )
    for group in groups:
        own = [row for row in rows if row["token"] == group["token"] and row["u"] is not None]
        assert group["tested"] == len(own) >= group["rejected"] == sum(group["causes"].values())


def test_acceptance_by_entropy_counts_every_test_whose_place_is_known():
    models = {"target": tiny_models.make(seed=0), "draft": tiny_models.make(seed=1)}
    trace = Lane("speculative", [1, 2, 3], models, {"temperature": 1.0}, 3, Limits(60)).run()
    rows = drafted_tokens(trace)
    tested = [row for row in rows if row["fate"] in ("accepted", "rejected")]
    bins = by_entropy(rows)
    assert sum(one["tested"] for one in bins) == len(tested)
    assert sum(one["accepted"] for one in bins) == sum(row["fate"] == "accepted" for row in tested)
    for one in bins:
        high = math.inf if one["high"] is None else one["high"]
        inside = [row for row in tested if one["low"] <= row["entropy"] < high]
        assert one["tested"] == len(inside) and one["share"] == one["accepted"] / len(inside)
        assert len(one["examples"]) <= 3
    unknown = one_rejection(THE, CAT, p=0.0, q=0.5)
    assert by_entropy(drafted_tokens(unknown))[0]["low"] == 1.0  # one nat is 1.44 bits


def test_an_imported_lane_says_that_its_file_names_no_rejected_token():
    content = [{"token": word, "logprob": -0.5} for word in (" a", " b", " c")]
    spec = {"per_step_drafted": [3], "per_step_accepted": [1]}
    record = {"choices": [{"logprobs": {"content": content}}], "metrics": {"speculative_decoding": spec}}
    rows = [row for row in drafted_tokens(from_response(record)) if row["fate"] == "rejected"]
    assert [(row["cause"], row["token"], row["instead"]) for row in rows] == [(causes.HIDDEN, "□", "␣c")]


@pytest.mark.parametrize("parameters", [{"temperature": 1.0}, {"temperature": 0.0}])
def test_a_real_lane_has_a_row_for_every_drafted_token_with_the_numbers_of_its_test(parameters):
    models = {"target": tiny_models.make(seed=0), "draft": tiny_models.make(seed=1)}
    trace = Lane("speculative", [1, 2, 3], models, parameters, 3, Limits(40)).run()
    rows = drafted_tokens(trace)
    assert len(rows) == trace.costs.proposed
    verdicts = [event for step in trace.steps for event in step.of(Verdict) if event.status == "rejected"]
    rejected = [row for row in rows if row["fate"] == "rejected"]
    assert rejected and [(row["p"], row["u"]) for row in rejected] == [(v.p, v.u) for v in verdicts]
    assert all(row["cause"] in causes.CAUSES for row in rejected)
    output = trace.output()
    for row in rows:
        if row["fate"] == "accepted":
            assert output[row["position"] - 1] == row["token_id"] and row["instead"] is None
    assert drafted_tokens(trace, 2) == [row for row in rows if row["step"] <= 2]


def test_the_table_as_csv_gives_no_formulas_and_leaves_the_unknown_empty():
    table = list(csv.DictReader(io.StringIO(drafted_csv(one_rejection(SUM, CAT, p=0.0, q=0.5)))))
    assert table[0]["token"] == "'=1+1" and table[0]["u"] == "" and table[0]["p"] == "0.0"
    assert [row["fate"] for row in table] == ["rejected", "after a rejection"]


def test_the_text_before_a_token_begins_with_a_whole_word_where_it_is_cut():
    assert module.end_of("Once upon", 9) == "Once upon"
    assert module.end_of("Once upon a time", 8) == "…a time"
    assert module.end_of("Once upon a time", 6) == "…a time"  # cut between words: nothing more is left out
    assert module.end_of("Onceuponatime", 4) == "…time"
    assert module.end_of("Once upon time ", 6) == "…time "
