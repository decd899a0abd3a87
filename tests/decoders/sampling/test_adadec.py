"""AdaDec: the worked example, its borders, what it costs, and the limit that is learned."""

import math

import pytest

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Forward, Propose, Verdict
from decoders.trace.scores import Measure, Rank
from tests.helpers import tiny_models

FOLLOWS = {0: -4.0 / 5, 1: -0.7 / 5, 2: -0.05 / 5}  # log p of each of five tokens after A, B and C


def example(past) -> list[float]:
    """A .40, B .35, C .05 at first; what follows each is as likely as its sum over five tokens says."""
    if len(past) == 1:
        return [0.40, 0.35, 0.05, 0.04, 0.04, 0.04, 0.04, 0.04]
    p = math.exp(FOLLOWS.get(past[1], -0.1))
    return [0.0, 0.0, 0.0, p, *[(1 - p) / 4] * 4]


def run(model, prompt, new_tokens=12, **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane("adadec", prompt, {"target": model}, parameters, limits=limits).run()


def test_the_worked_example():
    trace = run(TableModel(example, 8), [0], 1)
    scores = [s.total for s in trace.steps[0].of(Rank) if s.name == "lookahead"]
    assert scores == pytest.approx([-0.8194, -0.2916, -0.5076], abs=1e-4)
    assert trace.output() == [1]
    (commit,) = trace.steps[0].of(Commit)
    assert commit.logprobs == pytest.approx([math.log(0.35)])
    seen = [e for e in trace.steps[0].of(Propose) if e.source == "lookahead"]
    assert len(seen) == 15 and trace.costs.target_forwards == 6
    assert {v.status for v in trace.steps[0].of(Verdict)} == {"pruned"}


def test_without_pauses_or_without_looking_it_is_greedy(tiny_model):
    model = tiny_model()
    for prompt in ([1, 2, 3], [9, 9, 9, 8]):
        greedy = tiny_models.generate(model, prompt, max_new_tokens=15)
        assert run(model, prompt, 15, tau=20.0).output() == greedy
        assert run(model, prompt, 15, tau=0.0, lookahead=0).output() == greedy
        assert run(model, prompt, 15, tau=0.0, candidates=1).output() == greedy


def naive(model, past: list[int], tau: float, count: int, length: int) -> int:
    """The next token from the definition, one forward per token for each candidate."""
    import torch

    def row(text):
        return model.model(torch.tensor([text])).logits[0, -1].log_softmax(-1)

    first = row(past)
    if float(-(first.exp() * first).sum()) < tau:
        return int(first.argmax())
    scores = {}
    for token in first.topk(count).indices.tolist():
        text, logprobs = [*past, token], [float(first[token])]
        while len(logprobs) <= length and text[-1] not in model.eos:
            after = row(text)
            text.append(int(after.argmax()))
            logprobs.append(float(after.max()))
        scores[token] = sum(logprobs) / len(logprobs)
    return max(scores, key=scores.get)


def test_equals_the_naive_implementation(tiny_model):
    model, prompt = tiny_model(), [7, 7, 8]
    trace = run(model, prompt, 8, tau=3.4, candidates=3, lookahead=3)
    text = list(prompt)
    for token in trace.output():
        assert token == naive(model, text, 3.4, 3, 3)
        text.append(token)
    rows = [f.rows for step in trace.steps for f in step.of(Forward)]
    assert max(rows) == 3, "all candidates share a forward"


def test_pauses_become_rarer_with_tau():
    def share(tau: float) -> float:
        trace = run(
            TableModel(lambda past: [1 - 0.04 * len(past), *[0.01 * len(past)] * 4], 5), [0], 12, tau=tau
        )
        levels = [s.level for step in trace.steps for s in step.of(Measure) if s.name == "entropy in nats"]
        return levels.count("looked ahead") / len(levels)

    shares = [share(tau) for tau in (0.0, 0.4, 0.8, 1.2, 5.0)]
    assert shares == sorted(shares, reverse=True) and shares[0] == 1.0 and shares[-1] == 0.0


def test_a_look_ahead_ends_with_the_text():
    model = TableModel(lambda past: [0.1, 0.5, 0.4], 3, eos=frozenset({1}))
    trace = run(model, [0], 1, tau=0.0)
    parts = [s.parts["tokens"] for s in trace.steps[0].of(Rank) if s.name == "lookahead"]
    assert parts == [0, 1, 1], "the end of the text has nothing ahead, what follows the others ends it"
