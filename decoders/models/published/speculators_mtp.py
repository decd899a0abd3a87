"""A multi-token-prediction layer in the format of the library speculators: a layer like Qwen3-Next's, taken
out of the target's checkpoint or trained by that library, under other names (`mtp_layers.0`).
"""

from decoders.heads import Target
from decoders.heads.feature_drafters.multi_token import MultiToken, MultiTokenForm
from decoders.models.published.eagle import flat
from decoders.models.published.multi_token import fresh_layer, merged_experts
from decoders.models.published.tensors import Tensors, fill, same
from decoders.refusal import Refusal

LAYER = "mtp_layers.0."
REST = {
    "token_layernorm": "token_norm",
    "hidden_layernorm": "state_norm",
    "input_proj": "join",
    "final_layernorm": "last_norm",
}
SHARED = {"embed_tokens.weight", "lm_head.weight", "verifier_lm_head.weight"}  # the target's


def read_speculators_mtp(name: str, config: dict, tensors: Tensors, target: Target) -> MultiToken:
    """Reads the layer, which is built with the class of the target's own layers. Raises Refusal with one
    sentence if it does not fit the target.
    """
    layer, text = flat(config), target.model.config.get_text_config()
    same(name, "hidden size", layer["hidden_size"], target.width, "the target")
    same(name, "vocabulary", layer.get("vocab_size", len(target.head)), len(target.head), "the target")
    if layer.get("model_type", text.model_type) != text.model_type:
        raise Refusal(
            f"The heads {name!r} hold a layer of {layer['model_type']!r}, and the target is of "
            f"{text.model_type!r}."
        )
    base = target.model.base_model
    norm = type(base.norm)
    module = MultiToken(
        target,
        fresh_layer(base, text, target.layers),
        lambda: norm(target.width, eps=target.eps),
        base.rotary_emb,
        MultiTokenForm(norm_output=True),
    ).to(target.embed.dtype)
    own = merged_experts({key: value for key, value in tensors.items() if key not in SHARED})
    places = {}
    for key in own:
        stem, _, kind = key.removeprefix(LAYER).rpartition(".")
        places[key] = f"{REST[stem]}.{kind}" if stem in REST else f"block.{key.removeprefix(LAYER)}"
    unknown = sorted(place for place in places.values() if place not in module.state_dict())
    if unknown:
        raise Refusal(f"The heads {name!r} hold {unknown[0]!r}, which a layer of the target lacks.")
    fill(name, module, own, places)
    return module
