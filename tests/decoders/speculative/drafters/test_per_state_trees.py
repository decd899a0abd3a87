"""Trees by state: the dossier's worked chain, and what a budget of rows leaves."""

import random

import numpy as np
import pytest

from decoders.speculative.drafters.per_state_trees import (
    StateTree,
    best_rows,
    expected_tokens,
    last_accepted,
    path_values,
    planned,
    transitions,
    with_slots,
)

ACCURACY = ((0.5, 0.2), (0.4, 0.1))
WORKED = {1: StateTree({(0,): 2, (1,): 1}), 2: StateTree({(0,): 1, (1,): 1, (0, 0): 2})}


def test_values_and_ends_of_the_worked_example():
    values = path_values(ACCURACY, [(0,), (1,), (0, 0)])
    assert values == pytest.approx({(0,): 0.5, (1,): 0.2, (0, 0): 0.2})
    assert last_accepted(values) == pytest.approx({(): 0.3, (0,): 0.3, (1,): 0.2, (0, 0): 0.2})


def test_the_worked_chain():
    """The dossier's numbers: pi (5/13, 8/13) and 1.823 tokens per forward; with an idle state 1.633."""
    tokens, stationary = expected_tokens(ACCURACY, WORKED)
    assert transitions(ACCURACY, WORKED)[1:, 1:].tolist() == [
        pytest.approx([0.2, 0.8]),
        pytest.approx([0.5, 0.5]),
    ]
    assert stationary.tolist() == pytest.approx([0.0, 5 / 13, 8 / 13])
    assert tokens == pytest.approx(1.823, abs=5e-4)
    tokens, stationary = expected_tokens(ACCURACY, WORKED, idle=True)
    assert stationary.tolist() == pytest.approx([0.2308, 0.2959, 0.4734], abs=5e-5)
    assert tokens == pytest.approx(1.633, abs=5e-4)


def test_the_formula_is_what_a_simulation_of_the_chain_gives():
    """A hundred thousand forwards, drawn path by path: within a hundredth."""
    rng, state, committed, steps = random.Random(0), 2, 0, 100_000
    for _ in range(steps):
        path, tree = (), WORKED[state]
        while True:  # at each node the target's token is one of the ranks, or none of them
            shares = ACCURACY[len(path)] if len(path) < len(ACCURACY) else ()
            drawn, rank = rng.random(), 0
            while rank < len(shares) and drawn >= shares[rank]:
                drawn -= shares[rank]
                rank += 1
            if rank == len(shares) or (*path, rank) not in tree.slots:
                break
            path = (*path, rank)
        committed += 1 + len(path)
        state = tree.slots[path] if path else 2
    assert committed / steps == pytest.approx(expected_tokens(ACCURACY, WORKED)[0], rel=0.01)


MEASURED = tuple(tuple(0.5 * 0.5**rank * 0.8**depth for rank in range(8)) for depth in range(3))


@pytest.mark.parametrize("rows", [2, 5, 6, 9, 16, 24, 64])
def test_forwards_have_no_more_rows_than_allowed(rows):
    for state, tree in planned(MEASURED, 3, rows).items():
        assert tree.rows + 4 <= max(rows, 4)
        assert all(1 <= slots <= 3 and len(path) <= state for path, slots in tree.slots.items())
        assert all(path[:-1] in tree.slots for path in tree.slots if len(path) > 1)


def test_more_rows_never_promise_less():
    promised = [
        expected_tokens(MEASURED, planned(MEASURED, 3, rows))[0] for rows in (4, 6, 8, 12, 16, 24, 40)
    ]
    assert promised[0] == pytest.approx(1.0)
    assert promised == sorted(promised) and promised[-1] > 1.7


def test_the_slot_that_is_missed_least_goes_first():
    """Losses of a second slot: .3 x .2 after (0), .2 x .2 after (1) and (0, 0): one of the latter goes."""
    tree = with_slots(ACCURACY, [(0,), (1,), (0, 0)], 2, room=8, gains=(0.0, 0.7, 0.9))
    assert tree.slots == {(0,): 2, (1,): 1, (0, 0): 2}
    tree = with_slots(ACCURACY, [(0,), (1,), (0, 0)], 2, room=1, gains=(0.0, 0.7, 0.9))
    assert set(tree.slots.values()) == {1}


def test_the_size_that_pays_most_depends_on_what_rows_cost():
    free = dict.fromkeys((1, 8, 16, 32), 1.0)
    dear = {rows: 1 + 0.2 * (rows - 1) for rows in (1, 8, 16, 32)}
    assert best_rows(MEASURED, 3, free)[0] == 32 and best_rows(MEASURED, 3, dear)[0] == 8
    size, pays = best_rows(MEASURED, 3, free)
    assert pays == pytest.approx(expected_tokens(MEASURED, planned(MEASURED, 3, size))[0])


def test_states_are_shares_of_forwards():
    _, stationary = expected_tokens(MEASURED, planned(MEASURED, 3, 24))
    assert stationary.sum() == pytest.approx(1.0) and (stationary > -1e-12).all()
    assert np.isclose(stationary @ transitions(MEASURED, planned(MEASURED, 3, 24)), stationary).all()
