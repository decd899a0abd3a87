"""Experiments on drafts, states and likelihoods: what they count is that of traces, and of brute force."""

import random
from itertools import combinations, product

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Note
from explorer import experiments
from explorer.experiments import equal_to_greedy, measures, several_guesses
from explorer.experiments.acceptance_by_rank import WIDTH, shares, traces
from explorer.experiments.sweeps import many_texts, modes_by_length
from explorer.experiments.without_decoding import entropy_threshold, information_surplus


def test_a_text_that_greedy_wrote_is_its_likeliest_token_by_token(models):
    target, prompt = models["target"], [40, 41, 42]
    text = [*prompt, *Lane("greedy", prompt, {"target": target}, limits=Limits(6)).run().output()]
    found = entropy_threshold.positions(target, text, len(prompt))
    assert len(found) == len(text) - 3 and all(hit for _, hit in found)
    assert not all(hit for _, hit in entropy_threshold.positions(target, [*text, 0, 0], len(prompt)))


def test_the_limit_of_the_entropy_is_found_again():
    draw = random.Random(0).uniform
    known = [(entropy, entropy < 1.0) for entropy in (draw(0, 3) for _ in range(5000))]
    tau, w, _, accuracy = entropy_threshold.learned(known)
    assert tau == pytest.approx(1.0, abs=0.05) and w < 0 and accuracy > 0.98
    assert entropy_threshold.learned([(0.5, True)] * 20) is None
    assert entropy_threshold.learned([(h, not hit) for h, hit in known]) is None


def test_the_graph_of_a_lattice_is_read_from_its_trace(models):
    """Its note counts the same paths; a path without merges has its own log-probability."""
    prompt = [40, 41, 42]
    for merge in ("zip", "never"):
        given = {"max_forwards": 60, "ngram": 1, "k_best": 3, "merge": merge}
        trace = Lane("lattice", prompt, {"target": models["target"]}, given, limits=Limits(6)).run()
        paths, texts = many_texts.lattice_texts(trace)
        notes = [e.text for s in trace.steps for e in s.of(Note)]
        assert f": {paths:,} paths to " in [text for text in notes if " paths to " in text][-1]
        assert len(texts) == paths > 3
        if merge == "never":
            for text, score in texts:
                assert score == pytest.approx(many_texts.own_logprob(models, prompt, text), abs=1e-3)


def test_rows_of_an_earlier_answer_are_kept_and_the_missing_ones_added(models, short, monkeypatch):
    """In the order of a whole run; a strategy that promises nothing any more has no row."""
    monkeypatch.setattr(equal_to_greedy, "lossless", lambda: ["speculative", "jacobi", "lookahead"])
    asked_for = []
    monkeypatch.setattr(
        equal_to_greedy,
        "compared",
        lambda models, name, *rest: asked_for.append(name) or "equal",
    )
    known = [["lookahead", 1, 1, 1], ["gone", 3, 0, 0]]
    found = experiments.answered(experiments.find("equal-to-greedy"), models, known=known)
    assert found["rows"] == [["speculative", 3, 0, 0], ["jacobi", 3, 0, 0], ["lookahead", 1, 1, 1]]
    assert asked_for == ["speculative"] * 3 + ["jacobi"] * 3


def test_only_rows_of_the_same_models_are_added_to_and_only_where_rows_stand_alone():
    add = experiments.find("equal-to-greedy")
    names = experiments.find_stored(add.name)["models"]
    assert experiments.known_rows(add, names["target"], names["draft"])
    with pytest.raises(ValueError, match="gave the stored rows; leave out --add"):
        experiments.known_rows(add, "llama-tiny-moe", names["draft"])
    with pytest.raises(ValueError, match="cannot be continued row by row; --add works for equal-to-greedy"):
        experiments.known_rows(experiments.find("spec-bench"), names["target"], names["draft"])


def test_a_draft_that_is_the_target_has_its_first_guess_accepted_always(models, short):
    pair = {"target": models["target"], "draft": models["target"]}
    assert shares(traces(pair, 0.0)) == [1.0] + [0.0] * (WIDTH - 1)
    assert shares(traces(pair, 1.0)) == [1.0] + [0.0] * (WIDTH - 1)


