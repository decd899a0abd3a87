"""The random numbers that transformers draws next, without drawing them: a copy of the generator's state.

A generator of our own in that state yields the same numbers, and the global one stays unchanged.
"""

import torch


class Snapshot:
    """The state of the global generator of a device."""

    def __init__(self, device: torch.device):
        self.device = device
        on_gpu = device.type == "cuda"
        self.state = torch.cuda.get_rng_state(device) if on_gpu else torch.get_rng_state()

    def uniforms(self, count: int) -> list[float]:
        """The `count` numbers (float32) that `torch.rand` gave in this state."""
        generator = torch.Generator(self.device)
        generator.set_state(self.state)
        return torch.rand(count, generator=generator, device=self.device).tolist()
