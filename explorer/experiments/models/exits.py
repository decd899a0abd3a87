"""A small Llama whose layers can be left early through one shared head, and how training may prepare for it:
LayerSkip (Elhoushi et al. 2024) and joint exits (MoSE, 2025).
"""

import math

import torch
from torch import nn

from explorer.experiments.models.small_llama import small_llama


class Exits(nn.Module):
    """Layers of width `width`, one norm and one head for all exits, and a vector for each exit, which stays
    zero unless it is trained.
    """

    def __init__(self, vocabulary: int, layers: int, width: int, heads: int, seed: int = 0):
        super().__init__()
        whole = small_llama(vocabulary, width, layers, heads, seed)
        self.inner, self.head = whole.model, whole.lm_head
        self.vectors = nn.Parameter(torch.zeros(layers, width), requires_grad=False)

    def states(self, rows: torch.Tensor, dropped: torch.Tensor | None = None) -> list[torch.Tensor]:
        """The output of each layer, L times [B, T, d]. dropped: the probability [L] with which a row of the
        batch skips a layer.
        """
        x = self.inner.embed_tokens(rows)
        places = self.inner.rotary_emb(x, torch.arange(rows.shape[1])[None])
        outs = []
        for at, layer in enumerate(self.inner.layers):
            out = layer(x, position_embeddings=places)
            if dropped is not None:
                stays = torch.rand(len(rows), 1, 1) >= dropped[at]
                out = torch.where(stays, out, x)
            x = out
            outs.append(x)
        return outs

    def logits(self, states: list[torch.Tensor], exit: int) -> torch.Tensor:
        """Logits [B, T, V] after `exit` layers."""
        return self.head(self.inner.norm(states[exit - 1] + self.vectors[exit - 1]))


def joint_weights(layers: int, exits: tuple[int, ...]) -> list[float]:
    """The weights i / L of the exits i in the sum of their losses."""
    return [exit / layers for exit in exits]


def skip_weights(layers: int, scale: float, on: list[bool] | None = None) -> list[float]:
    """LayerSkip's weights of the losses after the layers, which sum to 1 and grow with the sum of the layers'
    numbers; `scale` is that of all but the last. on: the exits whose loss counts now (section 4.1.2).
    """
    last = layers - 1
    raw = [scale * layer * (layer + 1) / 2 for layer in range(last)]
    raw.append(last + scale * last * (last - 1) / 2)
    raw = [weight * (on is None or on[layer]) for layer, weight in enumerate(raw)]
    return [weight / (sum(raw) or 1.0) for weight in raw]


def rotated(layers: int, every: int, step: int) -> list[bool]:
    """LayerSkip's curriculum: every `every`-th exit, another set at each step, and always the last one."""
    return [(layer - step) % every == 0 or layer == layers - 1 for layer in range(layers)]


def skip_probs(layers: int, highest: float, progress: float) -> torch.Tensor:
    """LayerSkip's probability of skipping a layer [L]: from 0 at the first to `highest` at the last, and from
    0 at the beginning of a training to that at its end (section 4.1.1, from scratch).
    """
    depth = [math.exp2(layer / max(1, layers - 1)) - 1 for layer in range(layers)]
    return highest * (math.exp2(progress) - 1) * torch.tensor(depth)
