"""The linear maps of hidden transfer (Wu et al., 2024): in the middle of the network, they predict the state
of a future token from that of the newest one, and the layers above refine it.
"""

from typing import Any

import torch
from torch import nn

from decoders.engine.injected_states import Injection
from decoders.heads.parts.module import cross_entropy
from decoders.heads.parts.taps import Taps, Target
from decoders.heads.path_independent.lookahead_tokens import LookaheadTokens
from decoders.refusal import Refusal


class HiddenTransfer(LookaheadTokens):
    """`layers[i - 1]` = t_i: after t_i layers the state s of a token gives that of pseudo token i, `W_i s`,
    which goes through the layers above. W_i starts as the identity. A pseudo token attends to earlier ones in
    all its layers, so it cannot be injected below them.
    """

    kind = "hidden_transfer"
    rates = (3e-3, 1e-3)

    def __init__(self, target: Target, layers: tuple[int, ...] = (4, 4, 4)):
        layers = tuple(min(layer, target.layers - 1) for layer in layers)
        super().__init__(target, len(layers), layers=list(layers))
        if min(layers) < 0 or list(layers) != sorted(layers):
            raise Refusal(
                "Pseudo tokens are injected after 0 or more layers, none before the one in front of it."
            )
        self.settings.pop("depth")  # it follows from `layers`
        self.enters, self.reads = layers, tuple(sorted(set(layers)))
        self.maps = nn.ModuleList(nn.Linear(target.width, target.width, bias=False) for _ in layers)
        for linear in self.maps:
            nn.init.eye_(linear.weight)

    def entering(self, taps: Taps, hosts: torch.Tensor, i: int) -> torch.Tensor:
        return self.maps[i - 1](taps.states[self.enters[i - 1]][:, hosts])

    def place(self, scorer: Any, node: int, host: int, i: int) -> None:
        scorer.injections[node] = Injection(self.enters[i - 1], host, self.maps[i - 1].weight)

    def loss(self, taps: Taps) -> torch.Tensor:
        """Sum over the pseudo tokens of the cross-entropy under the target's distributions there."""

        def one(logits: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
            return cross_entropy(taps.p[:, places - 1], logits)

        return self.slot_loss(taps, one, [1.0] * self.depth)
