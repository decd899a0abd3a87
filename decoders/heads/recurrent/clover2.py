"""Clover-2's drafter (Xiao et al., 2024): the root is read before the layers that summarise the text, and the
output estimates the target's state.

    x_i = h_i + cell_A(h_i, e(token i + 1)), h before the target's last norm; two decoder layers; a norm: s_1
    o_1 = norm(W_1 s_1);   s_j = s_{j-1} + cell_B(s_{j-1}, e_{j-1}),   o_j = norm(W_2 [s_j; e_{j-1}])  (j > 1)
    logits_j = W_lm o_j

e_j is the vector of the token drafted at depth j; cells and vectors are those of clover.py.
"""

import torch
from torch import nn
from torch.nn import functional as F

from decoders.heads.parts.layers import Past, one_after_another
from decoders.heads.parts.module import ALL, Sees
from decoders.heads.parts.small_blocks import narrow_layer
from decoders.heads.parts.taps import Taps, Target
from decoders.heads.recurrent.clover import Cell, near_identity, vectors
from decoders.heads.recurrent.recurrent_heads import RecurrentHeads

LAYERS = 2
STATE_WEIGHT = 10.0  # of the distance to the target's state; the cross-entropy's weight is 1


class Clover2(RecurrentHeads):
    """heads, intermediate: of the layers. state_weight: of the distance to the target's state in the loss.
    `unit`: divides the target's states, which may be far larger than the tokens' vectors.
    """

    kind = "clover2"
    sees = Sees(ALL, root=True, path=True)
    steps, decay = 5, 0.7

    def __init__(
        self, target: Target, heads: int = 2, intermediate: int = 64, state_weight: float = STATE_WEIGHT
    ):
        super().__init__(target, heads=heads, intermediate=intermediate, state_weight=state_weight)
        width, self.state_weight, self.reads = target.width, state_weight, (target.layers,)
        self.register_buffer("unit", torch.ones(()))
        self.cell_a, self.cell_b = Cell(target, silent=False), Cell(target, silent=False)
        self.layers = nn.ModuleList(narrow_layer(target, heads, intermediate) for _ in range(LAYERS))
        self.norm = nn.RMSNorm(width, target.eps)
        self.first, self.later = (nn.Linear(n * width, width, bias=False) for n in (1, 2))
        for matrix in (self.first, self.later):
            near_identity(matrix)
        self.last_norm = nn.RMSNorm(width, target.eps)
        with torch.no_grad():
            self.last_norm.weight.copy_(target.last_norm)

    def features(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The target's states before its last norm, in units of `unit`."""
        return (states[self.target.layers] / self.unit).to(self.norm.weight.dtype)

    def imitated(self, hidden: torch.Tensor, states: dict[int, torch.Tensor] | None) -> torch.Tensor:
        """The target's states after its last norm."""
        return hidden

    def entries(self, features: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return features + self.cell_a(features, vectors(self.target, tokens).to(features.dtype))

    def layer(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None = None,
        past: Past | None = None,
    ) -> tuple[torch.Tensor, Past]:
        x, held = one_after_another(self.layers, x, positions, mask, past)
        return self.norm(x), held

    def after(self, state: torch.Tensor, tokens: torch.Tensor, k: int) -> torch.Tensor:
        """The state carries s_j, and after depth 1 the vector of the newest token: [..., d] or [..., 2d]."""
        if k == 1:
            return state  # the summary has read the root already
        token = vectors(self.target, tokens).to(state.dtype)
        before = state[..., : self.target.width]
        return torch.cat([before + self.cell_b(before, token), token], -1)

    def output_state(self, state: torch.Tensor, k: int) -> torch.Tensor:
        """o_k [..., d], which estimates the target's state of that depth."""
        return self.last_norm((self.first if k == 1 else self.later)(state))

    def words(self, state: torch.Tensor, k: int) -> torch.Tensor:
        return self.target.logits(self.output_state(state, k))

    def loss_at(self, taps: Taps, state: torch.Tensor, rows: torch.Tensor, k: int) -> torch.Tensor:
        """10 times smooth L1 to the target's state, plus the cross-entropy under its distribution."""
        apart = F.smooth_l1_loss(self.output_state(state, k).float(), taps.hidden[:, rows + k])
        return self.state_weight * apart + super().loss_at(taps, state, rows, k)

    def feature_at(self, memory, number: int) -> torch.Tensor:
        return self.output_state(memory.states[number], memory.depths[number])
