"""SuffixDecoding: its worked example by hand, its counts and drafts against a plain count, and its law."""

import random
from collections import Counter

import pytest

from decoders import datastore
from decoders.chooser import Exhaustive
from decoders.datastore import END, concatenated_texts
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.refusal import Refusal
from decoders.speculative.drafters.suffix_tree import Limits as DraftLimits
from decoders.speculative.drafters.suffix_tree import SuffixTree, best, expand, speculations
from decoders.speculative.methods import suffix_decoding
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Note, Propose
from decoders.trace.scores import OTHERS, ScoreName, Table
from tests.helpers.losslessness import law_of_rounds

TEXT = [1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2]


class Reading(TableModel):
    """A table model that reads texts of the letters a, b and c."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 97 for letter in text]


@pytest.fixture
def letters(monkeypatch):
    """A store of three-letter texts in the place of the shipped one."""
    short = ["abcabacca", "aabcb", "cab", "bbaab"]
    monkeypatch.setattr(
        suffix_decoding,
        "encoded",
        lambda name, model: datastore.concatenated_texts([model.encode(t) for t in short]),
    )


def drafted(speculation) -> list[tuple[int, int, int]]:
    """(index of the guess before, token, count) of each guess."""
    return [(guess.parent, guess.token, len(guess.node)) for guess in speculation.guesses]


def test_the_worked_example():
    """1 2 occurs four times: 3 followed twice, 4 once, and once it is the end of the text."""
    found = speculations(SuffixTree(TEXT), TEXT, DraftLimits())
    assert [(one.matched, len(one.match), one.score) for one in found] == [
        (1, 4, 0.5),  # 2: one token, 3, of D 2/4
        (2, 4, 1.0),  # 1 2: then 1, of D 2/4, before 4, of D 1/4
        (3, 2, 1.5),  # 3 1 2: 4 1 2, of D 1/2 each
        (4, 2, 2.0),
        (5, 2, 2.5),  # 4 1 2 3 1 2 occurs only here
    ]
    assert drafted(found[1]) == [(-1, 3, 2), (0, 1, 2)]
    assert best(found) is found[4]
    assert drafted(found[4]) == [(-1, 4, 1), (0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 1, 1)]


def test_a_tree_has_siblings_and_a_path_the_most_frequent_child():
    tree = SuffixTree(TEXT)
    node = dict(tree.matches(TEXT, 2))[2]
    limits = {"alpha": 2.0, "least": 0.25}
    grown = expand(tree, 2, node, DraftLimits(**limits))
    assert drafted(grown) == [(-1, 3, 2), (0, 1, 2), (1, 2, 2), (-1, 4, 1)] and grown.score == 1.75
    assert drafted(expand(tree, 2, node, DraftLimits(**limits, tree=False)))[:3] == drafted(grown)[:3]
    assert all(parent != -1 for parent, *_ in drafted(expand(tree, 2, node, DraftLimits(tree=False)))[1:])


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({}, 5),
        ({"alpha": 0.5}, 2),
        ({"alpha": 0.0}, 0),
        ({"offset": -2.0}, 3),
        ({"alpha": 4.0, "depth": 6}, 1),  # five tokens are matched
        ({"levels": 2}, 2),
        ({"least": 0.51}, 0),
        ({"ends": frozenset({2})}, 2),
    ],
)
def test_a_draft_is_as_long_as_its_limits_allow(limits, count):
    tree = SuffixTree(TEXT)
    node = dict(tree.matches(TEXT, 5))[5]
    assert len(expand(tree, 5, node, DraftLimits(**limits)).guesses) == count


def test_of_equal_scores_the_longer_match_is_used():
    found = speculations(
        SuffixTree([5, 1, 2, END, 5, 1, 2, END]), [7, 5, 1], DraftLimits(alpha=0.0, offset=1.0)
    )
    assert [(one.matched, one.score) for one in found] == [(1, 1.0), (2, 1.0)] and best(found).matched == 2


def brute_force(texts, text, limits) -> tuple[float, int, list[tuple[int, ...]]]:
    """(score, matched, drafted runs) by counting all runs of the texts, for trees and strict limits."""
    counts = Counter(
        tuple(one[i : i + n])
        for one in texts
        for n in range(1, limits.depth + 1)
        for i in range(len(one) - n + 1)
    )
    tokens = {token for one in texts for token in one}
    result = (0.0, 0, [])
    for m in range(1, min(limits.depth, len(text))):
        match, runs = tuple(text[-m:]), [()]
        if not counts[match]:
            break
        while len(runs) - 1 < limits.budget(m):
            free = {(*run, t) for run in runs for t in tokens} - set(runs)
            free = {run for run in free if counts[match + run] >= max(1, limits.least * counts[match])}
            if not free:
                break
            runs.append(max(free, key=lambda run: (counts[match + run], -len(run), run)))
        score = sum(counts[match + run] for run in runs[1:]) / counts[match]
        if score >= result[0] - 1e-12:
            result = (score, m, runs[1:])
    return result


def test_scores_and_matches_are_those_of_a_plain_count():
    """Ties change which tokens are drafted, but not how frequent these are."""
    rng = random.Random(0)
    for _ in range(150):
        size = rng.choice([2, 3, 6])
        texts = [
            [rng.randrange(size) for _ in range(rng.randrange(1, 30))] for _ in range(rng.randrange(1, 4))
        ]
        text = rng.choice([texts[0], [rng.randrange(size) for _ in range(8)]])
        limits = DraftLimits(rng.choice([0.5, 1.0, 2.0]), rng.choice([0.0, 1.0]), rng.choice([0.15, 0.35]), 8)
        got = best(speculations(SuffixTree(concatenated_texts(texts)), text, limits))
        score, matched, runs = brute_force(texts, text, limits)
        assert got.score == pytest.approx(score) and len(got.guesses) == len(runs)
        assert not runs or got.matched == matched


def test_a_tree_that_grows_is_the_tree_of_the_whole_text():
    rng = random.Random(1)
    tokens = [rng.randrange(3) for _ in range(40)]
    growing = SuffixTree()
    for at in range(0, 40, 5):
        growing.extend(tokens[at : at + 5])
    whole = SuffixTree(tokens)
    assert list(growing.matches(tokens, 6)) == list(whole.matches(tokens, 6))


def tables(step, name: str) -> list[Table]:
    return [table for table in step.of(Table) if table.name == name]


def test_a_round_records_scores_and_counts():
    table = Reading(lambda tokens: [0.2, 0.7, 0.1, 0.0, 0.0], 5)
    lane = Lane("suffix_decoding", TEXT, {"target": table}, {"store": "none"}, limits=Limits(12))
    step = lane.advance()
    (scores,) = tables(step, ScoreName.SUFFIX_SCORE)
    assert scores.by_number == {1: [0.5], 2: [1.0], 3: [1.5], 4: [2.0], 5: [2.5]}
    assert (scores.chosen, scores.level, scores.total) == (5, "prompt", 2.5)
    counts = tables(step, ScoreName.CONTINUATIONS)
    assert [(t.total, t.by_number) for t in counts[:2]] == [(2, {4: [1]}), (1, {1: [1]})]
    proposed = [(e.token, e.source) for e in step.of(Propose)][:5]
    assert proposed == [(4, "prompt"), (1, "prompt"), (2, "prompt"), (3, "prompt"), (1, "prompt")]
    assert "The last 5 tokens occur 2 times in this text" in step.of(Note)[-1].text
    lane.close()


def test_rare_followers_are_counted_together(monkeypatch):
    monkeypatch.setattr(suffix_decoding, "LISTED", 1)
    table = Reading(lambda tokens: [0.2, 0.7, 0.1, 0.0, 0.0], 5)
    lane = Lane("suffix_decoding", [0, *TEXT[:8]], {"target": table}, {"store": "none"}, limits=Limits(12))
    first = tables(lane.advance(), ScoreName.CONTINUATIONS)[0]
    assert first.by_number == {3: [1], OTHERS: [1]} and first.total == 3
    lane.close()


def test_the_store_is_used_where_it_promises_more(letters):
    table = Reading(lambda tokens: [0.2, 0.7, 0.1], 3)
    lane = Lane("suffix_decoding", [1, 0, 2, 2], {"target": table}, limits=Limits(12))
    step = lane.advance()
    assert [(e.token, e.source) for e in step.of(Propose)][0] == (0, "store")  # "acc" is followed by "a"
    assert {t.level: t.chosen for t in tables(step, ScoreName.SUFFIX_SCORE)} == {"prompt": None, "store": 3}
    lane.close()


@pytest.mark.parametrize("more", [{}, {"store": "none", "use_tree_spec": False}])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
def test_drawn_text_has_the_target_s_law(letters, more, shape, eos):
    target = Reading(random_table(3, sharpness=2), 3, eos)
    parameters = {"max_spec_factor": 3.0, **shape, **more}
    law = law_of_rounds(Exhaustive(), "suffix_decoding", {"target": target}, parameters, 3)
    assert distance(law, exact_distribution(target, (0,), 3, shape_of(parameters))) < 1e-12


@pytest.mark.parametrize("more", [{}, {"store": "problems"}, {"store": "none"}, {"use_tree_spec": False}])
def test_the_text_is_greedy_s(tiny_model, prompt, more):
    models = {"target": tiny_model("llama")}
    greedy = Lane("greedy", prompt, models, limits=Limits(24)).run()
    trace = Lane("suffix_decoding", prompt, models, more, limits=Limits(24)).run()
    assert trace.output() == greedy.output() and len(trace.steps) <= len(greedy.steps)


def test_a_store_that_is_not_there_is_refused(tiny_model, prompt):
    with pytest.raises(Refusal, match="store must be one of none, "):
        Lane("suffix_decoding", prompt, {"target": tiny_model("llama")}, {"store": "letters"})
