"""Every processor leaves the same on another device as on the CPU, and every strategy writes the same there.
It is a GPU where there is one, else a device that is as strict. All laws run on a GPU with
DECODING_EXPLORER_TEST_DEVICE=cuda.
"""

from functools import cache

import pytest
import torch

from decoders.logits.distributions import processors
from tests.decoders.logits.test_distributions import CONTEXT, VALUES, VOCABULARY
from tests.helpers import other_device, tiny_models
from tests.helpers.served_here import ServedHere
from tests.laws.running import PROMPTS, every_strategy, start

made = cache(tiny_models.make)  # once for all strategies
SINGLE = {"scmoe"}  # transformers multiplies experts' matrices on a GPU in no more than single precision


@pytest.fixture(scope="session")
def device():
    return "cuda" if torch.cuda.is_available() else other_device.device()


@pytest.mark.parametrize("name", [name for name, values in VALUES.items() if len(values) > 1])
def test_a_processor_leaves_the_same(name, device):
    """In double precision: rounding would decide what a truncation keeps."""
    stack = processors({name: VALUES[name][1]}, VOCABULARY, CONTEXT)
    logits = torch.randn(2, VOCABULARY, generator=torch.Generator().manual_seed(3)).double() * 3
    paths = [[1, 2, 3, 4], [0, 1, 0, 1, 0]]
    ours, there = stack(logits, paths), stack(logits.to(device), paths)
    assert there.device.type == device
    torch.testing.assert_close(there.cpu(), ours)


def moved(model, device):
    """The same tiny model on another device."""
    if isinstance(model, ServedHere):
        return ServedHere(moved(model.client.model, device))
    return made(model.name.removeprefix("tiny-"), model.seed, model.model.dtype, device=device)


@every_strategy
def test_a_strategy_writes_the_same(name, target_for, tiny_model, device):
    """In double precision, so that no rounding decides a token."""
    dtype = torch.float32 if name in SINGLE else torch.float64
    here = {"target": target_for(name.split()[0], dtype), "draft": tiny_model("llama", 1, dtype)}
    there = {role: moved(model, device) for role, model in here.items()}
    ours, theirs = (start(name, models, PROMPTS[2], new_tokens=6).run() for models in (here, there))
    assert theirs.output() == ours.output()
