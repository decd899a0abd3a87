"""The probability of leaving a loop, against a table whose probabilities are known."""

import math

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.logits.loop_exits import AS_IS, exits, logits_along
from decoders.logits.processor_order import AGAINST_LOOPS
from decoders.models.table_model import TableModel
from decoders.refusal import Refusal
from decoders.trace.repetition import Exits, loops

V, P = 6, 0.9
TABLE = TableModel(lambda past: [P if t == (past[-1] + 1) % 3 else 0.02 for t in range(V)], V)


def looped(settings: dict[str, float], tokens: int = 15) -> dict[str, Exits]:
    """Name -> the loop of greedy decoding on the table."""
    output = Lane("greedy", [0], {"target": TABLE}, limits=Limits(tokens)).run().output()
    [loop] = loops(output)
    assert (loop.first, loop.period, loop.stop) == (0, 3, tokens)
    return {one.name: one for one in exits(TABLE, [0], output, loop, settings)}


def test_without_a_processor_it_is_what_the_target_gives_to_other_tokens():
    plain = looped({})[AS_IS]
    assert plain.leaving == pytest.approx([1 - P] * 12) and plain.greedy_leaves is None
    assert plain.mean == pytest.approx(1 - P)
    assert plain.staying == pytest.approx([P ** (n + 1) for n in range(12)])
    assert plain.within(0, 3) == pytest.approx(1 - P**3)


def test_a_temperature_flattens_every_row():
    hot = looped({"temperature": 2.0})["temperature"]
    own, others = math.sqrt(P), 5 * math.sqrt(0.02)
    assert hot.leaving == pytest.approx([others / (own + others)] * 12)


def test_at_temperature_0_the_loop_is_never_left():
    assert looped({"temperature": 0.0})["temperature"].leaving == [0.0] * 12


def test_a_frequency_penalty_grows_with_every_copy():
    found = looped({"frequency_penalty": 1.0})["frequency_penalty"]
    for at, p in enumerate(found.leaving):
        counts = [sum(1 for token in ([1, 2, 0] * 5)[: at + 3] if token == t) for t in range(V)]
        own = (1 + at) % 3
        weights = [(P if t == own else 0.02) * math.exp(-counts[t]) for t in range(V)]
        assert p == pytest.approx(1 - weights[own] / sum(weights))
    assert found.greedy_leaves is not None and found.leaving[-1] > 4 * found.leaving[0]


def test_no_repeated_ngram_leaves_for_sure_where_it_bites():
    found = looped({"no_repeat_ngram_size": 4})["no_repeat_ngram_size"]
    assert found.leaving[2:] == [1.0] * 10 and found.greedy_leaves == 2  # the prompt counts too


def test_xtc_weighs_both_falls_of_its_coin():
    """With a threshold of .1 only one token is a top choice, so that nothing is cut."""
    assert looped({"xtc_probability": 0.5})["xtc_probability"].leaving == pytest.approx([1 - P] * 12)
    rows = [[0.025, 0.6, 0.025, 0.3, 0.025, 0.025], [0.025, 0.025, 0.6, 0.3, 0.025, 0.025]]
    two = TableModel(lambda past: [*rows, [0.6, 0.025, 0.025, 0.3, 0.025, 0.025]][past[-1]], V)
    output = [1, 2, 0] * 4
    [loop] = loops(output)
    found = exits(two, [0], output, loop, {"xtc_probability": 0.5})[1]
    assert found.leaving == pytest.approx([0.5 * 1.0 + 0.5 * 0.4] * 9)
    assert found.greedy_leaves is None


def test_values_that_change_nothing_are_left_out():
    assert list(looped({"temperature": 1.0, "dry_multiplier": 0.0})) == [AS_IS]
    assert list(looped(AGAINST_LOOPS)) == [AS_IS, *AGAINST_LOOPS]


def test_the_text_is_read_again_as_the_lane_read_it():
    output = Lane("greedy", [0], {"target": TABLE}, limits=Limits(9)).run().output()
    rows = logits_along(TABLE, [0, *output], 1).softmax(-1)
    assert rows.gather(-1, torch.tensor(output)[:, None])[:, 0].tolist() == pytest.approx([P] * 9)


def test_a_text_that_the_model_cannot_read_is_refused():
    short = TableModel(TABLE.table, V, context=4)
    with pytest.raises(Refusal, match="reads at most 4"):
        logits_along(short, [0] * 5, 1)
