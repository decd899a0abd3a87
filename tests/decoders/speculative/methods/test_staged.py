"""Staged speculative decoding: the same draft with and without the n-gram, in fewer draft forwards, and the
target's law over all three levels.
"""

import pytest

from decoders import datastore
from decoders.chooser import Exhaustive
from decoders.datastore import concatenated_texts
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.methods.staged import from_table, from_text, successors
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Commit, Propose
from tests.helpers.losslessness import law_of_rounds


class Reading(TableModel):
    """A table model that reads texts of the letters a, b and c."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - 97 for letter in text]


@pytest.fixture
def letters(monkeypatch):
    monkeypatch.setattr(datastore, "texts", lambda name: ["abcabacca", "aabcb"])


def trio(eos: frozenset[int] = frozenset(), sharpness: float = 1.0) -> dict[str, TableModel]:
    """Target and draft over three tokens; the n-gram is the third level."""
    return {
        "target": Reading(random_table(1, sharpness=sharpness), 3, eos),
        "draft": TableModel(random_table(2, sharpness=sharpness), 3, eos),
    }


def test_the_table_names_the_most_frequent_successors():
    table = successors(concatenated_texts([[0, 1, 2, 0, 1, 3], [0, 1, 2], [5, 4], [5, 3]]))
    assert table[0, 1] == 2 and table[0,] == 1
    assert table[5,] == 3  # a tie: the smaller token
    assert (4,) not in table


def test_the_table_backs_off_and_stops():
    ahead = from_table({(0, 1): 2, (2,): 0, (1, 2): 1})
    assert ahead([0, 1], 2) == [2, 1]
    assert ahead([0, 1], 1) == [2]
    assert ahead([7, 2], 3) == [0]  # the pair was never seen; what follows 0 neither
    assert ahead([9], 3) == []


def test_the_text_itself_can_guess():
    assert from_text([1, 2, 3, 4, 1, 2], 2) == [3, 4]
    assert from_text([1, 2, 3], 2) == []


@pytest.mark.parametrize("stage", ["table", "text"])
@pytest.mark.parametrize("widths", [[2, 1], [1, 1, 1], [1, 2]])
@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
def test_three_levels_have_the_target_s_law(letters, stage, widths, shape, eos):
    models = trio(eos)
    parameters = {"stage": stage, "widths": widths, "guesses_ahead": 2, **shape}
    law = law_of_rounds(Exhaustive(), "staged", models, parameters, len(widths) + 1, rounds=1)
    assert (
        distance(law, exact_distribution(models["target"], (0,), len(widths) + 1, shape_of(parameters)))
        < 1e-12
    )


def test_three_levels_over_several_rounds(letters):
    models, parameters = trio(), {"widths": [2, 1], "temperature": 1.0}
    law = law_of_rounds(Exhaustive(), "staged", models, parameters, 3)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def drafts(trace) -> list[list[tuple]]:
    """What was written down in each round, without who guessed it first."""
    return [[(e.token, e.slot, e.logprob) for e in step.of(Propose)] for step in trace.steps]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_draft_is_the_same_and_costs_fewer_forwards(letters, temperature, seed):
    models = trio(sharpness=3.0)
    parameters = {"temperature": temperature, "widths": [2, 1, 1, 1]}

    def decoded(stage):
        return Lane("staged", [0], models, {"stage": stage, **parameters}, seed, Limits(40)).run()

    without, with_table = decoded("off"), decoded("table")
    assert drafts(with_table) == drafts(without) and with_table.output() == without.output()
    assert with_table.costs.draft_forwards < without.costs.draft_forwards
    assert with_table.costs.target_forwards == without.costs.target_forwards


def test_tree_and_stage_each_save_what_they_are_for(letters):
    """Ablation: the tree saves target forwards, the stage draft forwards, and neither touches the text."""
    models, found = trio(sharpness=2.0), {}
    for tree, widths in (("tree", [3, 2, 2]), ("chain", [1, 1, 1])):
        for stage in ("table", "off"):
            parameters = {"stage": stage, "widths": widths}
            found[tree, stage] = Lane("staged", [0], models, parameters, limits=Limits(60)).run()
    assert len({tuple(trace.output()) for trace in found.values()}) == 1
    costs = {key: trace.costs for key, trace in found.items()}
    for stage in ("table", "off"):
        assert costs["tree", stage].target_forwards < costs["chain", stage].target_forwards
    for tree in ("tree", "chain"):
        assert costs[tree, "table"].draft_forwards < costs[tree, "off"].draft_forwards
        assert costs[tree, "table"].proposed == costs[tree, "off"].proposed


def test_without_the_table_it_is_ordinary_tree_decoding(tiny_model, prompt):
    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    alone = Lane("staged", prompt, models, {"stage": "off", "widths": [3]}, limits=Limits(20)).run()
    tree = Lane("speculative_tree", prompt, models, {"widths": [3]}, limits=Limits(20)).run()
    assert drafts(alone) == drafts(tree) and alone.output() == tree.output()


@pytest.mark.parametrize("stage", ["table", "text"])
def test_on_a_transformer_nothing_changes_but_the_draft_s_work(tiny_model, stage):
    models = {"target": tiny_model("llama"), "draft": tiny_model("llama", 1)}
    prompt = [40, 41, 42, 40, 41]
    for temperature in (0.0, 0.8):
        parameters = {"temperature": temperature}
        off = Lane("staged", prompt, models, {"stage": "off", **parameters}, limits=Limits(30)).run()
        on = Lane("staged", prompt, models, {"stage": stage, **parameters}, limits=Limits(30)).run()
        assert on.output() == off.output()
        assert on.costs.draft_forwards <= off.costs.draft_forwards
        assert on.costs.draft_tokens >= off.costs.draft_tokens
    for model in models.values():
        assert model.engine.cache.used == 0


def test_a_draft_that_copies_the_text_is_read_in_one_forward():
    def cycle(text):
        return [1.0 if token == (text[-1] + 1) % 3 else 0.0 for token in range(3)]

    models = {"target": Reading(cycle, 3), "draft": TableModel(cycle, 3)}
    parameters = {"stage": "text", "widths": [1, 1, 1, 1], "guesses_ahead": 3}
    trace = Lane("staged", [0, 1, 2, 0, 1, 2, 0], models, parameters, limits=Limits(20)).run()
    assert trace.output() == [(1 + i) % 3 for i in range(20)]
    assert trace.costs.draft_forwards == trace.costs.target_forwards == 4
    committed = {n for step in trace.steps for e in step.of(Commit) for n in e.nodes}
    sources = [e.source for step in trace.steps for e in step.of(Propose) if e.node in committed]
    assert sources[:5] == ["prompt", "prompt", "prompt", "draft", "target"]
