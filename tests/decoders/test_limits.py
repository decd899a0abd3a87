"""Limits and others' turns inside a step, and forwards in pieces: none of them changes what a lane tells."""

from types import SimpleNamespace

import pytest
import torch

from decoders.callbacks import Callbacks
from decoders.engine import pieces
from decoders.lane import Lane, Limits
from decoders.plan import context_for
from decoders.testing import events_without_clock
from decoders.trace import trace
from decoders.trace.events import Forward
from explorer.runs.slices import Sliced

PROMPT = [40, 41, 42, 40, 41]
SLICED = (  # some of each family
    "greedy",
    "sample",
    "contrastive_decoding",
    "scmoe",
    "beam",
    "pg_td",
    "value_mcts",
    "stochastic_beam",
    "best_first",
    "speculative",
    "speculative_tree",
    "lookahead",
    "pearl",
    "kangaroo",
    "bass",
    "jacobi",
    "sjd",
)


@pytest.fixture
def models(target_for, tiny_model):
    return {"target": target_for("greedy"), "draft": tiny_model("llama", 1)}


@pytest.fixture
def turns():
    """A list that gets an entry for each turn that others get from a lane with `counting(turns)`."""
    return []


def counting(turns: list) -> Callbacks:
    return Callbacks(between=lambda: turns.append(1))


def alike(one: object, other: object) -> bool:
    """Equal but for the last digits of numbers, which depend on the slots that a lane is given, and but for
    which of two lanes has read their prompt.
    """
    if isinstance(one, float):
        return one == pytest.approx(other, abs=1e-3, rel=1e-3)
    if isinstance(one, dict):
        told_of = one.keys() - {"shared"}
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in told_of)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other or (isinstance(one, str) and "." in one)  # sentences hold such numbers


@pytest.mark.parametrize("name", SLICED)
def test_lanes_that_take_turns_at_every_verb_tell_what_they_tell_alone(name, target_for, tiny_model):
    from explorer.runs import slices

    models = {"target": target_for(name), "draft": tiny_model("llama", 1)}

    def lane(seed: int) -> Lane:
        callbacks = Callbacks(between=slices.between)
        return Lane(name, PROMPT, models, {}, seed, Limits(max_new_tokens=10), callbacks=callbacks)

    alone = [lane(seed).run() for seed in (1, 2)]
    before, slices.SLICE_SECONDS = slices.SLICE_SECONDS, 0.0
    try:
        lanes = [lane(seed) for seed in (1, 2)]
        waiting, slice_count = [Sliced(one.run) for one in lanes], 0
        while waiting:
            waiting = [work for work in waiting if not work.resume()]
            slice_count += 1
    finally:
        slices.SLICE_SECONDS = before
    assert slice_count > 2 * max(len(found.steps) for found in alone)
    for mine, theirs in zip(lanes, alone, strict=True):
        assert alike(
            [events_without_clock(s) for s in mine.trace.steps],
            [events_without_clock(s) for s in theirs.steps],
        )
        seconds = [s.seconds for s in mine.trace.steps]
        assert seconds == sorted(seconds) and mine.trace.ended == theirs.ended


def test_others_time_is_not_the_lanes(models, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("decoders.lane.time.perf_counter", lambda: now[0])
    others = Callbacks(between=lambda: now.__setitem__(0, now[0] + 100.0))
    found = Lane("beam", PROMPT, models, {}, 0, Limits(4, max_seconds=50.0), callbacks=others).run()
    assert found.costs.seconds == 0.0 and not found.ended.startswith("Stopped")
    assert all(f.seconds == 0.0 for s in found.steps for f in s.of(Forward))


def test_a_limit_ends_a_lane_inside_its_first_step_and_keeps_what_was_told(models):
    given = {"simulations": 512, "width": 64}
    found = Lane("value_mcts", PROMPT, models, given, 0, Limits(max_nodes=500)).run()
    assert found.ended == "Stopped at the limit of 500 nodes; ask for fewer tokens."
    assert len(found.steps) == 1 and len(found.nodes()) == 501 and not found.output()
    trace.check_trace(found.to_json())
    assert models["target"].engine.cache.used == 0


def test_time_is_looked_at_inside_a_step(models, turns, monkeypatch):
    monkeypatch.setattr("decoders.lane.time.perf_counter", lambda: float(len(turns)))
    asked = ("value_mcts", PROMPT, models, {"simulations": 512}, 0)
    lane = Lane(*asked, Limits(max_seconds=30.0), callbacks=counting(turns))
    assert lane.advance() is not None and lane.trace.ended is None  # the others' time, not the lane's
    lane.close()
    ticks = iter(range(10**9))
    monkeypatch.setattr("decoders.lane.time.perf_counter", lambda: float(next(ticks)))
    found = Lane(*asked, Limits(max_seconds=300.0)).run()
    assert found.ended == "Stopped at the limit of 300 seconds of computing; the text is kept."
    assert len(found.steps) == 1 and found.steps[0].events


def test_a_forward_over_many_rows_runs_in_pieces_and_counts_as_one(models, turns, monkeypatch):
    asked = ("speculative_tree", PROMPT, models, {"widths": [6, 4, 2]}, 0, Limits(max_new_tokens=8))
    whole = Lane(*asked, callbacks=counting(turns)).run()
    few = len(turns)
    monkeypatch.setattr(pieces, "ROWS", 5)
    cut = Lane(*asked, callbacks=counting(turns)).run()
    assert len(turns) - few > few and cut.output() == whole.output()

    def counts(found) -> list[tuple]:
        return [(f.model, f.kind, f.tokens, f.rows) for s in found.steps for f in s.of(Forward)]

    assert counts(cut) == counts(whole)
    assert cut.costs.totals()["logprob"] == pytest.approx(whole.costs.totals()["logprob"], abs=1e-4)


def test_pieces_have_the_numbers_of_the_whole(models):
    lane = Lane("greedy", PROMPT, models)
    nodes = [lane.tree.add(lane.tip, token) for token in range(20)]
    nodes += [lane.tree.add(nodes[i % 20], 7) for i in range(20)]
    whole = lane.models["target"].engine.attach(lane.tree)
    parts = lane.models["target"].engine.attach(lane.tree)
    try:
        pause = []
        want = whole.score(nodes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pieces, "ROWS", 16)
            found, work = pieces.in_pieces(parts, nodes, False, lambda: pause.append(1))
        torch.testing.assert_close(found, want)
        assert len(pause) == 2 and (work.rows, work.tokens + work.shared) == (40, 45)
    finally:
        whole.close(), parts.close(), lane.close()


def test_a_prompt_too_long_for_a_draft_names_it():
    models = {
        "draft": SimpleNamespace(name="small", context=4),
        "target": SimpleNamespace(name="t", context=8),
    }
    with pytest.raises(
        ValueError, match="has 5 tokens, but the draft 'small' reads at most 4,.* by 2 tokens"
    ):
        context_for([1] * 5, models)
    assert context_for([1] * 3, models) == 4
