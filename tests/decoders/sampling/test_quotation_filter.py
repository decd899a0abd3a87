"""The citation blocker: exactly the tokens that would complete a run of m + 1, and no run longer than m."""

import random

import pytest
import torch

from decoders.sampling.quotation_filter import CitationBlocker, longest_citation
from tests.helpers import tiny_models

TEXTS = [[1, 2, 3, 4, 5], [2, 3, 9], [7, 7, 7]]


def test_forbidden_tokens_by_hand():
    blocker = CitationBlocker(TEXTS, 2)
    assert blocker.forbidden([8, 2, 3]) == {4, 9}
    assert blocker.forbidden([1, 2]) == {3} and blocker.forbidden([7, 7]) == {7}
    assert blocker.forbidden([4, 5]) == blocker.forbidden([3]) == blocker.forbidden([3, 2]) == set()
    assert CitationBlocker(TEXTS, 0).forbidden([6]) == {1, 2, 3, 4, 5, 9, 7}  # not a word of them


def test_scores_of_other_tokens_stay():
    scores = torch.arange(20.0).view(2, 10)
    found = CitationBlocker(TEXTS, 2)(torch.tensor([[8, 2, 3], [0, 4, 5]]), scores)
    assert (found == -torch.inf).nonzero().tolist() == [[0, 4], [0, 9]]
    kept = found.isfinite()
    assert torch.equal(found[kept], scores[kept]) and scores.isfinite().all()


def test_the_longest_citation_is_brute_force_s():
    draw = random.Random(0)
    for _ in range(50):
        texts = [[draw.randrange(3) for _ in range(draw.randrange(9))] for _ in range(3)]
        text = [draw.randrange(3) for _ in range(draw.randrange(9))]
        runs = [text[a:b] for a in range(len(text)) for b in range(a + 1, len(text) + 1)]
        held = [r for r in runs if any(t[i : i + len(r)] == r for t in texts for i in range(len(t)))]
        assert longest_citation(text, texts) == max(map(len, held), default=0)


@pytest.mark.parametrize("m", [1, 3])
def test_no_more_than_m_tokens_of_what_a_model_would_write_are_written(tiny_model, prompt, m):
    """The set is the model's own greedy text, which it would cite whole."""
    model = tiny_model("llama")
    own = tiny_models.generate(model, prompt, max_new_tokens=30)
    assert longest_citation(own, [own]) == len(own) > 3
    blocked = tiny_models.generate(
        model, prompt, max_new_tokens=30, logits_processor=[CitationBlocker([own], m)], eos_token_id=-1
    )
    assert longest_citation(blocked, [own]) == m
