"""ADED: the dossier's PUCT numbers, the table's weights, the search, and a text that stays the target's."""

from copy import deepcopy

import pytest

from decoders import datastore
from decoders.chooser import Exhaustive, Random
from decoders.datastore import concatenated_texts
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.search.tree_search.mcts import Edge
from decoders.speculative.drafters.ngram_mcts import most_visited_paths, nudge, puct, search, trigram_table
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Propose
from tests.helpers.losslessness import law_of_rounds


class Reading(TableModel):
    """A table model that reads texts of the letters a, b and c."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 97 for letter in text]


@pytest.fixture
def letters(monkeypatch):
    monkeypatch.setattr(datastore, "texts", lambda name: ["abcabacca", "aabcb"])


@pytest.mark.parametrize(("weight", "value"), [(0.5, 12.426), (0.1, 3.285)])
def test_the_worth_of_a_visit(weight, value):
    assert puct(Edge((0,), weight, visits=1, value=1.0), 2) == pytest.approx(value, abs=5e-4)


def test_weights_are_shares_that_grow_to_a_cap():
    table = deepcopy(trigram_table(concatenated_texts([[0, 1, 2, 0, 1, 3], [0, 1, 2]])))
    assert table[0, 1] == {2: pytest.approx(2 / 3), 3: pytest.approx(1 / 3)}
    before = 0.0
    for _ in range(100):
        assert nudge(table, [0, 1, 2]) == 1
        assert before <= table[0, 1][2] <= 3.0
        before = table[0, 1][2]
    assert before == 3.0
    nudge(table, [7, 8, 9])
    assert table[7, 8] == {9: 0.04}


def test_only_the_heaviest_successors_are_kept():
    table = trigram_table(concatenated_texts([[0, 1, token] for token in range(20)]))
    assert list(table[0, 1]) == list(range(12))


TABLE = {(0, 1): {2: 0.7, 3: 0.3}, (1, 2): {0: 0.9, 1: 0.1}, (1, 3): {3: 1.0}, (2, 0): {1: 1.0}}


def test_a_long_search_prefers_the_heaviest_path_and_can_be_repeated():
    first = most_visited_paths(search(TABLE, (0, 1), 300, 3, Random(0), ("search", 0)))
    assert first == most_visited_paths(search(TABLE, (0, 1), 300, 3, Random(0), ("search", 0)))
    visits = dict(first)
    assert first[0][0] == (2,) and visits[2, 0] > visits[2, 1]
    deepest = max((path for path, _ in first if len(path) == 3), key=visits.get)
    assert deepest == (2, 0, 1)
    assert max(len(path) for path, _ in first) == 3
    assert visits[2,] + visits[3,] == 300


def test_two_tokens_that_were_never_seen_leave_nothing():
    assert most_visited_paths(search(TABLE, (5, 5), 50, 3, Random(0), ("search", 0))) == []


def test_a_draft_keeps_to_its_budget(letters):
    model = Reading(random_table(3), 3)
    trace = Lane("aded", [0, 1], {"target": model}, {"budget": 4}, limits=Limits(20)).run()
    counts = [sum(e.source == "trigrams" for e in step.of(Propose)) for step in trace.steps]
    assert max(counts) in (3, 4)


@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
def test_drawn_text_has_the_target_s_law(letters, shape, eos):
    models = {"target": Reading(random_table(3, sharpness=2), 3, eos)}
    parameters = {"simulations": 2, "depth": 1, **shape}
    law = law_of_rounds(Exhaustive(), "aded", models, parameters, 4)
    assert distance(law, exact_distribution(models["target"], (0,), 4, shape_of(parameters))) < 1e-12


def test_the_text_is_greedy_s(tiny_model, prompt):
    models = {"target": tiny_model("llama")}
    greedy = Lane("greedy", prompt, models, limits=Limits(20)).run()
    assert Lane("aded", prompt, models, limits=Limits(20)).run().output() == greedy.output()
