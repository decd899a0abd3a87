"""Momentum decoding: its worked example, its borders, and that it leaves the loops in which greedy stays."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.momentum import RESISTANCES, Graph
from decoders.trace.events import Commit, Forward, Verdict
from decoders.trace.scores import Score
from tests.helpers import tiny_models

TEXT = [1, 2, 3, 7, 8, 2, 3]
ROW = {7: 0.55, 9: 0.20, 8: 0.15, 2: 0.10}


def example(past) -> list[float]:
    return [ROW.get(token, 0.0) for token in range(10)]


def run(model, prompt, new_tokens=12, strategy="momentum", **parameters):
    return Lane(
        strategy, prompt, {"target": model}, parameters, limits=Limits(max_new_tokens=new_tokens)
    ).run()


def longest_repeat(text: list[int]) -> int:
    """Tokens of the longest run that stands in the text twice."""
    n = 0
    while any(
        text[i : i + n + 1] == text[j : j + n + 1]
        for i in range(len(text) - n)
        for j in range(i + 1, len(text) - n)
    ):
        n += 1
    return n


def test_runs_of_the_worked_example():
    graph = Graph(TEXT)
    assert [graph.run(token) for token in (7, 9, 8, 2)] == [3, 0, 1, 1]


def test_a_run_is_counted_up_to_five_and_never_past_the_beginning():
    assert Graph([4, 4, 4, 4, 4, 4, 4, 4]).run(4) == 5
    assert Graph([5]).run(5) == 1
    assert Graph([5, 5]).run(5) == 2
    assert Graph([]).run(5) == 0


@pytest.mark.parametrize(
    ("alpha", "scores", "taken"), [(0.2, (-0.05, 0.20, -0.05, -0.10), 9), (0.1, (0.25, 0.20, 0.05, 0.0), 7)]
)
def test_the_worked_example(alpha, scores, taken):
    trace = run(TableModel(example, 10), TEXT, 1, alpha=alpha, top_k=4)
    assert [s.total for s in trace.steps[0].of(Score)] == pytest.approx(scores)
    assert trace.output() == [taken]
    (commit,) = trace.steps[0].of(Commit)
    assert commit.logprobs == pytest.approx([math.log(ROW[taken])])
    reasons = [v.reason for v in trace.steps[0].of(Verdict)]
    assert len(reasons) == 3
    if alpha == 0.2:
        assert reasons[0].endswith("of 4: p 0.550 − resistance 0.600: it repeats 3 tokens")


def test_alpha_0_is_greedy_and_so_is_one_candidate(tiny_model):
    for prompt in ([1, 2, 3], [9, 9, 9, 8, 9, 9]):
        greedy = run(tiny_model(), prompt, 30, "greedy").output()
        assert run(tiny_model(), prompt, 30, alpha=0.0).output() == greedy
        assert run(tiny_model(), prompt, 30, top_k=1, alpha=1.0).output() == greedy
        assert greedy == tiny_models.generate(tiny_model(), prompt, max_new_tokens=30)


def circle(past) -> list[float]:
    """Greedy goes 0 1 2 3 0 1 2 3 ... for ever; each place has another way out."""
    row = [0.02] * 8
    row[(past[-1] + 1) % 4] = 0.50
    row[4 + past[-1] % 4] = 0.38
    return row


def test_it_leaves_the_loop_in_which_greedy_stays():
    model = TableModel(circle, 8)
    greedy, momentum = (run(model, [0], 40, name).output() for name in ("greedy", "momentum"))
    assert greedy == ([1, 2, 3, 0] * 10)
    assert longest_repeat(momentum) < longest_repeat(greedy) / 2


def test_one_forward_a_token_and_no_wasted_rows(tiny_model):
    trace = run(tiny_model(), [1, 2, 3], 20)
    kinds = [f.kind for step in trace.steps for f in step.of(Forward)]
    assert len(kinds) == len(trace.steps) == len(trace.output())
    assert trace.costs.target_tokens == 3 + len(trace.output()) - 1


def test_the_tables_of_resistances():
    linear, constant, log, exponential, block = RESISTANCES.values()
    assert [linear(m) for m in (1, 3, 5)] == [1.0, 3.0, 5.0]
    assert constant(1) == constant(5) == 2.0
    assert log(5) == pytest.approx(5.0)
    assert exponential(2) == pytest.approx(1.125)
    assert [block(m) for m in range(1, 6)] == [0.0, 0.0, 0.0, 5.0, 5.0]


def test_blocking_4_grams_lets_no_four_tokens_come_twice():
    text = run(TableModel(circle, 8), [0], 40, resistance="block 4-grams", alpha=0.2).output()
    fours = [tuple(text[i : i + 4]) for i in range(len(text) - 3)]
    assert len(set(fours)) == len(fours)
