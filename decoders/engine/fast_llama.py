"""The forward of small Llama models in plain tensor operations: the same numbers with fewer module calls.

In a model of a few million parameters, module calls take more time than arithmetic. Used for Llama
architectures of up to LARGEST parameters; every other model runs its own forward. When a model is loaded, a
test checks that the numbers are the model's own (`fitting_engine.engine_of`).
"""

import torch
from torch.nn import functional as F

from decoders.engine.fast_product import Matrix
from decoders.engine.injected_states import InjectedStates
from decoders.engine.kv_cache import SlotCache
from decoders.engine.layers import Layers

LARGEST = 100_000_000  # parameters; above, arithmetic outweighs calls, and the joined weights cost memory


class FastLlama:
    """The forward of one model, with q, k and v joined into one matrix (a copy), and likewise gate and up."""

    def __init__(self, model: torch.nn.Module):
        config = model.config
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.scaling = model.model.layers[0].self_attn.scaling
        self.eps = config.rms_norm_eps
        self.floor = torch.tensor((self.eps * config.hidden_size) ** 0.5, device=model.device)
        self.embed, self.head = model.model.embed_tokens.weight, Matrix(model.lm_head.weight)
        self.last_norm = model.model.norm.weight * config.hidden_size**0.5
        self.layers = [
            (
                Matrix(
                    *(p.weight for p in (attend.q_proj, attend.k_proj, attend.v_proj)),
                    norm=layer.input_layernorm.weight,
                ),
                Matrix(attend.o_proj.weight),
                Matrix(
                    *(p.weight for p in (layer.mlp.gate_proj, layer.mlp.up_proj)),
                    norm=layer.post_attention_layernorm.weight,
                ),
                Matrix(layer.mlp.down_proj.weight),
            )
            for layer in model.model.layers
            for attend in (layer.self_attn,)
        ]
        self.rotary = model.model.rotary_emb
        self.reach(config.max_position_embeddings)

    def reach(self, context: int) -> None:
        """Makes the rotary tables for this many positions."""
        cos, sin = self.rotary(self.embed[:1, None], torch.arange(context, device=self.embed.device)[None])
        half = cos.shape[-1] // 2
        self.cos = cos[0][:, None]  # [context, 1, D]
        self.sin = torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)[:, None]  # signed, to be rolled

    def forward(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        cache: SlotCache,
        part: Layers | None = None,
        states: torch.Tensor | None = None,
        taps: list[torch.Tensor] | None = None,
        injected: InjectedStates | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]:
        """For tokens [N]: last-layer states [N, d] after the final norm, queries [L, H, N, D], and the
        residual stream [N, d] before that norm.

        positions [N]: depths in the tree. mask: additive [1, 1, N, K], or None if every row sees all K
        columns. part: the blocks that run, all if None. states [N, d]: enter them in place of the embeddings.
        taps: the streams that enter the layers are appended to it. injected: states injected in front of
        later layers.
        """
        heads, kv_heads = self.heads, self.kv_heads
        x = self.embed[tokens] if states is None else states  # [N, d]
        n, width = x.shape[0], self.cos.shape[-1]
        cos, sin = self.cos[positions], self.sin[positions]
        queries, entered, early = [], x, frozenset() if part is None else part.early
        for index, (qkv, out, gate_up, down) in enumerate(self.layers):
            if injected is not None:
                x = injected.enter(index, x)
            if taps is not None:
                taps.append(x)
            if part is None or index in part.attention:
                entered = entered if index in early else x
                mixed = qkv.times(self.scaled(entered)).view(n, -1, width)
                turned = mixed[:, : heads + kv_heads]  # q and k, to their rotary positions, in place
                rolled = turned.roll(width // 2, -1)
                turned.mul_(cos).addcmul_(rolled, sin)
                q = mixed[:, :heads].transpose(0, 1)[None]  # [1, H, N, D]
                queries.append(q)
                both = mixed[:, heads:].view(n, 2, kv_heads, width)
                keys, values = cache.put(both.permute(1, 2, 0, 3), index)
                if cache.parts:
                    store = cache.storage[index]
                    read = torch.cat(
                        [one.attend(mixed[:, :heads], store, self.scaling) for one in cache.parts]
                    )
                else:
                    if cache.attend is not None:
                        seen = cache.attend(index, q, keys, values, mask)
                    else:
                        seen = F.scaled_dot_product_attention(
                            q, keys, values, attn_mask=mask, scale=self.scaling, enable_gqa=heads != kv_heads
                        )
                    read = seen[0].transpose(0, 1).reshape(n, -1)
                x = x + out.times(read)
            if part is None or index in part.mlp:
                gate, up = gate_up.times(self.scaled(x)).chunk(2, dim=-1)
                x = x + down.times(F.silu(gate) * up)
        x = x if injected is None else injected.enter(len(self.layers), x)
        return self.scaled(x) * self.last_norm, torch.cat(queries) if queries else None, x

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        """RMS norm of x [N, d] without the factor sqrt(d) and the weight, which the next matrix includes.

        x / sqrt(|x|^2 + d eps) in three operations; on CPU F.rms_norm takes six.
        """
        return x / torch.hypot(torch.linalg.vector_norm(x, dim=-1, keepdim=True), self.floor)

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits [N, V] of last-layer states [N, d]."""
        return self.head.times(states)


def fast_llama_of(model: torch.nn.Module) -> FastLlama | None:
    """The fast forward of a model, or None if the model needs its own."""
    plain = type(model).__name__ == "LlamaForCausalLM" and all(
        type(p.data) is torch.Tensor and p.device == model.device for p in model.parameters()
    )
    count = sum(p.numel() for p in model.parameters())
    return FastLlama(model) if plain and fits(model.config, count) else None


def fits(config, parameters: int) -> bool:
    """Whether a Llama with this config and this many parameters gets the fast forward."""
    plain = config.model_type == "llama" and config.hidden_act == "silu"
    plain = plain and getattr(config, "quantization_config", None) is None
    return plain and not config.attention_bias and not config.mlp_bias and parameters <= LARGEST
