"""Frustratingly simple decoding: the worked numbers of both forms, and what they do to texts that repeat."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.sampling.fsd import NGrams, States
from decoders.trace.scores import Score
from tests.helpers import tiny_models

A, B, C, D = range(4)
TEXT = [A, B, C, A, B]


def run(model, prompt, new_tokens=12, **parameters):
    limits = Limits(max_new_tokens=new_tokens)
    return Lane("fsd", prompt, {"target": model}, parameters, limits=limits).run()


def test_the_worked_penalties_of_n_grams():
    known = NGrams(TEXT, 3, 0.9)
    assert [known.penalty(token) for token in (C, A, B, D)] == pytest.approx([0.497, 0.4, 0.4, 0.0])


def test_what_was_counted_before_and_what_is_visited_are_one():
    grown = NGrams(TEXT[:2], 3, 0.9)
    for token in TEXT[2:]:
        grown.visit(token)
    assert [grown.penalty(t) for t in range(4)] == [NGrams(TEXT, 3, 0.9).penalty(t) for t in range(4)]
    assert NGrams([], 3, 0.9).penalty(A) == 0.0


def test_the_worked_example_of_n_grams():
    model = TableModel(lambda past: [0.1, 0.1, 0.5, 0.3], 4)
    trace = run(model, TEXT, 1, alpha=0.4, top_k=4)
    scores = [s.total for s in trace.steps[0].of(Score)]
    assert scores == pytest.approx([0.1012, 0.18, -0.10, -0.10])
    assert trace.output() == [D]


def test_windows_of_states_are_compared_and_a_likeness_below_0_counts_as_none():
    near, far, against = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0]), torch.tensor([-3.0, 0.0])
    known = States([A, B, C, D], 2)
    for state in (near, far, against, near * 5):
        known.see(state)
    assert [known.penalty(t) for t in (B, C, D, A)] == [1.0, 0.0, 0.0, 0.0]
    pairs = States([A, B, C, D], 3)  # two states at a time: places 1 and 2 against place 3
    for state in (near, far, near, far):
        pairs.see(state)
    assert pairs.penalty(C) == pytest.approx(1.0) and pairs.penalty(D) == pytest.approx(0.0)
    assert pairs.penalty(B) == 0.0, "no two states end at the first place"


def naive(model, prompt: list[int], new_tokens: int, alpha: float, top_k: int, n: int) -> list[int]:
    """The form "states" with a forward over the whole text for every token, from the definition."""
    text = list(prompt)
    while len(text) < len(prompt) + new_tokens:
        output = model.model(torch.tensor([text]), output_hidden_states=True, use_cache=False)
        states, p = output.hidden_states[-1][0], output.logits[0, -1].softmax(-1)
        scores, last = {}, len(text) - 1
        for v in p.topk(top_k).indices.tolist():
            ends = [j for j in range(n - 2, last) if text[j + 1] == v]
            now = states[last - n + 2 :].flatten()
            like = [torch.cosine_similarity(states[j - n + 2 : j + 1].flatten(), now, dim=0) for j in ends]
            penalty = min(1.0, max([0.0, *(float(x) for x in like)]))
            scores[v] = (1 - alpha) * p[v].item() - alpha * penalty
        text.append(max(scores, key=scores.get))
        if text[-1] in model.eos:
            break
    return text[len(prompt) :]


@pytest.mark.parametrize(("alpha", "n"), [(0.4, 0), (0.8, 3), (0.6, 4)])
def test_states_equal_the_naive_implementation(alpha, n, tiny_model):
    model = tiny_model("llama", 0, torch.float64)
    for prompt in ([7, 7, 8, 9, 7], [40, 41, 42, 40, 41, 42, 40], [50, 50, 50]):
        trace = run(model, prompt, 10, form="states", alpha=alpha, n=n)
        assert trace.output() == naive(model, prompt, 10, alpha, 5, n or 2)
        assert trace.costs.target_forwards == len(trace.output()), "no forward is spent on the penalty"


@pytest.mark.parametrize("form", ["n-grams", "states"])
def test_alpha_0_and_one_candidate_are_greedy(form, tiny_model):
    model = tiny_model()
    greedy = tiny_models.generate(model, [9, 9, 8, 9], max_new_tokens=20)
    assert run(model, [9, 9, 8, 9], 20, form=form, alpha=0.0).output() == greedy
    assert run(model, [9, 9, 8, 9], 20, form=form, alpha=1.0, top_k=1).output() == greedy


def test_a_circle_is_left():
    def circle(past) -> list[float]:
        row = [0.05] * 8
        row[(past[-1] + 1) % 4], row[4 + past[-1] % 4] = 0.4, 0.3
        return row

    assert run(TableModel(circle, 8), [0], 12, alpha=0.0).output() == [1, 2, 3, 0] * 3
    assert len(set(run(TableModel(circle, 8), [0], 12).output())) > 4


def test_a_model_without_states_is_told_so():
    with pytest.raises(ValueError, match="reads hidden states .* choose Frustratingly simple decoding with"):
        run(TableModel(lambda past: [0.5, 0.5], 2), [0], 3, form="states")
