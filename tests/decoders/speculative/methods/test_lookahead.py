"""Lookahead on the dossier's worked trace, and what its window and pool promise."""

import pytest

from decoders.chooser import Exhaustive
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel, exact_distribution
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.interfaces import FIXED, Drafter
from decoders.speculative.methods.lookahead import Pool, Window, lookahead_pair
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.testing import distance, random_table, shape_of
from decoders.trace.events import Cell, Commit, Propose
from tests.helpers.losslessness import law_of_rounds


def successor(tokens: tuple[int, ...]) -> list[float]:
    """A language that counts to 4 and begins again."""
    return [0.9 if token == (tokens[-1] + 1) % 5 else 0.025 for token in range(5)]


def lane_of(model: TableModel, prompt, tokens: int, seed: int = 0, **parameters) -> Lane:
    return Lane("lookahead", list(prompt), {"target": model}, parameters, seed, Limits(tokens))


def committed(trace) -> list[list[int]]:
    nodes = trace.nodes()
    return [[nodes[n][1] for c in step.of(Commit) for n in c.nodes] for step in trace.steps]


@pytest.mark.parametrize("seed", range(3))
def test_the_worked_trace(seed):
    sizes = {"ngram_size": 3, "window_size": 2, "pool_size": 2}
    trace = lane_of(TableModel(successor, 5), [0], 17, seed, **sizes).run()
    want = [[1], [2], [3], [4], [0], [1, 2, 3], [4, 0, 1], [2, 3, 4]]
    assert committed(trace)[:8] == want


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("width", [1, 2, 6])
def test_rows_have_their_size_after_the_warm_up(n, width):
    model = TableModel(successor, 5)
    lane = lane_of(model, [0, 3, 1], 40)
    window = Window(n, width, Pool(3), False)
    turns = rounds(lane, Drafter(window.propose, FIXED, "pool", observe=window.observe), GREEDY_MATCH)
    for count in range(1, n + 5):
        next(turns)
        if count >= n - 2:
            assert [len(row) for row in window.rows] == [width] * (n - 1)
        else:
            assert len(window.rows) == count + 1
    assert all(len(rest) == n - 1 for known in window.pool.entries.values() for rest in known)
    lane.close()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"ngram_size": 2, "window_size": 1},
        {"ngram_size": 8, "window_size": 12, "pool_size": 12},
        {"ngram_size": 3, "window_size": 3, "pool_size": 1, "prompt_ngrams": True},
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_text_is_greedy_s(tiny_model, prompt, parameters, seed):
    models = {"target": tiny_model("llama")}
    greedy = Lane("greedy", prompt, models, limits=Limits(30)).run()
    assert Lane("lookahead", prompt, models, parameters, seed, Limits(30)).run().output() == greedy.output()


def test_without_a_pool_every_forward_writes_one_token():
    trace = lane_of(TableModel(successor, 5), [0], 12, pool_size=0).run()
    assert [len(tokens) for tokens in committed(trace)] == [1] * 12


def test_each_forward_evaluates_the_comb_and_no_more():
    """(n - 1) * width tokens of the window, the newest one among them, and the tree of the pool."""
    n, width = 4, 3
    trace = lane_of(TableModel(successor, 5), [0], 60, ngram_size=n, window_size=width).run()
    for step in trace.steps[n:10]:
        (forward,) = (e for e in step.events if type(e).__name__ == "Forward")
        drafted = sum(e.source == "pool" for e in step.of(Propose))
        assert forward.tokens == (n - 1) * width + drafted


def test_the_pool_keeps_the_newest_runs():
    pool = Pool(2)
    for rest in [(1, 2), (3, 4), (1, 2), (5, 6)]:
        pool.add(9, rest)
    assert pool.entries == {9: [(1, 2), (5, 6)]}
    pool.read([7, 8, 9, 4], 3, new=1)
    assert pool.entries[8] == [(9, 4)] and 7 not in pool.entries
    pool.read([7, 8, 9, 4], 3, new=4)
    assert pool.entries[7] == [(8, 9)]


def test_runs_of_the_prompt_are_drafts_from_the_first_round_on():
    table = TableModel(successor, 5)
    prompt = [0, 1, 2, 3, 4, 0]
    with_prompt = lane_of(table, prompt, 10, prompt_ngrams=True).run()
    assert committed(with_prompt)[0] == [1, 2, 3, 4]
    assert committed(lane_of(table, prompt, 10).run())[0] == [1]


def test_cells_tell_what_was_guessed_where_and_what_became_final():
    trace = lane_of(TableModel(successor, 5), [0], 20, ngram_size=3, window_size=2, pool_size=2).run()
    settled = [c for step in trace.steps for c in step.of(Cell) if c.state == "settled"]
    assert [c.token for c in settled] == trace.output()
    assert [c.position for c in settled] == list(range(1, 21))
    for step in trace.steps:
        frontier = max(c.position for c in step.of(Cell) if c.state == "settled")
        assert all(c.position > frontier for c in step.of(Cell) if c.state == "guess")


@pytest.mark.parametrize("shape", [{"temperature": 1.0}, {"temperature": 0.7, "top_p": 0.8}])
@pytest.mark.parametrize("eos", [frozenset(), frozenset({2})])
@pytest.mark.parametrize("prompt_ngrams", [False, True])
def test_drawn_text_has_the_target_s_law(shape, eos, prompt_ngrams):
    models = {"target": TableModel(random_table(3, sharpness=2), 3, eos)}
    parameters = {"ngram_size": 2, "window_size": 2, "pool_size": 2, "prompt_ngrams": prompt_ngrams, **shape}
    law = law_of_rounds(Exhaustive(), "lookahead", models, parameters, 4)
    assert distance(law, exact_distribution(models["target"], (0,), 4, shape_of(parameters))) < 1e-12


def test_runs_that_begin_alike_share_their_beginning():
    lane = lane_of(TableModel(successor, 5), [0], 20, ngram_size=3)
    drafter, _, _ = lookahead_pair(lane.parameters)
    window = drafter.propose.__self__
    for rest in [(1, 2), (1, 3), (4, 4)]:
        window.pool.add(0, rest)
    draft = drafter.propose(lane)
    assert [lane.tree.tokens[n] for n in draft.nodes] == [1, 2, 3, 4, 4]
    lane.close()
