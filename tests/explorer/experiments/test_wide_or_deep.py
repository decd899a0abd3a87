"""Wide and deep drafts: throughput by hand, and a replay that is what decoding gives."""

import pytest
import torch

from decoders.lane import Lane, Limits
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.models.guesses import written
from explorer.experiments.wide_or_deep import (
    SHAPES,
    begun,
    best_gamma,
    replayed,
    right_guesses,
    rounds_of,
    throughput,
    train,
)
from tests.helpers import tiny_models

PROMPTS = [[40, 41, 42], [50, 60], [70, 71, 72, 73]]


def test_a_lower_tar_can_be_faster():
    assert throughput(3.0, 5, 0.010, 0.050) == pytest.approx(30.0)
    assert throughput(2.5, 5, 0.004, 0.050) == pytest.approx(35.7, abs=0.02)


def test_rounds_by_hand():
    """Chains of 1 write tokens 1-2, 3, 4-5 and 6, chains of 2 write 1-3 and 4-6: the target's own token, the
    last of each round, needs no right guess.
    """
    right = [True, True, False, True, True, True]
    assert [rounds_of(right, gamma) for gamma in (1, 2, 5)] == [4, 2, 2]
    assert rounds_of([False] * 4, 3) == 4 and rounds_of([True] * 7, 6) == 1
    assert replayed([right, [False, False]], 2) == pytest.approx(8 / 4)


def test_the_best_gamma_is_that_of_brute_force():
    """Against every gamma, with the tokens per round of independent acceptances of .8."""
    tars = {g: (1 - 0.8 ** (g + 1)) / 0.2 for g in range(1, 31)}
    for cost in (0.01, 0.05, 0.2):
        best = best_gamma(tars, cost, 1.0)
        assert all(tars[best] / (best * cost + 1) >= tars[g] / (g * cost + 1) for g in tars)
    assert best_gamma(tars, 0.01, 1.0) > best_gamma(tars, 0.2, 1.0)


@pytest.mark.parametrize("gamma", [1, 3, 6])
def test_replayed_tar_is_that_of_decoding(models, gamma):
    """With a draft that is often right: the target after a little noise."""
    target, draft = models["target"], tiny_models.make()
    with torch.no_grad():
        for p in draft.model.parameters():
            p.add_(0.03 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    texts = written(target, PROMPTS, 24)
    right = right_guesses(draft, texts, list(map(len, PROMPTS)))
    settings = {"temperature": 0.0, "num_assistant_tokens": gamma}
    pair = {"target": target, "draft": draft}
    traces = [Lane("speculative", p, pair, settings, limits=Limits(24)).run() for p in PROMPTS]
    assert [t.output() for t in traces] == [x[len(p) :] for x, p in zip(texts, PROMPTS, strict=True)]
    assert replayed(right, gamma) == pytest.approx(tokens_per_forward(traces)) and sum(map(sum, right)) > 0


def test_drafts_have_equal_layers_and_begin_with_the_targets_embeddings(models):
    sizes = [layers * width**2 for layers, width in SHAPES.items()]
    assert max(sizes) < 1.03 * min(sizes)
    target = models["target"]
    draft = begun(target, 1, 32)
    ours, theirs = (m.model.get_input_embeddings().weight for m in (draft, target))
    likeness = [torch.nn.functional.normalize(t, dim=-1) for t in (ours, theirs)]
    torch.testing.assert_close(*(t @ t.T for t in likeness), atol=1e-4, rtol=1e-4)  # all its directions


def test_training_teaches_what_the_target_says(models, monkeypatch):
    monkeypatch.setattr("explorer.experiments.wide_or_deep.STEPS", 30)
    target, rows = models["target"], torch.tensor([[40, 41, 42, 43, 44, 45, 46, 47]] * 4)
    draft = begun(target, 1, 16)
    before, p = draft.model(rows[:1]).logits, target.model(rows[:1]).logits.softmax(-1)
    train(target, [draft], rows)

    def loss(logits):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), p.flatten(0, 1))

    assert loss(draft.model(rows[:1]).logits) < loss(before)
