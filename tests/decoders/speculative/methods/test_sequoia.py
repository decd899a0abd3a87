"""Sequoia's dynamic program on the dossier's numbers, and drafts that have its form."""

import itertools

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import skeleton
from decoders.speculative.drafters.optimal_tree import best_size, forms
from decoders.speculative.interfaces import drafted
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Propose
from decoders.trace.scores import Table
from tests.helpers.losslessness import law_of_rounds

CHANCES = (0.6, 0.2, 0.1)


def worth(form: dict, chances=CHANCES, path=(), chance=1.0) -> float:
    """F of a form, from its definition."""
    return chance + sum(
        worth(form, chances, (*path, slot), chance * chances[slot]) for slot in range(form.get(path, 0))
    )


def every_form(nodes: int, chances: tuple[float, ...], levels: int):
    """All forms of so many nodes, root included."""
    if nodes == 1:
        yield {}
    if nodes == 1 or levels == 1:
        return
    for children in range(1, min(len(chances), nodes - 1) + 1):
        for cuts in itertools.combinations(range(1, nodes - 1), children - 1):
            sizes = [b - a for a, b in itertools.pairwise((0, *cuts, nodes - 1))]
            for below in itertools.product(*(list(every_form(s, chances, levels - 1)) for s in sizes)):
                form = {(): children}
                for slot, inner in enumerate(below):
                    form |= {(slot, *path): count for path, count in inner.items()}
                yield form


def test_the_values_of_the_best_trees():
    found = forms(CHANCES, 9, 9)
    wanted = [1, 1.6, 1.96, 2.176, 2.376, 2.5056, 2.6256, 2.7456, 2.8456]
    assert [found.expected(n, 9) for n in range(1, 10)] == pytest.approx(wanted)
    assert [found.expected(n, 3) for n in (4, 5)] == pytest.approx([2.16, 2.28])
    assert found.skeleton(5, 9) == {(): 2, (0,): 1, (0, 0): 1}  # a chain of three and a second child


@pytest.mark.parametrize("chances", [CHANCES, (0.5, 0.4), (0.3, 0.3, 0.3), (0.2, 0.7)])
@pytest.mark.parametrize("levels", [2, 3, 7])
def test_no_form_is_worth_more(chances, levels):
    found = forms(chances, 7, levels)
    for nodes in range(1, 8):
        values = [worth(form, chances) for form in every_form(nodes, chances, levels)]
        if not values:
            assert found.expected(nodes, levels) == -float("inf")
            continue
        assert found.expected(nodes, levels) == pytest.approx(max(values))
        form = found.skeleton(nodes, levels)
        assert worth(form, chances) == pytest.approx(max(values)) and sum(form.values()) == nodes - 1


def test_only_first_guesses_give_a_chain_and_costs_decide_the_size():
    assert forms((0.7, 0.0, 0.0), 5, 8).skeleton(5, 8) == {(0,) * depth: 1 for depth in range(4)}
    seconds = {1: 1.0, 2: 1.0, 4: 1.05, 8: 1.2, 16: 1.6}
    nodes, levels, gain = best_size(forms(CHANCES, 16, 10), seconds, 0.1)
    assert (nodes, levels) == (8, 3) and gain == pytest.approx(1.8286, abs=1e-4)


def drafted_paths(temperature: float, form: dict) -> list[tuple[int, ...]]:
    model = TableModel(random_table(3, vocabulary=5), 5)
    lane = Lane("sequoia", [0], {"target": model, "draft": model}, {"temperature": temperature})

    drafted(DRAFT_MODEL, skeleton(form, temperature)).propose(lane)
    slots = {lane.tip: ()}
    for event in lane.events:
        if isinstance(event, Propose):
            slots[event.node] = (*slots[event.parent], event.slot)
    return sorted(path for path in slots.values() if path)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_draft_has_the_form_that_was_asked_for(temperature):
    form = {(): 3, (0,): 2, (2,): 1, (0, 1): 2}
    wanted = sorted((*path, slot) for path, count in form.items() for slot in range(count))
    assert drafted_paths(temperature, form) == wanted


@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("verifier", ["token by token", "traversal"])
def test_it_has_the_target_s_law(shape, verifier):
    models = {
        "target": TableModel(random_table(3, sharpness=3), 3, frozenset({2})),
        "draft": TableModel(random_table(4, sharpness=3), 3, frozenset({2})),
    }
    parameters = {"budget": 5, "acceptance": [0.5, 0.3, 0.1], "verifier": verifier, **shape}
    law = law_of_rounds(Exhaustive(), "sequoia", models, parameters, 3, rounds=1)
    assert distance(law, exact_distribution(models["target"], (0,), 3, shape_of(parameters))) < 1e-12


def test_the_table_and_the_form_that_was_taken_are_told():
    model, parameters = TableModel(random_table(1), 3), {"budget": 5, "max_depth": 3, "acceptance": CHANCES}
    lane = Lane("sequoia", [0], {"target": model, "draft": model}, parameters, limits=Limits(6))
    rows = [e for e in lane.advance().of(Table) if e.name == "tokens per round"]
    assert [e.level for e in rows] == ["1 deep", "2 deep", "3 deep"]
    assert rows[0].unit == "nodes" and list(rows[0].by_number) == [1, 2, 3]  # as many children as chances
    found = forms(CHANCES, 6, 4)
    assert rows[2].by_number[4] == [found.expected(5, 4)] and rows[2].chosen == 5
    assert rows[2].total == found.expected(6, 4)
    lane.close()


def test_chances_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="add up to 1 at most"):
        Lane("sequoia", [0], {}, {"acceptance": "0.9,0.2"}, limits=Limits(1))
