"""Every processor leaves the same on another device as on the CPU, and every strategy writes the same there.
It is a GPU where there is one, else a device that is as strict. All laws run on a GPU with
DECODING_EXPLORER_TEST_DEVICE=cuda.
"""

import pytest
import torch

from decoders.logits.distributions import processors
from tests.decoders.logits.test_distributions import AROUND, VALUES, VOCABULARY
from tests.helpers import other_device, tiny_models
from tests.helpers.served_here import ServedHere
from tests.laws.running import PROMPTS, every_strategy, start

SINGLE = {
    "scmoe"
}  # on a GPU, transformers multiplies the matrices of experts in no more than single precision


@pytest.fixture(scope="session")
def device():
    return "cuda" if torch.cuda.is_available() else other_device.device()


@pytest.mark.parametrize("name", [name for name, values in VALUES.items() if len(values) > 1])
def test_a_processor_leaves_the_same(name, device):
    """In double precision: rounding would decide what a truncation keeps."""
    stack = processors({name: VALUES[name][1]}, VOCABULARY, AROUND)
    logits = torch.randn(2, VOCABULARY, generator=torch.Generator().manual_seed(3)).double() * 3
    paths = [[1, 2, 3, 4], [0, 1, 0, 1, 0]]
    ours, there = stack(logits, paths), stack(logits.to(device), paths)
    assert there.device.type == device
    torch.testing.assert_close(there.cpu(), ours)


@every_strategy
def test_a_strategy_writes_the_same(name, target_for, tiny_model, device):
    """In double precision, so that no rounding decides a token."""

    def moved(model):
        if isinstance(model, ServedHere):
            return ServedHere(moved(model.client.model))
        kind = model.name.removeprefix("tiny-")
        return tiny_models.make(kind, model.seed, model.model.dtype, device=device)

    dtype = torch.float32 if name in SINGLE else torch.float64
    here = {"target": target_for(name.split()[0], dtype), "draft": tiny_model("llama", 1, dtype)}
    there = {role: moved(model) for role, model in here.items()}
    assert start(name, there, PROMPTS[2]).run().output() == start(name, here, PROMPTS[2]).run().output()
