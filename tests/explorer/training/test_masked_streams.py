"""Two streams in one forward: the clean one is an ordinary causal pass, the masked one sees what a decoder
sees.
"""

import pytest
import torch

from explorer.corpus import IGNORED
from explorer.training.masked_streams import (
    MASK,
    MAX_ENDS,
    ROW,
    block_starts,
    mixed,
    problem_rows,
    two_streams,
)
from explorer.training.recipes.llama_tiny_wedlm import hide, physical
from tests.helpers.tiny_models import KINDS

ANYWHERE = torch.ones(1, 1, 1, dtype=torch.bool)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return KINDS["llama"](vocab_size=MASK + 1, max_position_embeddings=64).model.eval()


@pytest.fixture
def rows():
    return torch.randint(10, 4000, (2, 12), generator=torch.Generator().manual_seed(1))


def labels_of(rows, given):
    labels = rows.clone()
    labels[:, :given] = IGNORED
    return labels


def test_blocks_begin_where_an_answer_begins(rows):
    starts = block_starts(labels_of(rows, 3), torch.tensor([[4], [2]]))
    assert starts[0].tolist() == [0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 7, 11]
    assert starts[1].tolist() == [0, 0, 2, 3, 3, 5, 5, 7, 7, 9, 9, 11]


@torch.no_grad()
def test_the_clean_stream_never_sees_the_masked_one(model, rows):
    starts = block_starts(labels_of(rows, 3), torch.tensor([[4], [2]]))
    hidden = torch.zeros_like(rows, dtype=torch.bool)
    hidden[:, 4:9] = True
    clean, _ = two_streams(model, rows, hidden, starts, ANYWHERE)
    torch.testing.assert_close(clean, model(input_ids=rows).last_hidden_state, atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("inside", ["everywhere", "physical order"])
def test_the_masked_stream_sees_what_the_decoder_sees(model, rows, inside):
    """Clean tokens before its block, then its block alone."""
    labels, hidden = labels_of(rows, 3), torch.zeros_like(rows, dtype=torch.bool)
    hidden[:, [3, 5, 8]] = True
    starts = block_starts(labels, torch.tensor([[4], [4]]))
    rule = physical(hidden) if inside == "physical order" else ANYWHERE
    _, masked = two_streams(model, rows, hidden, starts, rule)
    known = rows.masked_fill(hidden, MASK)
    for start, stop in ((3, 7), (7, 11)):
        block = list(range(start, stop))
        if inside == "physical order":
            block.sort(key=lambda p: (bool(hidden[0, p]), p))
        order = [*range(start), *block]
        ids = torch.cat([rows[:, :start], known[:, block]], 1)
        sees = torch.ones(stop, stop, dtype=torch.bool).tril()
        if inside == "everywhere":
            sees[start:] = True
        blocked = torch.zeros(stop, stop).masked_fill(~sees, torch.finfo(torch.float32).min)
        want = model(ids, attention_mask=blocked[None, None], position_ids=torch.tensor([order]))
        torch.testing.assert_close(masked[:, block], want.last_hidden_state[:, start:], atol=1e-5, rtol=0)


def test_wedlm_masks_the_share_that_each_block_has_drawn(rows):
    labels = labels_of(rows, 3)
    starts = block_starts(labels, torch.full((2, 1), 4))
    hidden, share = hide(labels, starts, torch.Generator().manual_seed(2))
    assert not hidden[:, :3].any()
    for row in range(2):
        for start in (3, 7, 11):
            block = starts[row] == start
            drawn = share[row, block].unique()
            assert len(drawn) == 1 and 0 < drawn <= 1
            assert int(hidden[row, block].sum()) == int((drawn * int(block.sum())).round())


def test_rows_are_problems_with_their_ends_and_stories_of_which_a_beginning_is_given(texts):
    rows, labels = mixed(texts, 0, batch=5)
    assert rows.shape == labels.shape == (5, ROW)
    assert (labels[:, 0] == IGNORED)[3:].all()
    learned = labels != IGNORED
    assert (rows[learned] == labels[learned]).all()
    again, _ = problem_rows(texts, "0", 3)
    assert torch.equal(again, rows[:3])
    ends = max(len(run) for run in "".join("e" if t == 0 else " " for t in again.flatten()).split())
    assert 1 < ends <= MAX_ENDS
