"""The residual accelerators of M2R2 (Bhendawade et al., 2025): a second, faster residual stream through the
layers.

A reconstruction from a short published description: a stream a beside the usual one h, through the same
layers, with small adapters B that move a_i towards h after R i layers.

    a_0 = h_0,   a_{i+1} = a_i + F_i(a_i; keys and values of h) + B_i(a_i)

It has no keys and values of its own, so a token can be read again at any time.
"""

import torch
from torch import nn
from torch.nn import functional as F
from transformers.cache_utils import Cache, DynamicCache

from decoders.engine.kv_cache import ReadOnly
from decoders.heads.parts.module import NONE, DraftModule, Sees, cross_entropy
from decoders.heads.parts.taps import Taps, Target
from decoders.refusal import Refusal


class M2R2(DraftModule):
    """`exit` adapters of rank `rank`, one after each of the first layers; they start at zero, so that the
    fast stream starts as the usual one. R = the target's layers / exit. alignment: weight in the loss of the
    distance to later states.
    """

    kind = "m2r2"
    sees = Sees(NONE, root=True, path=True, first=True)

    def __init__(self, target: Target, exit: int = 3, rank: int = 32, alignment: float = 0.0):
        super().__init__(target, exit=exit, rank=rank, alignment=alignment)
        if not 0 < exit < target.layers:
            raise Refusal(f"The exit must lie after 1 to {target.layers - 1} layers, not {exit}.")
        later = (round(i * target.layers / exit) for i in range(1, exit))
        self.reads = tuple(later) if alignment else ()
        self.inner = nn.ModuleList(nn.Linear(target.width, rank, bias=False) for _ in range(exit))
        self.outer = nn.ModuleList(nn.Linear(rank, target.width, bias=False) for _ in range(exit))
        for linear in self.outer:
            nn.init.zeros_(linear.weight)

    def stream(
        self, tokens: torch.Tensor, positions: torch.Tensor, past: Cache, fast: bool = True
    ) -> list[torch.Tensor]:
        """The states [B, N, d] after 0 to `exit` layers for tokens [B, N] at positions [B, N]: of the fast
        stream, which leaves `past` unchanged, or of the usual one, which appends its keys and values to it.
        """
        base = self.target.model.base_model
        residuals = [self.target.read(tokens)]
        turns = base.rotary_emb(residuals[0], positions)
        for layer, inner, outer in zip(base.layers, self.inner, self.outer, strict=False):
            a = residuals[-1]
            output = layer(a, position_ids=positions, past_key_values=past, position_embeddings=turns)
            output = output[0] if isinstance(output, tuple) else output
            residuals.append(output + outer(F.silu(inner(a))) if fast else output)
        return residuals

    def along_text(self, tokens: torch.Tensor, fast: bool = True) -> list[torch.Tensor]:
        """`stream` for whole texts [B, T]."""
        positions, usual = torch.arange(tokens.shape[1], device=tokens.device)[None], DynamicCache()
        with torch.no_grad():
            slow = self.stream(tokens, positions, usual, fast=False)
        if not fast:
            return slow
        return self.stream(tokens, positions, ReadOnly.of(usual))

    def loss(self, taps: Taps) -> torch.Tensor:
        """Cross-entropy at the exit under the target's distributions, plus `distance` times `alignment`."""
        residuals, weight = self.along_text(taps.tokens), self.settings["alignment"]
        loss = cross_entropy(taps.p, self.target.exit_logits(residuals[-1]))
        return loss + weight * self.distance(residuals, taps) if weight else loss

    def distance(self, residuals: list[torch.Tensor], taps: Taps) -> torch.Tensor:
        """Mean over 0 < i < exit of |a_i - h_{R i}|^2 / |h_{R i}|^2; 0 if only one layer runs."""
        apart = [
            ((a - taps.states[layer]).square().sum(-1) / taps.states[layer].square().sum(-1)).mean()
            for a, layer in zip(residuals[1:-1], self.reads, strict=True)
        ]
        return torch.stack(apart).mean() if apart else residuals[-1].new_zeros(())

    def along(self, taps: Taps, depth: int) -> list[torch.Tensor]:
        """As `DraftModule.along`. All depths read the drafted tokens, so they have the same guesses,
        shifted.
        """
        logits = self.target.exit_logits(self.along_text(taps.tokens)[-1])
        return [logits[:, k:-1] for k in range(1, depth + 1)]

    def below(self, token: int, place: int, past: Cache) -> torch.Tensor:
        """Logits [V] after a token at a place; the token's own keys and values are already in `past`."""
        at = torch.tensor([[token], [place]], device=self.target.embed.device)
        return self.target.exit_logits(self.stream(at[:1], at[1:], past)[-1])[0, -1]
