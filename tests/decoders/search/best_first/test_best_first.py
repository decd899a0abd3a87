"""Best-first and depth-first search find the most likely text of a table model, as does beam search at full
width; they open no state twice, lose no token, and say what became of each state.
"""

import math
import random

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.trace.events import Forward, Note, Propose, Verdict
from decoders.trace.number_format import many
from decoders.trace.scores import Rank

V, LENGTH, END = 4, 4, 3


def table(seed: int, v: int = V, eos: frozenset[int] = frozenset({END})) -> TableModel:
    """Random conditional distributions, some sharp, over texts that may end."""

    def row(text: tuple[int, ...]) -> list[float]:
        luck = random.Random(repr((seed, text)))
        weights = [luck.random() ** luck.choice((1, 4)) + 1e-3 for _ in range(v)]
        return [w / sum(weights) for w in weights]

    return TableModel(row, v, eos)


def run(model, new_tokens: int = LENGTH, strategy: str = "best_first", prompt=(0,), **parameters) -> Lane:
    lane = Lane(
        strategy, list(prompt), {"target": model}, parameters, limits=Limits(max_new_tokens=new_tokens)
    )
    lane.run()
    return lane


def notes(lane: Lane) -> str:
    return " ".join(note.text for step in lane.trace.steps for note in step.of(Note))


def best_of(model: TableModel, length: int = LENGTH, penalty: float = 0.0) -> tuple[int, ...]:
    """The text with the best score, by looking at all of them."""
    law = exact_distribution(model, (0,), length)
    return max(law, key=lambda text: math.log(law[text]) / len(text) ** penalty)


@pytest.mark.parametrize("frontier", ["best first", "depth first"])
@pytest.mark.parametrize("penalty", [0.0, 0.75, 1.0])
def test_the_likeliest_text_is_found_with_and_without_length_normalisation(frontier, penalty):
    for seed in range(12):
        model = table(seed)
        given = {"frontier": frontier, "length_penalty": penalty, "max_expansions": 500}
        lane = run(model, children=1 + seed % 3, batch_size=1 + seed % 5, **given)
        assert tuple(lane.trace.output()) == best_of(model, penalty=penalty), seed
        assert "has a higher score" in notes(lane)


def test_beam_search_at_full_width_finds_it_too():
    for seed in range(12):
        model = table(seed)
        lane = run(model, strategy="beam", num_beams=V ** (LENGTH - 1), length_penalty=0.0)
        assert tuple(lane.trace.output()) == best_of(model), seed


def test_a_narrow_beam_and_greedy_miss_what_the_search_finds():
    missed = {"greedy": 0, "beam": 0}
    for seed in range(12):
        model = table(seed)
        missed["greedy"] += tuple(run(model, strategy="greedy").trace.output()) != best_of(model)
        narrow = run(model, strategy="beam", num_beams=2, length_penalty=0.0)
        missed["beam"] += tuple(narrow.trace.output()) != best_of(model)
    assert missed["greedy"] > 2 and missed["beam"] > 0


def test_states_are_opened_in_the_order_of_their_sums():
    lane = run(table(1, eos=frozenset()), batch_size=1, max_expansions=500)
    nodes = lane.trace.nodes()
    sums = {e.node: e.total for s in lane.trace.steps for e in s.of(Rank) if e.name == "priority"}
    opened = list(dict.fromkeys(e.parent for s in lane.trace.steps for e in s.of(Propose)))[1:]
    order = [sums[n] for n in opened]
    assert order == sorted(order, reverse=True) and len(order) > 3
    for node, total in sums.items():  # a sum is that of the path
        path = lane.tree.path(node, above=0)
        rows = [lane.models["target"].table(tuple(lane.tree.text(nodes[n][0]))) for n in path]
        assert total == pytest.approx(sum(math.log(r[nodes[n][1]]) for r, n in zip(rows, path, strict=True)))


