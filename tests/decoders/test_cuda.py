"""Every processor leaves the same on a GPU as on the CPU."""

import pytest
import torch

from decoders.logits.distributions import processors
from tests.decoders.logits.test_distributions import AROUND, VALUES, VOCABULARY

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", [name for name, values in VALUES.items() if len(values) > 1])
def test_a_processor_leaves_the_same_on_a_gpu(name):
    stack = processors({name: VALUES[name][-1]}, VOCABULARY, AROUND)
    logits = torch.randn(2, VOCABULARY, generator=torch.Generator().manual_seed(3)) * 3
    paths = [[1, 2, 3, 4], [0, 1, 0, 1, 0]]
    ours, there = stack(logits, paths), stack(logits.cuda(), paths)
    assert there.is_cuda
    torch.testing.assert_close(there.cpu(), ours)
