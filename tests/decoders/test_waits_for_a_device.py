"""How often a step waits for the device that the model runs on: each number that Python reads is a wait.

Counted on the CPU, where the reads are the same.
"""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from decoders.lane import Lane, Limits

READS = {
    getattr(torch.Tensor, name)
    for name in ("tolist", "item", "cpu", "numpy", "nonzero", "__float__", "__int__", "__bool__", "__index__")
}


class Reads(TorchFunctionMode):
    """Counts them while it is open."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += function in READS
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("strategy", "parameters", "most"),
    [
        # whether scores are numbers, what was on offer, the token taken, what attention looked at
        ("greedy", {}, 4),
        ("sample", {"temperature": 0.0}, 4),
        ("sample", {}, 6),  # and where the number u falls
        ("sample", {"top_p": 0.9}, 9),  # and what the processors leave
        ("beam", {"num_beams": 4}, 6),
    ],
)
def test_a_step_waits_few_times(strategy, parameters, most, tiny_model):
    lane = Lane(strategy, [40, 41, 42], {"target": tiny_model("llama")}, parameters, 3, Limits(40))
    lane.advance()
    for _ in range(5):
        with Reads() as reads:
            step = lane.advance()
        assert step is not None and 0 < reads.count <= most
    lane.close()  # the model is shared


def test_reads_are_seen():
    row = torch.tensor([1.0])
    with Reads() as reads:
        float(row[0]), int(row), bool(row), row.tolist(), row.item()
    assert reads.count == 5
