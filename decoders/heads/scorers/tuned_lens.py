"""The tuned lens (Belrose et al., 2023): an affine map for each layer that translates an intermediate state
for the target's last norm and head. decoders/lenses uses it.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.module import some_rows
from decoders.heads.parts.taps import Taps, Target


class TunedLens(nn.Module):
    """`h + A h + b` for the states h that enter each layer; A and b start at zero, so that untrained it is
    the logit lens. `settings`: the arguments that a file stores to build it again.
    """

    kind = "lens"
    rates = (3e-3, 3e-3)  # learning rates of Muon (the matrices) and AdamW (the biases)
    progress = 0.0  # the trainer sets it

    def __init__(self, target: Target):
        super().__init__()
        self.target, self.settings = target, {}
        self.reads = tuple(range(target.layers))  # 0: the embeddings; the last layer's output needs no map
        self.maps = nn.ModuleList(nn.Linear(target.width, target.width) for _ in self.reads)
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def translated(self, level: int, states: torch.Tensor) -> torch.Tensor:
        """States [..., d] after `level` layers, translated for the last norm."""
        return states + self.maps[level](states.to(self.maps[level].weight.dtype))

    def logits(self, level: int, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] predicted from states [..., d] after `level` layers."""
        return self.target.exit_logits(self.translated(level, states))

    def along(self, taps: Taps) -> torch.Tensor:
        """The overlap [B, T] of the target's distributions p with the levels' q_l, the sum over tokens of the
        smaller probability, averaged over levels.
        """
        levels = [self.logits(n, taps.states[n]).float().softmax(-1) for n in self.reads]  # [B, T, V] each
        return torch.stack([torch.minimum(taps.p, q).sum(-1) for q in levels]).mean(0)

    def loss(self, taps: Taps) -> torch.Tensor:
        """KL(p || q_l) in nats from the target's distribution p at the same position, averaged over levels l
        and rows; in training over a random quarter of the rows, since the head costs most.
        """
        rows = torch.arange(taps.tokens.shape[1], device=taps.tokens.device)
        rows = some_rows(taps.tokens, len(rows)) if self.training else rows
        return self.losses(taps, rows).mean()

    def losses(self, taps: Taps, rows: torch.Tensor) -> torch.Tensor:
        """The same for each level, over `rows`: [L]."""
        logp = taps.logits[:, rows].float().log_softmax(-1)  # [B, R, V]
        kls = [
            F.kl_div(
                self.logits(level, taps.states[level][:, rows]).float().log_softmax(-1),
                logp,
                reduction="none",
                log_target=True,
            )
            for level in self.reads
        ]
        return torch.stack([kl.sum(-1).mean() for kl in kls])
