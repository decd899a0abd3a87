"""The processors that a model's own `generation_config.json` switches on, and which of them a lane uses.

`generate` starts from them, so a strategy that promises to equal `generate` does too.
"""

from typing import TYPE_CHECKING, Any

from decoders.logits.processor_order import NEUTRAL, WARPERS, title

if TYPE_CHECKING:
    from decoders.strategy import Strategy

# What `generate` takes from the model and no strategy does; see docs/generation_config.md.
NOT_TAKEN = {
    "num_beams": 1,
    "num_beam_groups": 1,
    "penalty_alpha": 0.0,
    "dola_layers": None,
    "stop_strings": None,
    "token_healing": False,
    "force_words_ids": None,
    "guidance_scale": 1.0,
    "encoder_repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "watermarking_config": None,
}


def settings_of(config: Any) -> dict[str, Any]:
    """What a `GenerationConfig` asks of `generate` beyond its defaults: name -> value, in plain data."""
    settings = {}
    for name, neutral in {**NEUTRAL, **NOT_TAKEN}.items():
        value = jsonable(getattr(config, name, None))
        if value is not None and value != neutral and value != []:
            settings[name] = value
    return settings


def jsonable(value: Any) -> Any:
    """A value of a `GenerationConfig` in a form that JSON can hold."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, dict):  # a sequence bias in the form of older files
        return [[list(tokens), bias] for tokens, bias in value.items()]
    return list(value) if isinstance(value, tuple) else value


def used(parameters: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The model's settings that a lane with these parameters uses: those of processors that its parameters
    leave at neutral; temperature and truncations only if it samples. None with `model_defaults` off.
    """
    if not parameters.get("model_defaults"):
        return {}
    return {
        name: value for name, value in settings_in_use(parameters, settings).items() if name not in NOT_TAKEN
    }


def settings_in_use(parameters: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that `generate` would use where these parameters are neutral."""
    return {
        name: value
        for name, value in settings.items()
        if (name not in WARPERS or draws(parameters)) and not asked(name, parameters)
    }


def asked(name: str, parameters: dict[str, Any]) -> bool:
    """Whether the parameters set this themselves."""
    if name in NOT_TAKEN:
        return bool(parameters.get(name))
    return parameters.get(name, NEUTRAL[name]) != NEUTRAL[name]


def draws(parameters: dict[str, Any]) -> bool:
    """Whether a lane samples its tokens, so that temperature and truncations apply."""
    return bool(parameters.get("temperature", 0.0)) and parameters.get("do_sample", True)


def shaping(parameters: dict[str, Any], taken: dict[str, Any]) -> dict[str, Any]:
    """A lane's processors: its parameters, overridden by the model's settings `taken`. If it does not sample,
    `top_k` and the like are left out: there they are not processors, whatever else they mean to its strategy.
    """
    merged = {**parameters, **taken}
    return merged if draws(parameters) else {k: v for k, v in merged.items() if k not in WARPERS}


def sentences(parameters: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """What a lane says about the model's settings; empty if none matters to it."""
    matter, taken = settings_in_use(parameters, settings), used(parameters, settings)
    left = {name: value for name, value in matter.items() if name not in taken}
    lines = []
    if taken:
        lines.append(
            f"The model's own generation settings apply, as in generate: {listed(taken)}. "
            "Switch model_defaults off for the raw model."
        )
    if left and parameters.get("model_defaults"):
        lines.append(f"generate would also use the model's {listed(left)}, which this lane does not.")
    elif left:
        lines.append(
            f"The model's own generation settings are not used: {listed(left)}. "
            "This lane reads the raw model, and generate would write another text unless they are reset."
        )
    return lines


def badge(strategy: "Strategy", parameters: dict[str, Any], settings: dict[str, Any]) -> str:
    """The badge of a strategy on this model: not "equal to generate" if `generate` would use settings that
    the lane does not, and "relaxed" if a memory compresses what the target reads.
    """
    if parameters.get("memory_of") == "target":
        return "relaxed"
    promised = strategy.badge(parameters)
    left = settings_in_use(parameters, settings).keys() - used(parameters, settings).keys()
    return "deterministic" if promised == "equal to generate" and left else promised


def listed(settings: dict[str, Any]) -> str:
    """Such as `repetition_penalty 1.1, top_k 20`."""
    return ", ".join(title(name, settings) for name in settings)
