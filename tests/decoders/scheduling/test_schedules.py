"""Schedules: the worked example, budgets that hold, and texts that are those of each request alone."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.scheduling.chunked_prefill import chunked_prefill, full_ratio
from decoders.scheduling.prefill_first import prefill_first, request_level
from decoders.scheduling.prepacking import serve_batches
from decoders.scheduling.requests import Request, serve, served, waits

SCHEDULES = {
    "requests": partial(request_level, rows=3),
    "prefill first": partial(prefill_first, rows=3),
    **{f"chunks {c}": partial(chunked_prefill, budget=c, rows=3) for c in (1, 2, 3, 5, 8, math.inf)},
}


def made() -> list[Request]:
    shapes = [(5, 4, 0), (11, 3, 0), (1, 6, 1), (7, 1, 2), (3, 5, 9), (2, 2, 40)]
    return [Request([(7 * i + 3 * j) % 40 + 1 for j in range(n)], w, a) for i, (n, w, a) in enumerate(shapes)]


def dry(requests, schedule):
    """The timetable alone: every token is 0."""
    return serve(requests, schedule, lambda plan: [0] * len(plan))


@torch.inference_mode()
def alone(model, request: Request) -> list[int]:
    """Greedy decoding by whole forwards of the model."""
    text = list(request.prompt)
    for _ in range(request.wants):
        text.append(int(model(torch.tensor([text])).logits[0, -1].argmax()))
    return text[len(request.prompt) :]


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_every_text_is_that_of_the_request_alone(kind, tiny_model):
    model = tiny_model(kind, 0, torch.float64)
    wanted = [alone(model.model, one) for one in made()]
    for schedule in SCHEDULES.values():
        requests = made()
        ran = served(model.engine, requests, schedule)
        assert [one.written for one in requests] == wanted
        assert sum(it.cells for it in ran) == sum(len(r.prompt) + r.wants - 1 for r in requests)
    for pack in (False, True):
        requests = made()
        serve_batches(model.model, requests, 3, pack)
        assert [one.written for one in requests] == wanted


def test_an_iteration_is_one_forward_over_its_tokens(tiny_model, monkeypatch):
    engine, counts, own = tiny_model("llama").engine, [], type(tiny_model("llama").engine)._forward
    monkeypatch.setattr(
        engine, "_forward", lambda request: counts.append(len(request.tokens)) or own(engine, request)
    )
    ran = served(engine, made(), SCHEDULES["chunks 5"])
    assert counts == [it.cells for it in ran]


def two_that_decode() -> list[Request]:
    """Two that write already, and a prompt of ten tokens."""
    return [Request([1], 30), Request([2], 30), Request([3] * 10, 2, arrives=1)]


def test_a_prompt_of_ten_in_five_iterations():
    """Dossier: budget 4, two decodes: chunks of 2 in 5 iterations, ten decoded tokens, none stalled."""
    ran = dry(two_that_decode(), partial(chunked_prefill, budget=4, rows=3))
    assert [it.tokens.get(2) for it in ran[1:6]] == [2] * 5
    assert all(it.tokens[0] == it.tokens[1] == 1 for it in ran[1:6])
    assert sum(r in it.wrote for it in ran[1:6] for r in (0, 1)) == 10
    assert [2 in it.wrote for it in ran[1:6]] == [False] * 4 + [True]


def test_prefill_first_stalls_both():
    ran = dry(two_that_decode(), partial(prefill_first, rows=3))
    assert ran[1].tokens == {2: 10} and ran[1].wrote == [2]
    assert ran[2].tokens == {0: 1, 1: 1, 2: 1}


shapes = st.lists(
    st.tuples(st.integers(1, 20), st.integers(1, 6), st.integers(0, 12)), min_size=1, max_size=6
)


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(1, 9), st.integers(1, 4))
def test_no_iteration_exceeds_its_budget(shapes, budget, rows):
    requests = [Request([1] * n, w, a) for n, w, a in shapes]
    decodes = []

    def plan(running, waiting):
        decodes.append(sum(not one.prompt_left for one in running))
        return chunked_prefill(running, waiting, budget, rows)

    ran = dry(requests, plan)
    assert all(it.cells <= max(budget, n) for it, n in zip(ran, decodes, strict=True))
    assert all(len(it.tokens) <= rows for it in ran)
    assert all(it.cells for it in ran) and all(one.done for one in requests)


def test_without_a_budget_prompts_are_read_whole_beside_decodes():
    ran = dry(two_that_decode(), partial(chunked_prefill, budget=math.inf, rows=3))
    assert ran[1].tokens == {0: 1, 1: 1, 2: 10}


def test_decodes_may_exceed_the_budget():
    requests = [Request([1], 9) for _ in range(3)]
    for one in requests:
        one.read, one.written = 1, [5]
    plan = chunked_prefill(requests, [Request([1, 2], 1)], 2, 9)
    assert plan == [(one, 1) for one in requests]


def test_with_the_right_ratio_every_iteration_is_full():
    """Budget 6, 3 rows: chunks of 4 beside two decodes; prompts of 8 and 4 decodes: P:D = 2. The load is
    steady: one request comes when one leaves.
    """
    assert full_ratio(6, 3) == 8 / 4
    ran = dry([Request([1] * 8, 5, 2 * i) for i in range(20)], partial(chunked_prefill, budget=6, rows=3))
    assert all(sorted(it.tokens.values()) == [1, 1, 4] for it in ran[4:40])


def test_times_are_counted_from_the_arrival():
    requests = two_that_decode()
    ran = dry(requests, partial(prefill_first, rows=3))
    for at, it in enumerate(ran):
        it.seconds = float(at + 1)
    assert waits(ran, 2, 1) == (2.0, [3.0])
    assert waits(ran, 0, 0)[0] == 1.0 and max(waits(ran, 0, 0)[1][:2]) == 5.0  # the stall: 2 + 3


def test_a_plan_of_nothing_and_an_empty_prompt_are_refused():
    with pytest.raises(ValueError, match="a budget and a number"):
        dry([Request([1], 1)], partial(chunked_prefill, budget=0, rows=1))
    with pytest.raises(ValueError, match="prompt"):
        Request([], 1)
