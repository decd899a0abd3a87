"""Draft heads with random weights in published formats, written tensor by tensor under the authors' names,
and the computations of their authors' code, reimplemented from its equations with plain tensors.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

Tensors = dict[str, torch.Tensor]


def drawn(shapes: dict[str, tuple[int, ...]], seed: int = 0) -> Tensors:
    """Random tensors; those of norms around 1."""
    draw = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=draw) * 0.2 + (1.0 if "norm" in name else 0.0)
        for name, shape in shapes.items()
    }


def llama_layer(
    prefix: str, d: int, heads: int, kv: int, size: int, inner: int, reads: int, bias: bool = False
) -> dict[str, tuple[int, ...]]:
    """Names and shapes of a decoder layer's attention and feed-forward part."""
    shapes = {
        f"{prefix}self_attn.q_proj.weight": (heads * size, reads),
        f"{prefix}self_attn.k_proj.weight": (kv * size, reads),
        f"{prefix}self_attn.v_proj.weight": (kv * size, reads),
        f"{prefix}self_attn.o_proj.weight": (d, heads * size),
        f"{prefix}mlp.gate_proj.weight": (inner, d),
        f"{prefix}mlp.up_proj.weight": (inner, d),
        f"{prefix}mlp.down_proj.weight": (d, inner),
        f"{prefix}post_attention_layernorm.weight": (d,),
    }
    if bias:
        shapes |= {
            f"{prefix}self_attn.{k}_proj.bias": (heads * size if k == "q" else kv * size,) for k in "qkv"
        }
    return shapes


def write(folder: Path, config: dict, tensors: Tensors, file: str = "model.safetensors") -> str:
    """Writes config and tensors; returns the folder's name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file({name: value.contiguous() for name, value in tensors.items()}, folder / file)
    return str(folder)


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / sqrt(mean x^2 + eps) times a weight."""
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight


def llama3_turns(size: int, theta: float, scaling: dict | None) -> torch.Tensor:
    """Angles per position, with the frequencies of Llama 3.1, stretched as in its authors' code."""
    turns = theta ** -(torch.arange(0, size, 2).float() / size)
    if not scaling:
        return turns
    long, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    result = []
    for turn in turns.tolist():
        wave = 2 * torch.pi / turn
        if wave < long / high:
            result.append(turn)
        elif wave > long / low:
            result.append(turn / factor)
        else:
            smooth = (long / wave - low) / (high - low)
            result.append((1 - smooth) * turn / factor + smooth * turn)
    return torch.tensor(result)