def test_states_that_know_nothing_have_no_surplus():
    """Tokens drawn for themselves, states at random: what the probes find is within noise of nothing."""
    draw = torch.Generator().manual_seed(0)
    tokens = torch.randint(6, (60, 40), generator=draw)
    gained = information_surplus.surpluses(torch.randn(60, 40, 8, generator=draw), tokens, 2)
    assert abs(float(gained.mean())) < 0.02


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_states_that_know_where_a_period_stands_have_a_surplus_at_every_horizon(k):
    """The word abbabaa over and over: a token alone leaves open what comes, its place does not."""
    word = torch.tensor([0, 1, 1, 0, 1, 0, 0])
    start = torch.randint(7, (16, 1), generator=torch.Generator().manual_seed(1))
    place = (start + torch.arange(20)) % 7
    gained = information_surplus.surpluses(torch.eye(7)[place], word[place], k)
    assert float(gained.mean()) > 0.2


def test_tokens_per_forward_and_acceptance_are_those_of_a_round_by_hand():
    """The draft always says 1; the target says 1 after an even number of tokens: every other guess passes."""
    target = TableModel(lambda tokens: [0, 1, 0] if len(tokens) % 2 else [0, 0, 1], 3)
    draft = TableModel(lambda tokens: [0, 1, 0], 3)
    settings = {"num_assistant_tokens": 2, "temperature": 0.0}
    trace = Lane("speculative", [0], {"target": target, "draft": draft}, settings, limits=Limits(8)).run()
    assert trace.output() == [1, 2] * 4
    # each round: the first guess passes, the second does not, and the target's own token follows
    assert [sum(len(c.nodes) for c in step.of(Commit)) for step in trace.steps] == [2, 2, 2, 2]
    assert measures.tokens_per_forward([trace]) == 2.0
    assert measures.acceptance([trace]) == pytest.approx(4 / 7)  # the last round drafts one token only
    assert measures.acceptance([]) is None


def test_the_likeliest_text_of_each_length_is_brute_force_s():
    """Four tokens of which the last is the end, every length up to five."""

    def row(text):
        luck = random.Random(repr(text))
        weights = torch.tensor([luck.random() ** 2 + 0.01 for _ in range(4)])
        return (weights / weights.sum()).log()

    for length in range(6):
        text, logprob, proven = modes_by_length.mode(row, 3, length, 10_000)

        def whole(tokens):
            return sum(float(row(tokens[:at])[token]) for at, token in enumerate((*tokens, 3)))

        best = max(product(range(3), repeat=length), key=whole)
        assert proven and text == best and logprob == pytest.approx(whole(best))
    few = modes_by_length.mode(row, 3, 4, 5)
    assert not few[2] and few[1] <= modes_by_length.mode(row, 3, 4, 10_000)[1]


P, Q = torch.tensor([0.3, 0.4, 0.3]).double(), torch.tensor([0.6, 0.3, 0.1]).double()


def test_how_often_one_of_several_guesses_is_taken_on_a_worked_example():
    """Row by row for one, two and three guesses."""
    dice = torch.Generator().manual_seed(0)
    for rule, wanted in (
        (several_guesses.target_first, (0.33, 0.513, 0.6249)),
        (several_guesses.recursive, (0.7, 0.82, 0.848)),
        (several_guesses.kseq, (0.7, 0.84, 0.875)),
        (several_guesses.ceiling, (0.7, 0.89, 0.971)),
        (lambda p, q, k: several_guesses.distinct(p, q, k, 3, dice), (0.7, 0.875, 1.0)),
    ):
        assert [rule(P, Q, count) for count in (1, 2, 3)] == pytest.approx(wanted, abs=1e-5)


def test_the_ceiling_is_the_least_cut_of_all_and_no_rule_passes_it():
    torch.manual_seed(0)
    for _ in range(20):
        p, q = torch.randn(2, 6).double().mul(2).softmax(-1)
        q = torch.where(q < 0.02, 0.0, q)
        q = q / q.sum()
        for count in (1, 2, 4):
            cuts = [
                float(p[list(kept)].sum() + 1 - q[list(kept)].sum() ** count)
                for size in range(7)
                for kept in combinations(range(6), size)
            ]
            most = several_guesses.ceiling(p, q, count)
            assert most == pytest.approx(min(cuts), abs=1e-12)
            for rule in (several_guesses.target_first, several_guesses.recursive, several_guesses.kseq):
                assert rule(p, q, count) <= most + 1e-9


def test_a_draft_that_is_the_target_is_always_right():
    dice = torch.Generator().manual_seed(0)
    assert several_guesses.recursive(P, P, 2) == several_guesses.ceiling(P, P, 2) == pytest.approx(1.0)
    assert several_guesses.distinct(P, P, 2, 2, dice) == pytest.approx(1.0)
