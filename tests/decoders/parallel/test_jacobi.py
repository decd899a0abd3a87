"""Jacobi: equal to greedy for any block and first guess, the dossier's worked examples, and what positions
waited for.
"""

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Cell, Commit, Depend, Forward

TABLE = [5, 1, 4, 4, 2, 3]


def deterministic(successor, vocabulary: int) -> TableModel:
    """A table model whose next token is successor(prefix) with probability .9."""

    def row(prefix):
        row = [0.1 / (vocabulary - 1)] * vocabulary
        row[successor(prefix)] = 0.9
        return row

    return TableModel(row, vocabulary)


def every_third_copies(prefix):
    """next = the last token if the length is a multiple of 3, else a fixed token for the position (prompt
    length 2).
    """
    return prefix[-1] if len(prefix) % 3 == 0 else TABLE[(len(prefix) - 2) % 6]


def chained(prefix):
    """next depends on both of the last two tokens, so nothing can be guessed early."""
    return (3 * prefix[-1] + prefix[-2] + 1) % 7


def rows_of_cells(trace) -> list[list[int]]:
    """The tokens that stood in the block after each pass, settled ones kept."""
    first = len(trace.prompt)
    row: dict[int, int] = {}
    rows = []
    for step in trace.steps:
        cells = [c for c in step.of(Cell) if c.state != "guess"]
        row = row | {c.position - first: c.token for c in cells}
        rows.append([row[i] for i in sorted(row)])
    return rows


def lane_of(model, tokens, parameters=None, prompt=(1, 2)):
    return Lane("jacobi", list(prompt), {"target": model}, parameters or {}, limits=Limits(tokens))


def test_worked_example_settles_in_two_passes():
    """Zero start, m = 6: the passes give [5,0,4,4,0,3], then [5,5,4,4,4,3] (the window's last output comes
    free).
    """
    model = deterministic(every_third_copies, 7)
    lane = Lane(
        "jacobi", [1, 0], {"target": model}, {"block_size": 6}, limits=Limits(6)
    )  # repeats the token 0
    trace = lane.run()
    assert rows_of_cells(trace)[:2] == [[5, 0, 4, 4, 0, 3], [5, 5, 4, 4, 4, 3]]
    assert trace.output() == [5, 5, 4, 4, 4, 3]
    assert len(trace.steps) <= 3


def test_chained_example_settles_one_token_a_pass():
    model = deterministic(chained, 7)
    trace = lane_of(model, 6, {"block_size": 6}).run()
    assert trace.output() == [1, 6, 6, 4, 5, 6]
    assert len(trace.steps) >= 5  # a lucky guess may settle one more, but there is no speed-up


@pytest.mark.parametrize("first_guess", ["repeat", "prompt", "pad"])
@pytest.mark.parametrize("block_size", [1, 2, 5, 64])
def test_output_is_greedy_for_any_block_and_guess(tiny_model, prompt, block_size, first_guess):
    models = {"target": tiny_model("llama")}
    greedy = Lane("greedy", prompt, models, limits=Limits(24)).run()
    parameters = {"block_size": block_size, "first_guess": first_guess}
    trace = Lane("jacobi", prompt, models, parameters, limits=Limits(24)).run()
    assert trace.output() == greedy.output()
    passes = sum(f.kind != "lens" for s in trace.steps for f in s.of(Forward))
    assert passes <= len(trace.output())


def test_blocks_of_one_are_plain_decoding(tiny_model, prompt):
    trace = Lane("jacobi", prompt, {"target": tiny_model("llama")}, {"block_size": 1}, limits=Limits(9)).run()
    assert [len(c.nodes) for s in trace.steps for c in s.of(Commit)] == [1] * 9


def test_dependencies_are_what_putting_tokens_back_shows():
    """In the chained table each output needs both tokens before it; in the copying one only every third needs
    its left one.
    """
    chained_trace = lane_of(deterministic(chained, 7), 8, {"block_size": 8}).run()
    found = [(d.source, d.target) for s in chained_trace.steps for d in s.of(Depend)]
    assert found and all(target - source in (1, 2) for source, target in found)
    copying = Lane(
        "jacobi",
        [1, 0],
        {"target": deterministic(every_third_copies, 7)},
        {"block_size": 6},
        limits=Limits(6),
    ).run()
    found = [(d.source, d.target) for s in copying.steps for d in s.of(Depend)]
    assert found == [(2, 3), (5, 6)]


def test_lens_forwards_are_counted_apart():
    model = deterministic(chained, 7)
    with_lens = lane_of(model, 8, {"block_size": 8}).run().costs
    without = lane_of(model, 8, {"block_size": 8, "dependencies": False}).run().costs
    assert with_lens.lens_forwards > 0 == without.lens_forwards
    assert with_lens.target_forwards == without.target_forwards
    assert with_lens.target_tokens == without.target_tokens
