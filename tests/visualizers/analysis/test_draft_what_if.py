"""Recomputed acceptance: by hand on small texts, and against lanes that really ran with the other shape."""

import math

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from visualizers.analysis.draft_what_if import (
    Place,
    agreement,
    expected_rounds,
    pass_probability,
    places,
    rounds_exactly,
    what_if,
)
from visualizers.analysis.speculation_report import microscope

LENGTH = 40


def place(rank: int | None, sure: float = 0.9) -> Place:
    return Place(rank, None if rank is None else sure, None)


def models(agreement: float = 0.7) -> dict:
    """Tables over six tokens; the draft's favourite is the target's in about that share of places."""

    def row(seed: int, tokens: tuple[int, ...]) -> list[float]:
        draw = torch.Generator().manual_seed(hash((seed, *tokens[-3:], len(tokens))) % 2**31)
        return (2 * torch.randn(6, generator=draw, dtype=torch.float64)).softmax(0).tolist()

    def draft(tokens: tuple[int, ...]) -> list[float]:
        draw = torch.Generator().manual_seed(hash((7, *tokens[-3:], len(tokens))) % 2**31)
        same = float(torch.rand(1, generator=draw)) < agreement
        return row(1 if same else 2, tokens)

    return {"target": TableModel(lambda t: row(1, t), 6), "draft": TableModel(draft, 6)}


def decoded(depth: int, temperature: float = 0.0, seed: int = 0):
    chosen = {"num_assistant_tokens": depth, "temperature": temperature}
    return Lane("speculative", [0], models(), chosen, seed, Limits(LENGTH)).run()


def test_rounds_of_a_greedy_text_by_hand():
    """Chains of two: 1 1 2, 1 1 1. Single guesses: 1 1, 2, 1 1, 1. Pairs at each level never miss."""
    text = [place(rank) for rank in (1, 1, 2, 1, 1, 1)]
    assert rounds_exactly(text, [1, 1], 0.0) == (2, 2)
    assert rounds_exactly(text, [1], 0.0) == (4, 4)
    assert rounds_exactly(text, [2] * 5, 0.0) == (1, 1)


def test_an_unknown_place_gives_the_best_and_the_worst_case():
    text = [place(1), place(None), place(1), place(1)]
    assert rounds_exactly(text, [1, 1, 1], 0.0) == (1, 2)
    assert rounds_exactly([place(1), place(1), place(None), place(1)], [1, 1], 0.0) == (2, 2)


def test_drafting_stops_after_an_unsure_place():
    text = [place(1), place(1, sure=0.2), place(1), place(1), place(1), place(1)]
    assert rounds_exactly(text, [1] * 5, 0.0) == (1, 1)
    assert rounds_exactly(text, [1] * 5, 0.5) == (2, 2)


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 8])
def test_greedy_chains_are_those_of_lanes_that_really_ran(depth):
    """A lane with the same depth: the very number. Others: inside the range, which is one number if known."""
    taken = len(decoded(depth).steps)
    for other in (1, 3, 8):
        found = what_if(decoded(other), None, [1] * depth)
        low, high = found["own"]["rounds"]
        assert found["exact"] and low <= taken <= high
        assert found["chains"][depth - 1] == found["own"]
        if other == depth:
            assert low == high == taken == found["run"]["rounds"]
            assert found["own"]["tokens"] == [LENGTH / taken] * 2


def test_greedy_trees_are_those_of_lanes_that_really_ran():
    shape = [3, 2, 1]
    tree = Lane("speculative_tree", [0], models(), {"widths": shape}, limits=Limits(LENGTH)).run()
    low, high = what_if(decoded(8), None, shape)["own"]["rounds"]
    assert low <= len(tree.steps) <= high
    assert what_if(tree, None, shape)["own"]["rounds"] == [len(tree.steps)] * 2
    assert what_if(tree, None, shape)["own"]["size"] == 3 + 6 + 6


def test_the_chance_of_a_place_by_hand():
    p, q = {0: 0.5, 1: 0.3}, {1: 0.6, 0: 0.2}  # .2 of each is not named
    assert pass_probability(p, q, 1, tails=0.0) == pytest.approx(0.3 + 0.2)
    assert pass_probability(p, q, 1, tails=1.0) == pytest.approx(0.5 + 0.4)
    assert pass_probability(p, q, 2, tails=0.0) == pass_probability(p, q, 2, tails=1.0) == pytest.approx(0.8)
    assert pass_probability(p, q, 1, tails=0.5) == pytest.approx(0.5 + 0.2)
    assert pass_probability(p, {2: 0.6, 0: 0.2}, 2, tails=1.0) == pytest.approx(0.5 + 0.2)


def test_unnamed_mass_agrees_as_far_as_the_tests_of_the_lane_say():
    """Named mass passes with .5, all of it at most with .9: seven of ten passed tests lie half way."""
    text = [Place(1, 0.6, ({0: 0.5, 1: 0.3}, {1: 0.6, 0: 0.2})), place(None)]
    assert agreement(text, [True] * 7 + [False] * 3) == pytest.approx(0.5)
    assert agreement(text, [True]) == 1.0 and agreement(text, [False]) == 0.0 == agreement(text, [])


def test_expected_rounds_by_hand():
    """Two places, chains of one: the second token is the own one if the first passes."""
    text = [Place(1, 0.9, ({0: 0.5, 1: 0.5}, {0: 1.0})), place(None)]
    assert expected_rounds(text, [1], 0.0, tails=0.0) == pytest.approx(1.5)


def test_estimates_for_drawn_texts_lie_near_what_many_lanes_realise():
    traces, other = ([decoded(depth, 1.0, seed=seed) for seed in range(30)] for depth in (6, 2))
    guesses = [what_if(trace, None, [1, 1])["own"]["rounds"] for trace in traces]
    realised = sum(len(trace.steps) for trace in other) / len(other)
    assert all(low == high for low, high in guesses)
    estimated = sum(low for low, _ in guesses) / len(guesses)
    assert estimated == pytest.approx(realised, rel=0.12)
    assert not what_if(traces[0], None, [1, 1])["exact"]
    assert "Estimates" in what_if(traces[0], None, [1, 1])["sentence"]


def test_lanes_without_stored_offers_and_unusable_shapes_say_so():
    lane = Lane("prompt_lookup", [0, 1, 0, 1], models(), {}, limits=Limits(8)).run()
    assert "does not hold what a draft model offered" in what_if(lane, None, [1])["sentence"]
    trace = decoded(2)
    for widths, stop in (([], 0.0), ([0], 0.0), ([9], 0.0), ([1] * 33, 0.0), ([1], 1.5)):
        with pytest.raises(ValueError, match="level by level|from 0 to 1"):
            what_if(trace, None, widths, stop)


def test_known_places_are_those_that_the_microscope_counts():
    """A chain of one asks the draft at the first place of each round and at no other."""
    trace = decoded(1)
    found, taken = places(trace, None)
    assert sum(one.rank is not None for one in found) == len(microscope(trace)["rounds"])
    assert taken == len(trace.steps) and len(found) == LENGTH
    assert all(one.sure is None or math.isclose(one.sure, max(one.offers[1].values())) for one in found)