@pytest.mark.parametrize("frontier", ["best first", "depth first"])
def test_no_state_is_proposed_twice_or_scored_twice(frontier):
    lane = run(table(2), frontier=frontier, max_expansions=500)
    proposed = [(e.parent, e.token) for s in lane.trace.steps for e in s.of(Propose)]
    assert len(set(proposed)) == len(proposed)
    scored = sum(e.tokens for s in lane.trace.steps for e in s.of(Forward))
    assert scored == len({parent for parent, _ in proposed})


def test_children_come_a_few_at_a_time_and_none_is_lost():
    """All texts but one are nearly impossible: to find it, every token must come into the queue."""
    hidden = (2, 1, 2, 0)

    def row(text):
        at = len(text) - 1
        if text[1:] == hidden[:at] and at:
            return [0.97 if t == hidden[at] else 0.01 for t in range(V)]
        return [0.25 + (0.001 if t != hidden[0] else -0.003) for t in range(V)] if not at else [0.25] * V

    lane = run(TableModel(row, V), children=1, batch_size=1)
    assert tuple(lane.trace.output()) == hidden
    assert len([e for s in lane.trace.steps for e in s.of(Propose) if e.parent == 0]) == V


def test_the_order_by_score_reaches_an_end_sooner_and_does_not_claim_to_be_exact():
    model = table(3, v=6)
    exact = run(model, 6, length_penalty=0.75, max_expansions=5000, batch_size=1)
    quick = run(model, 6, length_penalty=0.75, order="score", max_expansions=5000, batch_size=1)
    assert len(quick.trace.steps) < len(exact.trace.steps)
    assert "may still wait" in notes(quick) and "has a higher score" in notes(exact)


@pytest.mark.parametrize("frontier", ["best first", "depth first"])
@pytest.mark.parametrize("budget", [1, 2, 6])
def test_a_spent_budget_still_gives_a_whole_text_and_says_that_nothing_is_proven(frontier, budget):
    model = table(5, v=8, eos=frozenset())
    lane = run(model, 6, frontier=frontier, max_expansions=budget, batch_size=1)
    assert len(lane.trace.output()) == 6
    assert f"The budget of {many(budget, 'expansion')} is spent" in notes(lane)
    assert "nothing is proven" in notes(lane)


def test_depth_first_takes_the_best_finished_text_when_the_budget_ends():
    model = table(5, v=8, eos=frozenset())
    early = run(model, 3, frontier="depth first", max_expansions=4)
    assert "the best finished text" in notes(early)
    greedy = run(model, 3, strategy="greedy")
    totals = [lane.trace.costs.totals()["logprob"] for lane in (early, greedy)]
    assert totals[0] >= totals[1] - 1e-12  # the first descent is greedy


def test_every_waiting_state_gets_its_place_in_the_queue_at_the_end():
    lane = run(table(2), max_expansions=500)
    last = {e.node: e for s in lane.trace.steps for e in s.of(Verdict)}
    pruned = [e for e in last.values() if e.status == "pruned"]
    assert pruned and all("still in the queue, priority" in e.reason for e in pruned)
    assert sum(e.status == "finished" for e in last.values()) >= 1


def test_on_a_real_model_the_search_is_never_worse_than_a_beam(tiny_model):
    model = tiny_model("llama")
    for first in range(0, 60, 20):
        found = run(model, 4, prompt=(first, first + 1), max_expansions=400)
        beam = run(model, 4, prompt=(first, first + 1), strategy="beam", num_beams=4, length_penalty=0.0)
        if "has a higher score" in notes(found):
            totals = [lane.trace.costs.totals()["logprob"] for lane in (found, beam)]
            assert totals[0] >= totals[1] - 1e-4


def test_slots_are_given_back(tiny_model):
    model = tiny_model("llama")
    run(model, 6, prompt=(5, 6, 7), max_expansions=30)
    assert model.engine.cache.used == 0
