"""Drafted means sent to the target, as vLLM counts: of stored runs, and of rounds written by hand."""

import functools
from pathlib import Path

import pytest

from decoders.trace.costs import Costs
from decoders.trace.endings import END_OF_TEXT, MAX_NEW_TOKENS
from decoders.trace.events import Commit, Forward, Propose, Step, Verdict
from decoders.trace.trace import Trace, load

STORED = Path(__file__).resolve().parents[3] / "assets" / "examples" / "methods"
VERIFY = Forward("target", "verify", 3, 1, 0.0, 0.1)


@functools.cache
def stored(name: str) -> Trace:
    return load(STORED / f"{name}.json.gz")


@pytest.mark.parametrize(
    ("name", "candidates", "drafted", "accepted"),
    [
        ("eagle2", 88, 28, 7),  # reranked
        ("eagle3", 172, 68, 6),
        ("dream", 324, 120, 18),
        ("mixture_of_attentions", 324, 120, 18),
        ("gumiho", 94, 58, 6),
        ("opt_tree", 34, 16, 8),  # the best paths
        ("redrafter", 18, 12, 6),  # beams
        ("tetris", 9, 8, 8),  # not submitted
        ("rasd", 75, 67, 20),  # implausible
        ("pearl", 29, 26, 23),  # given up while the target verified
        ("duodecoding", 39, 30, 23),
        ("specbranch", 65, 35, 23),
        ("medusa", 23, 23, 6),  # nothing is dropped
    ],
)
def test_what_the_target_never_saw_was_a_candidate_and_not_drafted(name, candidates, drafted, accepted):
    costs = stored(name).costs
    assert (costs.draft_token_candidates, costs.proposed, costs.accepted) == (candidates, drafted, accepted)
    assert costs.metrics()["draft_acceptance_rate"] == accepted / drafted
    assert costs.totals()["draft_token_candidates"] == candidates


def test_the_valid_token_of_pass_is_drafted_and_accepted_as_its_card_says():
    """Eleven rounds of one valid token and up to four guesses, of which none passed."""
    costs = stored("pass").costs
    assert costs.proposed == 42 + 11 and costs.accepted == 11
    assert costs.metrics()["mean_acceptance_length"] == 2.0


def test_candidates_of_a_flow_are_no_drafts():
    assert stored("drax").costs.metrics() == {} and stored("drax").costs.draft_token_candidates == 0


@pytest.mark.parametrize(("name", "rounds"), [("bass", 2), ("exspec", 2), ("smartspec", 3), ("tetris", 2)])
def test_a_step_that_sends_no_draft_is_no_round(name, rounds):
    """Their forwards verify the drafts of other texts, too."""
    metrics = stored(name).costs.metrics()
    assert len(metrics["per_step_drafted"]) == rounds and 0 not in metrics["per_step_drafted"]
    assert metrics["mean_acceptance_length"] == 1 + stored(name).costs.accepted / rounds


def test_a_token_that_waits_a_round_is_drafted_in_the_round_that_verifies_it():
    costs = Costs()
    first = [Propose(1, 0, 5, -0.1, "draft"), Propose(2, 1, 5, -0.1, "draft"), VERIFY]
    costs.add(Step(0, [*first, Verdict(1, "accepted"), Commit([1], [-0.1])]))
    assert costs.per_step_drafted == [1] and costs.draft_token_candidates == 2
    costs.add(Step(1, [VERIFY, Verdict(2, "accepted"), Commit([2], [-0.1])]))
    assert costs.per_step_drafted == costs.per_step_accepted == [1, 1]


def test_a_token_that_passed_and_was_cut_off_was_drafted():
    costs = Costs()
    draft = [Propose(1, 0, 5, -0.1, "draft"), Propose(2, 1, 5, -0.1, "draft"), VERIFY]
    costs.add(Step(0, [*draft, Verdict(1, "accepted"), Verdict(2, "pruned"), Commit([1], [-0.1])]))
    assert (costs.proposed, costs.accepted) == (2, 1)


def drafted_by_two(drafted: int) -> Costs:
    """Rounds of two accepted tokens and the target's own, then one of `drafted` accepted tokens alone."""
    costs, node = Costs(), 0
    for number, count in enumerate((2, 2, drafted)):
        draft = [Propose(node + i + 1, node + i, 5, -0.1, "draft") for i in range(count)]
        nodes = [event.node for event in draft]
        own = [Propose(node + count + 1, node + count, 6, -0.1, "target")] if count == 2 else []
        committed = nodes + [event.node for event in own]
        verdicts = [Verdict(n, "accepted") for n in nodes] + [Verdict(e.node, "bonus") for e in own]
        commit = Commit(committed, [-0.1] * len(committed))
        costs.add(Step(number, [*draft, VERIFY, *own, *verdicts, commit]))
        node = committed[-1]
    return costs


def test_rounds_that_the_end_of_the_text_cut_are_shown_apart():
    costs = drafted_by_two(1)
    metrics = costs.metrics(END_OF_TEXT)
    assert metrics["mean_acceptance_length"] == pytest.approx(1 + 5 / 3)
    assert metrics["cut_rounds"] == 1 and metrics["mean_acceptance_length_uncut"] == 3.0
    assert costs.metrics("Stopped by hand.")["cut_rounds"] == 0


def test_rounds_whose_draft_reaches_the_limit_are_shown_apart():
    """Of seven tokens: the second round drafts the fifth, the third round the seventh."""
    costs = drafted_by_two(1)
    assert costs.new_tokens == 7
    metrics = costs.metrics(MAX_NEW_TOKENS.format(7))
    assert metrics["cut_rounds"] == 1 and metrics["mean_acceptance_length_uncut"] == 3.0
    run = stored("eagle2")
    assert run.ended.startswith("Reached max_new_tokens") and run.costs.metrics(run.ended)["cut_rounds"] == 1


def test_a_text_that_ends_with_the_target_s_own_token_cuts_no_round():
    costs = drafted_by_two(2)
    assert costs.metrics(END_OF_TEXT)["cut_rounds"] == 0
