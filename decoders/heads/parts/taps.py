"""What draft modules read from a target: the weights that they share, and the results of one forward.

Alignment throughout this package: `hidden[n]` is the target's state after token n, last norm included, from
which the target's head gives the distribution of token n + 1. The root is token n + 1; a guess of depth k is
for token n + 1 + k, whose distribution under the target is that of row n + k.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch.nn import functional as F
from transformers.cache_utils import DynamicCache

from decoders.engine.fast_product import Matrix
from decoders.heads.parts.fast_layers import Fast
from decoders.refusal import Refusal


@dataclass(frozen=True, eq=False)
class Target:
    """The frozen parts of a target that draft modules use, and its shape."""

    embed: torch.Tensor  # [V, d]
    head: torch.Tensor  # [V, d]
    last_norm: torch.Tensor  # [d], weight of the RMS norm in front of the head
    eps: float
    layers: int
    heads: int
    intermediate: int
    theta: float  # base of the rotary positions
    model: torch.nn.Module | None = None  # the whole target

    @classmethod
    def of(cls, model: torch.nn.Module) -> "Target":
        """The shared parts of a causal LM. Raises Refusal with one sentence if it is not built like
        Llama.
        """
        config = model.config.get_text_config()
        norm = getattr(model.base_model, "norm", None)
        if getattr(norm, "weight", None) is None or not hasattr(config, "rms_norm_eps"):
            raise Refusal(
                f"Draft heads need a target built like Llama, with an RMS norm before its head; "
                f"{type(model).__name__} is not."
            )
        return cls(
            embed=model.get_input_embeddings().weight.detach(),
            head=model.get_output_embeddings().weight.detach(),
            last_norm=factor_of(norm, config.rms_norm_eps),
            eps=config.rms_norm_eps,
            layers=config.num_hidden_layers,
            heads=config.num_attention_heads,
            # of a model that has experts alone, as many numbers as a token's experts have
            intermediate=config.intermediate_size
            if hasattr(config, "intermediate_size")
            else config.num_experts_per_tok * config.moe_intermediate_size,
            theta=(getattr(config, "rope_parameters", None) or {}).get("rope_theta", 10000.0),
            model=model,
        )

    @property
    def width(self) -> int:
        return self.embed.shape[1]

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Input embeddings [..., d] of tokens [...]."""
        return F.embedding(tokens, self.embed)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The head's logits [..., V] for normed states [..., d]."""
        if hidden.dtype == self.head.dtype and (fast := self.fast_head.of(self, hidden)) is not None:
            return fast.times(hidden.reshape(-1, self.width)).view(*hidden.shape[:-1], -1)
        return F.linear(hidden, self.head)

    @cached_property
    def fast_head(self) -> Fast:
        """The fast form of the head, used while drafting."""
        return Fast(lambda target: Matrix(target.head), lambda target: [target.head])

    def exit_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Early-exit logits [..., V]: the target's last norm and head on states [..., d] after any layer."""
        return self.logits(F.rms_norm(states, (self.width,), self.last_norm, self.eps))


@torch.no_grad()
def factor_of(norm: torch.nn.Module, eps: float) -> torch.Tensor:
    """The factor [d] of an RMS norm: its weight, or 1 + weight in families that store it that way."""
    weight = norm.weight.detach()
    factor = norm(torch.ones_like(weight)) * (1.0 + eps) ** 0.5
    return weight if torch.allclose(factor.float(), weight.float(), atol=1e-2, rtol=1e-2) else 1.0 + weight


@dataclass(frozen=True, eq=False)
class Taps:
    """The results of one forward of the target over tokens [B, T]."""

    tokens: torch.Tensor  # [B, T]
    hidden: torch.Tensor  # [B, T, d] after the last norm
    states: dict[int, torch.Tensor]  # l -> [B, T, d], the residual stream after l layers, without a norm
    logits: torch.Tensor  # [B, T, V]
    past: tuple[
        tuple[torch.Tensor, torch.Tensor], ...
    ] = ()  # keys and values [B, H, T, D], layer by layer; empty with linear attention or an indexer

    @cached_property
    def p(self) -> torch.Tensor:
        """The target's distributions [B, T, V]: row n is that of token n + 1."""
        return self.logits.float().softmax(-1)

    def rows(self, depth: int) -> int:
        """How many rows, from the first on, have guesses of this depth for a token within the text."""
        return max(0, self.tokens.shape[1] - 1 - depth)

    def levels(self, depth: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """For the entries of depths k = 1 to `depth`: the tokens [B, R] that they read, their positions [R],
        and which of the entries so far they see [R, N]. Entries of depth 1 are the known text and see each
        other causally; a deeper one sees those up to its row, and the drafted ones of its row.
        """
        masks: list[torch.Tensor] = []
        for k in range(1, depth + 1):
            rows = self.rows(k)
            own = torch.ones(rows, rows, dtype=torch.bool, device=self.tokens.device)
            masks = [mask[:rows] for mask in masks]
            masks.append(own.tril() if k == 1 else torch.eye(rows, dtype=torch.bool, device=own.device))
            positions = torch.arange(rows, device=own.device) + k - 1
            yield self.tokens[:, k : k + rows], positions, torch.cat(masks, 1)


@torch.no_grad()
def take_taps(model: torch.nn.Module, tokens: torch.Tensor, layers: tuple[int, ...] = ()) -> Taps:
    """Runs the target over texts [B, T]. layers: after how many layers states are wanted (0: embeddings; all
    layers: the input of the last norm).
    """
    last, listening = [], None
    config = model.config.get_text_config()
    if config.num_hidden_layers in layers:
        listening = model.base_model.norm.register_forward_pre_hook(lambda _, read: last.append(read[0]))
    # layers with linear attention have states instead of keys and values, and those with an indexer keys of a
    # third kind: no head reads these
    recurrent = "linear_attention" in (getattr(config, "layer_types", None) or ())
    cache = None if recurrent or hasattr(config, "index_topk") else DynamicCache()
    out = model(
        input_ids=tokens,
        output_hidden_states=True,
        use_cache=cache is not None,
        past_key_values=cache,
    )
    if listening is not None:
        listening.remove()
    streams = (*out.hidden_states[:-1], *last)
    states = {layer: streams[layer].float() for layer in layers}
    past = tuple((layer.keys, layer.values) for layer in cache.layers) if cache is not None else ()
    return Taps(tokens, out.hidden_states[-1].float(), states, out.logits, past)
