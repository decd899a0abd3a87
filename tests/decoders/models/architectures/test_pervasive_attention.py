"""Pervasive attention: cached rows are the whole grid's, rows never look ahead, shares sum to one, wait-k."""

import pytest
import torch

from decoders.models.architectures.pervasive_attention import PervasiveAttention, PervasiveConfig

SOURCES = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 2, 0, 0]])
SEEN = SOURCES != 0
ANSWERS = torch.tensor([[5, 2, 9, 9, 3, 4], [4, 4, 8, 2, 3, 6]])


def made(**options) -> PervasiveAttention:
    """A tiny random model."""
    torch.manual_seed(2)
    model = PervasiveAttention(PervasiveConfig(vocab_size=12, width=6, layers=3, **options))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize("wait", [None, 2])
@torch.no_grad()
def test_the_row_cache_equals_the_grid(wait):
    model = made(causal_source=wait is not None)
    full = model.head(model.answer_states(SOURCES, SEEN, ANSWERS, wait))
    cache = model.start(SOURCES, SEEN)
    rows = [model.step(cache, None, wait), *(model.step(cache, ANSWERS[:, at], wait) for at in range(6))]
    torch.testing.assert_close(torch.stack(rows, 1), full, atol=1e-5, rtol=1e-4)
    assert all(kept.shape[1] == 2 for kept in cache.rows)  # k - 1 rows, however long the answer


@torch.no_grad()
def test_a_row_never_changes_those_above_it():
    model = made()
    changed = ANSWERS.clone()
    changed[:, 3] = 10
    before, after = (model.grid(SOURCES, SEEN, answers) for answers in (ANSWERS, changed))
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[0, 4], after[0, 4])


@torch.no_grad()
def test_alignment_shares_sum_to_one():
    shares = made().alignment(SOURCES, SEEN, ANSWERS)
    assert shares.shape == (2, 7, 6)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2, 7))
    assert (shares[1, :, 4:] == 0).all()  # columns that are not there


@torch.no_grad()
def test_waiting_for_the_whole_source_is_offline():
    model = made(causal_source=True)
    offline = model.answer_states(SOURCES, SEEN, ANSWERS)
    torch.testing.assert_close(model.answer_states(SOURCES, SEEN, ANSWERS, wait=5), offline)
    early = model.answer_states(SOURCES, SEEN, ANSWERS, wait=1)
    assert not torch.allclose(early[:, 0], offline[:, 0])
    other = SOURCES.clone()
    other[:, 2:] = 11
    unread = model.answer_states(other, torch.ones_like(SEEN), ANSWERS, wait=1)
    torch.testing.assert_close(unread[0, :2], early[0, :2])  # rows 0 and 1 see one and two tokens
    assert not torch.allclose(unread[0, 2], early[0, 2])
