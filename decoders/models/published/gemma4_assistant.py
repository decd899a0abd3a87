"""The assistants of Gemma 4, folders beside those of the models: `model.layers.N` without keys and values,
`pre_projection`, `post_projection`, perhaps `masked_embedding`; the model type says that it is one.

transformers 5.23 has the class, but cannot build it: it asks for layers with keys and values of their own. So
the network is ours, and its sizes are those of the tensors.
"""

from typing import Any

from decoders.heads.cross_attention.gemma4_assistant import AssistantForm, Gemma4Assistant
from decoders.heads.parts.taps import Target
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

TYPES = ("gemma4_assistant", "gemma4_unified_assistant")
ACTIVATION = "gelu_pytorch_tanh"
PARTS = {  # name in the file -> name in the module
    "pre_projection": "enter",
    "post_projection": "leave",
    "model.norm": "norm",
    "lm_head": "head",
    "masked_embedding.centroids": "centroids",
}
LAYER = {
    "self_attn.q_proj": "q",
    "self_attn.q_norm": "q_norm",
    "self_attn.o_proj": "out",
    "mlp.gate_proj": "gate",
    "mlp.up_proj": "up",
    "mlp.down_proj": "down",
    "input_layernorm": "before_mixing",
    "post_attention_layernorm": "after_mixing",
    "pre_feedforward_layernorm": "before_feed",
    "post_feedforward_layernorm": "after_feed",
}


def read_gemma4_assistant(name: str, config: dict, tensors: Tensors, target: Target) -> Gemma4Assistant:
    """Reads the assistant. Raises Refusal with one sentence if it does not fit the target."""
    text, theirs = config["text_config"], target.model.config.get_text_config()
    if not theirs.model_type.startswith("gemma4"):
        raise Refusal(
            f"The heads {name!r} are an assistant of Gemma 4, which reads that model's keys and values; the "
            f"target is a {theirs.model_type}."
        )
    same(name, "width of the target", config["backbone_hidden_size"], target.width, "the target")
    same(name, "vocabulary", text["vocab_size"], len(target.head), "the target")
    if text.get("hidden_activation", ACTIVATION) != ACTIVATION:
        raise Refusal(
            f"The heads {name!r} have the activation {text['hidden_activation']!r}: only {ACTIVATION}."
        )
    kinds = text["layer_types"]
    sources = {kind: source_of(name, kind, text, target) for kind in set(kinds)}
    sizes = [int(tensors[f"model.layers.{at}.self_attn.q_norm.weight"].numel()) for at in range(len(kinds))]
    for kind, size in zip(kinds, sizes, strict=True):
        attention = target.model.base_model.layers[sources[kind]].self_attn
        same(name, f"head size in {kind} layers", size, attention.head_dim, "the target")
    ordered = config.get("use_ordered_embeddings", False)
    form = AssistantForm(
        width=text["hidden_size"],
        inner=text["intermediate_size"],
        heads=text["num_attention_heads"],
        eps=text.get("rms_norm_eps", 1e-6),
        window=text["sliding_window"],
        layers=tuple(zip(kinds, sizes, strict=True)),
        centroids=config["num_centroids"] if ordered else 0,
        groups=config["centroid_intermediate_top_k"] if ordered else 0,
    )
    module = Gemma4Assistant(target, form, sources)
    embedding = tensors.pop("model.embed_tokens.weight", None)
    if "lm_head.weight" not in tensors and embedding is not None and config.get("tie_word_embeddings", True):
        tensors["lm_head.weight"] = embedding
    fill(name, module, tensors, places(len(kinds), ordered))
    return module


def places(layers: int, ordered: bool) -> dict[str, str]:
    """Name in the file -> name in the module, for all tensors."""
    found = {f"{theirs}.weight": f"{ours}.weight" for theirs, ours in PARTS.items()}
    if ordered:
        found["masked_embedding.token_ordering"] = "order"
    else:
        del found["masked_embedding.centroids.weight"]
    for at in range(layers):
        inside = f"model.layers.{at}."
        found |= {f"{inside}{theirs}.weight": f"layers.{at}.{ours}.weight" for theirs, ours in LAYER.items()}
        found[f"{inside}layer_scalar"] = f"layers.{at}.scale"
    return found


def source_of(name: str, kind: str, text: dict[str, Any], target: Target) -> int:
    """The target's last layer of a type that has keys and values of its own. Raises Refusal with one sentence
    if there is none, or if it turns its keys in another way than the assistant its queries.
    """
    theirs = target.model.config.get_text_config()
    own = target.layers - theirs.num_kv_shared_layers
    found = [at for at, its in enumerate(theirs.layer_types[:own]) if its == kind]
    if not found:
        raise Refusal(f"The heads {name!r} read layers of the type {kind!r}, and the target has none.")
    turns = (text.get("rope_parameters") or theirs.rope_parameters).get(kind)
    if turns != theirs.rope_parameters[kind]:
        raise Refusal(
            f"The heads {name!r} are for another target: their rotary positions in {kind} layers are "
            f"{turns}, those of the target are {theirs.rope_parameters[kind]}."
        )
    return found[-1]
