"""An aligned model: the target with a small network after its last layer, trained so that its texts get more
of one reward.

It shares the target's forward, keys and values; only the head's input changes. Its settings name the reward,
as parameters of a scorer.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.taps import Taps, Target

STRENGTH = 0.1  # DPO's beta, which keeps the model near the target


class Aligned(nn.Module):
    """h + B SiLU(A h). `settings`: the arguments that a file stores to build it again; `reward`: the
    parameters of the scorer (decoders/search/stepwise/scorers.py) to which it was aligned.
    """

    kind = "aligned"
    reads: tuple[int, ...] = ()

    def __init__(self, target: Target, width: int = 128, reward: dict | None = None):
        super().__init__()
        self.target, self.settings = target, {"width": width, "reward": reward or {}}
        self.inner = nn.Linear(target.width, width)
        self.outer = nn.Linear(width, target.width, bias=False)
        nn.init.zeros_(self.outer.weight)  # it starts as the target

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] after states [..., d]."""
        moved = hidden + self.outer(F.silu(self.inner(hidden)))
        return self.target.logits(moved)

    @torch.no_grad()
    def rows(self, states: list[torch.Tensor]) -> torch.Tensor:
        """Logits [N, V] after N states [d]."""
        return self(torch.stack(states).to(self.inner.weight.dtype)).float()

    @torch.no_grad()
    def along(self, taps: Taps) -> torch.Tensor:
        """Its probabilities [B, T - 1] of the tokens of known texts, from the second on."""
        probs = self(taps.hidden[:, :-1]).float().softmax(-1)
        return probs.gather(-1, taps.tokens[:, 1:, None])[..., 0]

    def loss(self, hidden: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Direct preference optimisation, in nats per pair: -ln sigmoid(STRENGTH (gain of the better text -
        gain of the worse)), where a gain is a log-probability minus the target's. tokens [P, 2, T]: better,
        worse; hidden [P, 2, T, d]: the states before them.
        """
        with torch.autocast(hidden.device.type, enabled=False):
            own, target = (
                logits.float().log_softmax(-1).gather(-1, tokens[..., None])[..., 0].sum(-1)
                for logits in (self(hidden), self.target.logits(hidden))
            )
        gained = own - target  # [P, 2]
        return -F.logsigmoid(STRENGTH * (gained[:, 0] - gained[:, 1])).mean()
