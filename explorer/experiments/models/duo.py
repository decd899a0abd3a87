"""A model each of whose layers has a big and a small feed-forward block: in each layer a token takes one of
the two, which is its route (Duo-LLM, Alizadeh et al. 2024).
"""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP

from decoders.refusal import Refusal

# (layer, input of its two blocks [B, T, d]) -> share of the big one [B, T, 1]
Choose = Callable[[int, torch.Tensor], torch.Tensor]


def all_big(layer: int, state: torch.Tensor) -> torch.Tensor:
    """The reference route: the big block everywhere."""
    return torch.ones_like(state[..., :1])


def at_random(layer: int, state: torch.Tensor) -> torch.Tensor:
    """Big or small for each token, each with probability 1/2: the routes used in training."""
    return torch.randint(0, 2, (*state.shape[:-1], 1)).to(state)


def bits(layers: int) -> torch.Tensor:
    """The routes [2^L, L] in the order of `Duo.every`: route r takes the big block of layer l where bit l of
    r is 1.
    """
    return torch.arange(2**layers)[:, None] >> torch.arange(layers) & 1


class OwnBehindHistory:
    """Replaces a cache: each token's keys and values on its own route, which only this token may see, are
    appended to those of the reference route.
    """

    def __init__(self, history: DynamicCache):
        self.history = history

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, ...]:
        """Both concatenated, [B, H, 2T, D]."""
        old = self.history.layers[layer]
        return tuple(torch.cat([a.expand_as(b), b], -2) for a, b in ((old.keys, keys), (old.values, values)))


class Duo(nn.Module):
    """The first `layers` layers of a Llama, each with a second feed-forward block whose inner width is
    `smaller` times less and which adds nothing until it is trained.
    """

    def __init__(self, model: nn.Module, layers: int, smaller: int):
        super().__init__()
        if not isinstance(model, LlamaForCausalLM):
            raise Refusal("this experiment takes a Llama apart; choose one, such as --model llama-tiny.")
        whole = copy.deepcopy(model).float().requires_grad_(True)
        whole.model.layers = whole.model.layers[:layers]
        self.inner, self.head = whole.model, whole.lm_head
        small_config = copy.deepcopy(model.config)
        small_config.intermediate_size = max(1, small_config.intermediate_size // smaller)
        self.small = nn.ModuleList(LlamaMLP(small_config) for _ in self.inner.layers)
        for block in self.small:
            nn.init.zeros_(block.down_proj.weight)

    def entered(
        self, rows: torch.Tensor, history: DynamicCache | None, keep: DynamicCache | None
    ) -> tuple[torch.Tensor, dict]:
        """The input of the first layer [B, T, d], and the other inputs of attention."""
        x, count = self.inner.embed_tokens(rows), rows.shape[1]
        given = {"position_embeddings": self.inner.rotary_emb(x, torch.arange(count)[None])}
        if history is None:
            return x, given | {"attention_mask": None, "past_key_values": keep}  # causal
        sees = torch.cat([torch.ones(count, count).tril(-1), torch.eye(count)], -1)
        mask = torch.zeros_like(sees).masked_fill(sees == 0, float("-inf"))
        return x, given | {"attention_mask": mask[None, None], "past_key_values": OwnBehindHistory(history)}

    def read(self, at: int, x: torch.Tensor, given: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The residual stream after the attention of a layer, and the input of its two blocks."""
        layer = self.inner.layers[at]
        x = x + layer.self_attn(hidden_states=layer.input_layernorm(x), **given)[0]
        return x, layer.post_attention_layernorm(x)

    def forward(
        self,
        rows: torch.Tensor,
        choose: Choose = all_big,
        history: DynamicCache | None = None,
        keep: DynamicCache | None = None,
    ) -> torch.Tensor:
        """Logits [B, T, V] where each token goes as `choose` says; it reads what the earlier tokens did on
        their own routes, or on those of `history`. keep: where its keys and values are kept.
        """
        x, given = self.entered(rows, history, keep)
        for at, layer in enumerate(self.inner.layers):
            x, state = self.read(at, x, given)
            x = x + torch.lerp(self.small[at](state), layer.mlp(state), choose(at, state))
        return self.logits(x)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] of last states [..., d]."""
        return self.head(self.inner.norm(x))

    @torch.no_grad()
    def reference(self, rows: torch.Tensor) -> DynamicCache:
        """The keys and values of all tokens when each takes all big blocks."""
        kept = DynamicCache()
        self(rows, keep=kept)
        return kept

    @torch.no_grad()
    def every(self, row: torch.Tensor) -> torch.Tensor:
        """Last states [2^L, T, d] of each token of a row [T] on all its routes, where the earlier tokens took
        the reference route. Routes share their common beginning: layer l runs 2^l times, not 2^L.
        """
        x, given = self.entered(row[None], self.reference(row[None]), None)
        for at, layer in enumerate(self.inner.layers):
            x, state = self.read(at, x, given)
            x = torch.cat([x + self.small[at](state), x + layer.mlp(state)])
        return x


class Router(nn.Module):
    """A linear map in each layer that chooses small or big."""

    def __init__(self, layers: int, width: int):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(width, 2) for _ in range(layers))
        for one in self.maps:
            nn.init.zeros_(one.weight)
            nn.init.zeros_(one.bias)

    def forward(self, layer: int, state: torch.Tensor, sharpness: float) -> torch.Tensor:
        """The share of the big block [B, T, 1]: a softmax, harder the higher the sharpness."""
        return (sharpness * self.maps[layer](state)).softmax(-1)[..., 1:]
