"""CrossNovo in small: how CTC reads frames, what the second stage changes, what the writer attends to."""

import pytest
import torch

from explorer.experiments import reading_ahead
from explorer.experiments.models.reader_writer import (
    ReaderWriter,
    Sizes,
    annealed,
    collapsed,
    joint_memory,
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return ReaderWriter(Sizes(11, source=5, answer=3, width=16, heads=2, layers=1), [1, 2, 0, 1, 2]).eval()


@pytest.fixture(scope="module")
def batch():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 10, (4, 5), generator=generator), torch.randint(
        0, 10, (4, 3), generator=generator
    )


def test_ctc_reads_equal_neighbours_once_and_drops_blanks():
    a, b, blank = 0, 1, 2
    assert collapsed([a, a, blank, a, b, b], blank) == [a, a, b]
    assert collapsed([blank, blank], blank) == []


def test_the_loss_moves_from_the_reader_to_the_writer():
    assert [annealed(step, 10) for step in (0, 5, 10)] == [0, 0.5, 1]


def test_the_reader_sees_both_sides_and_the_writer_only_what_is_written(model, batch):
    """Every frame depends on every token of the source; a later digit changes no logits in front of it."""
    source, answer = batch
    other = source.clone()
    other[:, -1] = (other[:, -1] + 1) % 10
    moved = (model.read(model.encode(source)) - model.read(model.encode(other))).abs().amax(-1)
    assert (moved > 0).all()
    memory, changed = joint_memory(model, source), answer.clone()
    changed[:, 1] = (changed[:, 1] + 1) % 10
    before, after = model.write(memory, answer), model.write(memory, changed)
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert (before[:, 2:] != after[:, 2:]).any()


def test_the_second_stage_sends_no_gradient_back(model, batch):
    """Only the writer learns; cutting the reader off does not change what is computed, emptying it does."""
    source, answer = batch
    model.zero_grad()
    memory = joint_memory(model, source)
    model.token_loss(memory, answer).backward()
    learned = {name.split(".")[0] for name, one in model.named_parameters() if one.grad is not None}
    assert learned == {"embed", "position", "token_head", "writer"}  # the writer's own input
    assert {id(one) for one in model.of_the_writer()}.isdisjoint(map(id, model.reader.parameters()))
    encoded = model.encode(source)
    attached = torch.cat([model.read(encoded), encoded], 1)
    torch.testing.assert_close(memory, attached)
    empty = memory.clone()
    empty[:, : model.sizes.frames] = 0
    assert not torch.allclose(model.write(memory, answer), model.write(empty, answer))


def test_the_frozen_parts_stay_as_they_are(monkeypatch):
    rows = reading_ahead.sums(64, 0)
    begun = reading_ahead.learned_together(rows, 0, 2)
    end = reading_ahead.learned_on(begun, joint_memory, rows, 0, 2)
    of_the_writer = ("writer", "token_head")
    for (name, old), new in zip(begun.named_parameters(), end.parameters(), strict=True):
        assert torch.equal(old, new) != name.startswith(of_the_writer), name


def test_sums_are_sums():
    rows, digits = reading_ahead.sums(20, 3), reading_ahead.DIGITS
    for row in rows.tolist():
        said = "".join("0123456789+"[token] for token in row)
        one, other = said[:digits], said[digits + 1 : 2 * digits + 1]
        assert said[digits] == "+" and int(one) + int(other) == int(said[2 * digits + 1 :])


def test_beams_find_what_all_answers_searched_would_find(model):
    """With as many beams as there are texts, the most likely of all; attention shares add up to one."""
    torch.manual_seed(2)
    small = ReaderWriter(Sizes(11, source=5, answer=2, width=16, heads=2, layers=1), [1, 2, 0, 1, 2]).eval()
    memory = joint_memory(small, torch.tensor([[1, 2, 10, 3, 4]]))
    all_texts = torch.cartesian_prod(torch.arange(11), torch.arange(11))
    with torch.no_grad():
        logits = small.write(memory.expand(len(all_texts), -1, -1), all_texts)[:, :2].log_softmax(-1)
        totals = logits.gather(2, all_texts[:, :, None]).sum((1, 2))
        looks = small.cross_attention(memory, torch.tensor([[1, 2]]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading_ahead, "SIZES", small.sizes)
        patch.setattr(reading_ahead, "BEAMS", 11)
        assert reading_ahead.written(small, memory) == all_texts[totals.argmax()].tolist()
    torch.testing.assert_close(looks.sum(-1), torch.ones(2))
