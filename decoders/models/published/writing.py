"""Writes an EAGLE-1 or EAGLE-3 drafter of ours as a folder that vLLM serves: the inverse of eagle.py.

EAGLE-3 is written in the format of the library speculators. vLLM's reader of that format has no EAGLE-1, so
that one is written as its authors do.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from decoders.heads import DraftModule, Eagle, Eagle3
from decoders.models.published.eagle import LAYER, NAMED, TOP, TOP_3
from decoders.models.published.tensors import Tensors
from decoders.refusal import Refusal

SPECULATORS = "0.9.0"  # the version whose format this is


def write_heads(folder: Path, module: DraftModule, target: str, num_speculative_tokens: int = 4) -> None:
    """Writes a drafter into a folder. target: the model's name or folder, as vLLM is to find it.

    Raises Refusal with one sentence for other heads than EAGLE and EAGLE-3.
    """
    if not isinstance(module, Eagle | Eagle3):
        raise Refusal(f"Heads of the kind {module.kind!r} cannot be written for vLLM; EAGLE and EAGLE-3 can.")
    folder.mkdir(parents=True, exist_ok=True)
    own, names = dict(module.state_dict()), {f"layers.0.{theirs}": ours for theirs, ours in LAYER.items()}
    embed = own.get("own_embedding.weight", module.target.embed)
    if isinstance(module, Eagle3):
        tensors = renamed(own, names | TOP_3) | mapped(module)
        config = speculators(module, target, num_speculative_tokens)
    else:
        tensors, config = renamed(own, names | TOP), layer_config(module)
        if "join.bias" in own:
            embed = with_bias(embed, own["join.weight"], own["join.bias"])
    tensors["embed_tokens.weight"] = embed
    kept = {
        name: value.detach().cpu().float() if value.is_floating_point() else value.cpu()
        for name, value in tensors.items()
    }
    save_file({name: value.contiguous() for name, value in kept.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")


def renamed(own: Tensors, names: dict[str, str]) -> Tensors:
    """The weights under the authors' names."""
    return {
        f"{theirs}.weight": own[f"{ours}.weight"] for theirs, ours in names.items() if f"{ours}.weight" in own
    }


def with_bias(embed: torch.Tensor, join: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Embeddings [V, d] with which a join [d, 2d] without a bias, such as vLLM's, gives the same outputs as
    with its bias: each is shifted by the vector that the join's half for embeddings maps to the bias.
    """
    half = join[:, : embed.shape[1]].double()
    shift = torch.linalg.solve(half, bias.double())
    return (embed.double() + shift).to(embed.dtype)


def mapped(module: Eagle3) -> Tensors:
    """How the draft's vocabulary lies in the target's."""
    mask = torch.zeros(len(module.target.head), dtype=torch.bool)
    mask[module.kept.cpu()] = True
    return {"d2t": module.d2t, "t2d": mask}


def layer_config(module: Any) -> dict[str, Any]:
    """The drafter's layer as a Llama of one layer."""
    target, attention = module.target, module.attention
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": target.width,
        "intermediate_size": module.feed.gate.out_features,
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.kv_heads,
        "head_dim": attention.size,
        "num_hidden_layers": 1,
        "rms_norm_eps": target.eps,
        "rope_parameters": {"rope_theta": attention.theta, "rope_type": "default"},
        "max_position_embeddings": target.model.config.get_text_config().max_position_embeddings,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "vocab_size": len(target.head),
        "dtype": "float32",
    }


def speculators(module: Eagle3, target: str, num_speculative_tokens: int) -> dict[str, Any]:
    """The config of speculators' EAGLE-3."""
    return {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "speculators_version": SPECULATORS,
        "draft_vocab_size": len(module.d2t),
        "norm_before_residual": module.published.norm_before_residual,
        "norm_output": module.published.norm_output,
        NAMED: list(module.reads),
        "tie_word_embeddings": False,
        "transformer_layer_config": layer_config(module),
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [
                {
                    "proposal_type": "greedy",
                    "speculative_tokens": num_speculative_tokens,
                    "verifier_accept_k": 1,
                    "accept_tolerance": 0.0,
                }
            ],
            "verifier": {"name_or_path": target, "architectures": [type(module.target.model).__name__]},
        },
    }
