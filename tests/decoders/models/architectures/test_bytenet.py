"""ByteNet: ring buffers write what the whole network says, in constant work, within the receptive field and
the bound of the unfolded source.
"""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from decoders.models.architectures.bytenet import ByteNet, ByteNetConfig


def made(sets: int) -> ByteNet:
    """Width 4, dilations 1, 2, 4; random."""
    torch.manual_seed(1)
    net = ByteNet(ByteNetConfig(vocab_size=20, width=4, dilations=(1, 2, 4), sets=sets, unfold=(1.2, 0)))
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return net.double().eval()


@pytest.fixture(scope="module")
def model():
    """Two sets of dilations."""
    return made(sets=2)


SOURCES = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 2, 0, 0]])
SEEN = SOURCES != 0


def test_the_receptive_field_of_the_paper():
    assert ByteNetConfig(dilations=(1, 2, 4, 8, 16), sets=6, kernel=3).receptive_field == 373
    assert ByteNetConfig(dilations=(1, 2, 4, 8, 16), sets=2).receptive_field == 125


@torch.no_grad()
def test_incremental_equals_full(model):
    answers = torch.randint(2, 20, (2, 60))
    full = model.answer_logits(SOURCES, SEEN, answers)
    rings = model.start(SOURCES, SEEN)
    steps = [model.step(rings, None), *(model.step(rings, answers[:, at]) for at in range(60))]
    torch.testing.assert_close(torch.stack(steps, 1), full, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_byte_outside_the_receptive_field_changes_nothing():
    model = made(sets=1)
    answers = torch.randint(2, 20, (16, 60))
    changed = answers.clone()
    changed[:, 10] = (answers[:, 10] + 1) % 18 + 2
    sources, seen = (x[:1].expand(16, -1) for x in (SOURCES, SEEN))
    before, after = (model.answer_logits(sources, seen, some) for some in (answers, changed))
    moved = (before != after).any(-1).any(0)
    reach = model.config.receptive_field  # byte 10 is first read by row 11
    assert reach == 15 and not moved[:11].any() and not moved[11 + reach :].any()
    assert moved[11] and moved[10 + reach]


def flops(model: ByteNet, written: int) -> int:
    """Floating-point operations of one step after so many bytes."""
    rings = model.start(SOURCES, SEEN)
    for _ in range(written):
        model.step(rings, torch.tensor([3, 4]))
    with FlopCounterMode(display=False) as counter:
        model.step(rings, torch.tensor([3, 4]))
    return counter.get_total_flops()


@torch.no_grad()
def test_a_byte_costs_the_same_however_much_was_written(model):
    assert flops(model, 1) == flops(model, 40) > 0
    rings = model.start(SOURCES, SEEN)
    sizes = [ring.shape[1] for ring in rings.buffers]
    assert sizes == [2, 4, 8] * 2 and sum(sizes) + 1 == model.config.receptive_field


@torch.no_grad()
def test_the_source_unfolds_up_to_its_bound(model):
    assert model.config.unfolded(torch.tensor([0, 5, 3, 10])).tolist() == [0, 6, 4, 12]
    memory = model.read(SOURCES, SEEN)
    assert memory.shape == (2, 6, 8)
    assert (memory[1, 4:] == 0).all() and (memory[1, :4] != 0).any(-1).all()
    longer = model.read(torch.nn.functional.pad(SOURCES, (0, 9)), torch.nn.functional.pad(SEEN, (0, 9)))
    torch.testing.assert_close(longer, memory)