def rotated(y: torch.Tensor, positions: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Queries or keys [T, H, D] at rotary positions [T]."""
    angles = positions[:, None] * turns
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    first, second = y.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def attend(
    t: Tensors, prefix: str, x: torch.Tensor, heads: int, kv: int, turns: torch.Tensor, window: int = 10**6
):
    """Causal grouped attention of a layer on x [T, r], one head after the other, with rotary positions, to
    the `window` last positions.
    """

    def part(kind: str, count: int) -> torch.Tensor:
        y = x @ t[f"{prefix}self_attn.{kind}_proj.weight"].T
        if (bias := t.get(f"{prefix}self_attn.{kind}_proj.bias")) is not None:
            y = y + bias
        return y.view(len(x), count, -1)

    q, k, v = part("q", heads), part("k", kv), part("v", kv)
    q, k = (rotated(one, torch.arange(len(x)), turns) for one in (q, k))
    causal = torch.ones(len(x), len(x)).tril().triu(1 - window).bool()
    out = []
    for head in range(heads):
        own = head * kv // heads
        scores = q[:, head] @ k[:, own].T / q.shape[-1] ** 0.5
        out.append(scores.masked_fill(~causal, -torch.inf).softmax(-1) @ v[:, own])
    return torch.cat(out, -1) @ t[f"{prefix}self_attn.o_proj.weight"].T


def feed(t: Tensors, prefix: str, x: torch.Tensor) -> torch.Tensor:
    """The gated feed-forward part."""
    gate, up, down = (t[f"{prefix}mlp.{kind}_proj.weight"] for kind in ("gate", "up", "down"))
    return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T


def eagle_forward(
    t: Tensors, prefix: str, embed: torch.Tensor, hidden: torch.Tensor, tokens: torch.Tensor, **form
) -> torch.Tensor:
    """The output of EAGLE 1 and 2 [T, d] (cnets1.py): fc on [embedding; state], no input norm."""
    x = torch.cat([embed[tokens], hidden], -1) @ t[f"{prefix}fc.weight"].T
    if f"{prefix}fc.bias" in t:
        x = x + t[f"{prefix}fc.bias"]
    layer, eps = f"{prefix}layers.0.", form.pop("eps")
    x = x + attend(t, layer, x, **form)
    return x + feed(t, layer, rms(x, t[f"{layer}post_attention_layernorm.weight"], eps))


def eagle3_forward(
    t: Tensors,
    layer: str,
    embed: torch.Tensor,
    states: torch.Tensor,
    tokens: torch.Tensor,
    eps: float,
    **form,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output of EAGLE-3 [T, d], and logits over its vocabulary (cnets.py, and the options of
    speculators): states [T, 3d'].
    """
    before, output = form.pop("norm_before_residual", False), form.pop("norm_output", False)
    if "input_norm.weight" in t:
        states = rms(states, t["input_norm.weight"], eps)
    if "fc_norm.0.weight" in t:
        parts = enumerate(states.chunk(3, -1))
        states = torch.cat([rms(part, t[f"fc_norm.{at}.weight"], eps) for at, part in parts], -1)
    g = states @ t["fc.weight"].T
    normed = rms(g, t[f"{layer}hidden_norm.weight"], eps)
    x = torch.cat([rms(embed[tokens], t[f"{layer}input_layernorm.weight"], eps), normed], -1)
    g = (normed if before else g) + attend(t, layer, x, **form)
    g = g + feed(t, layer, rms(g, t[f"{layer}post_attention_layernorm.weight"], eps))
    last = rms(g, t["norm.weight"], eps)
    return (last if output else g), last @ t["lm_head.weight"].T


def peagle_forward(
    t: Tensors,
    layer: str,
    embed: torch.Tensor,
    states: torch.Tensor,
    tokens: torch.Tensor,
    mask: int,
    depth: int,
    eps: float,
    **form,
) -> torch.Tensor:
    """Logits [depth, W] of P-EAGLE after states [T, 3d'] and the token after each [T] (peagle/core.py of
    speculators): EAGLE-3's layer and ordinary ones on the text and depth - 1 masks.
    """
    unknown = t["mask_hidden"].reshape(1, -1).expand(depth - 1, -1)
    states, tokens = torch.cat([states, unknown]), torch.cat([tokens, torch.full((depth - 1,), mask)])
    x, _ = eagle3_forward(t, layer, embed, states, tokens, eps, **form)
    form.pop("norm_before_residual", None)
    for at in range(1, 1 + sum(name.endswith("mlp.up_proj.weight") for name in t) - 1):
        own = f"layers.{at}."
        x = x + attend(t, own, rms(x, t[f"{own}input_layernorm.weight"], eps), **form)
        x = x + feed(t, own, rms(x, t[f"{own}post_attention_layernorm.weight"], eps))
    return rms(x, t["norm.weight"], eps)[-depth:] @ t["lm_head.weight"].T


def dflash_forward(
    t: Tensors,
    embed: torch.Tensor,
    states: torch.Tensor,
    root: int,
    mask: int,
    block: int,
    heads: int,
    kv: int,
    turns: torch.Tensor,
    eps: float,
    windows: tuple[int | None, ...] = (),
    causal: bool = True,
) -> torch.Tensor:
    """The normed outputs [b, d] of a block after states [P, n d] (dflash/model.py of its authors). windows:
    how many states before the block each layer sees, None for all; causal: the block too, in such layers.
    """
    context = rms(states @ t["fc.weight"].T, t["hidden_norm.weight"], eps)
    x, before = embed[torch.tensor([root] + [mask] * (block - 1))], len(states)
    at = torch.arange(before + block)
    for number in range(sum(name.endswith("mlp.up_proj.weight") for name in t)):
        own = f"layers.{number}."
        window = windows[number] if windows else None
        y = rms(x, t[f"{own}input_layernorm.weight"], eps)
        read, attention = torch.cat([context, y]), f"{own}self_attn."
        q = (y @ t[f"{attention}q_proj.weight"].T).view(block, heads, -1)
        k, v = ((read @ t[f"{attention}{name}_proj.weight"].T).view(len(read), kv, -1) for name in "kv")
        q = rotated(rms(q, t[f"{attention}q_norm.weight"], eps), at[before:], turns)
        k = rotated(rms(k, t[f"{attention}k_norm.weight"], eps), at, turns)
        sees = torch.ones(block, before + block, dtype=torch.bool)
        if window is not None:
            sees[:, : max(0, before - window)] = False
            if causal:
                sees &= at <= at[before:, None]
        out = []
        for head in range(heads):
            scores = q[:, head] @ k[:, head * kv // heads].T / q.shape[-1] ** 0.5
            out.append(scores.masked_fill(~sees, -torch.inf).softmax(-1) @ v[:, head * kv // heads])
        x = x + torch.cat(out, -1) @ t[f"{attention}o_proj.weight"].T
        x = x + feed(t, own, rms(x, t[f"{own}post_attention_layernorm.weight"], eps))
    return rms(x, t["norm.weight"], eps)


def medusa_forward(t: Tensors, head: int, blocks: int, hidden: torch.Tensor) -> torch.Tensor:
    """Logits of one head of the authors' (medusa_model.py)."""
    x = hidden
    for at in range(blocks):
        x = x + F.silu(x @ t[f"{head}.{at}.linear.weight"].T + t[f"{head}.{at}.linear.bias"])
    return x @ t[f"{head}.{blocks}.weight"].T


def hydra_forward(
    t: Tensors, blocks: list[int], embed: torch.Tensor, states: torch.Tensor, tokens: torch.Tensor, head: int
) -> torch.Tensor:
    """Logits [T, V] of one head of Hydra (mlp_head.py): states [T, d] or what the prefix layer made of them,
    tokens [T + head + 1] the one after the first state first. blocks: their numbers in the file.
    """
    count = len(states)
    read = [states, *(embed[tokens[at : at + count]] for at in range(head + 1))]
    x = torch.cat(read, -1)
    for at, block in enumerate(blocks):
        own = f"hydra_mlp.{head}.{block}."
        y = F.silu(x @ t[f"{own}linear.weight"].T + t[f"{own}linear.bias"])
        x = (x @ t[f"{own}res_connection.weight"].T + t[f"{own}res_connection.bias"] if at == 0 else x) + y
    matrix = f"hydra_lm_head.{head}." + ("1." if f"hydra_lm_head.{head}.1.weight" in t else "")
    return x @ t[f"{matrix}weight"].T + t[f"{matrix}bias"]


def hydra_prefix(t: Tensors, states: torch.Tensor, eps: float, **form) -> torch.Tensor:
    """The output of Hydra++'s prefix layer for states [T, d] (prefix_mlp_head.py): a Llama of one layer."""
    own = "prefix_embeding_layer."
    layer = f"{own}layers.0."
    x = states + attend(t, layer, rms(states, t[f"{layer}input_layernorm.weight"], eps), **form)
    x = x + feed(t, layer, rms(x, t[f"{layer}post_attention_layernorm.weight"], eps))
    return rms(x, t[f"{own}norm.weight"], eps)


def speculator_forward(
    t: Tensors, count: int, states: torch.Tensor, tokens: torch.Tensor, scale_input: bool
) -> list[torch.Tensor]:
    """Logits [T, V] of each stage of IBM's speculator (speculator.py): tokens [T + count] as in Hydra's."""
    inner, x, said = t["speculator.proj.0.weight"].shape[0], states, []
    kept = 0.5 ** (0.5 / count)
    added = (1 - kept**2) ** 0.5 * (inner / 2) ** 0.5

    def normed(y: torch.Tensor) -> torch.Tensor:
        return y / (y.square().mean(-1, keepdim=True) + 1e-6).sqrt()

    if scale_input:
        x = normed(x) / 2**0.5
    for at in range(count):
        z = t[f"speculator.emb.{at}.weight"][tokens[at : at + len(states)]]
        y = kept * (x @ t[f"speculator.proj.{at}.weight"].T) + added * z
        y = normed(y) * t[f"speculator.ln.{at}.weight"] + t[f"speculator.ln.{at}.bias"]
        x = F.gelu(y)
        said.append(x @ t[f"speculator.head.{at}.weight"].T)
    return said
