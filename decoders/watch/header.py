"""The header of a trace: strategy, parameters, models and prompt, read from what `generate` was given."""

from collections.abc import Sequence
from typing import Any

import torch

from decoders import registry
from decoders.logits.processor_order import WARPERS
from decoders.model_defaults import settings_of
from decoders.models.catalog import SHIPPED
from decoders.strategy import Strategy
from decoders.trace.trace import Trace

# A processor's class -> the option of GenerationConfig that switches it on.
OPTIONS = {
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "guidance_scale",
    "SequenceBiasLogitsProcessor": "sequence_bias",
    "EncoderRepetitionPenaltyLogitsProcessor": "encoder_repetition_penalty",
    "RepetitionPenaltyLogitsProcessor": "repetition_penalty",
    "NoRepeatNGramLogitsProcessor": "no_repeat_ngram_size",
    "EncoderNoRepeatNGramLogitsProcessor": "encoder_no_repeat_ngram_size",
    "NoBadWordsLogitsProcessor": "bad_words_ids",
    "MinLengthLogitsProcessor": "min_length",
    "MinNewTokensLengthLogitsProcessor": "min_new_tokens",
    "PrefixConstrainedLogitsProcessor": "prefix_allowed_tokens_fn",
    "ForcedBOSTokenLogitsProcessor": "forced_bos_token_id",
    "ForcedEOSTokenLogitsProcessor": "forced_eos_token_id",
    "InfNanRemoveLogitsProcessor": "remove_invalid_values",
    "ExponentialDecayLengthPenalty": "exponential_decay_length_penalty",
    "SuppressTokensLogitsProcessor": "suppress_tokens",
    "SuppressTokensAtBeginLogitsProcessor": "begin_suppress_tokens",
    "TemperatureLogitsWarper": "temperature",
    "TopHLogitsWarper": "top_h",
    "TopKLogitsWarper": "top_k",
    "TopPLogitsWarper": "top_p",
    "MinPLogitsWarper": "min_p",
    "TypicalLogitsWarper": "typical_p",
    "EpsilonLogitsWarper": "epsilon_cutoff",
    "EtaLogitsWarper": "eta_cutoff",
    "WatermarkLogitsProcessor": "watermarking_config",
    "SynthIDTextWatermarkLogitsProcessor": "watermarking_config",
    "LogitNormalization": "renormalize_logits",
}
DEFAULT_ASSISTANT_TOKENS, DEFAULT_NGRAM = 20, 2  # what transformers takes where nobody sets them
LARGEST_SEED = 2**53  # up to here every reader of JSON keeps a whole number exactly


def stages(processors: Sequence[Any]) -> list[str]:
    """What each processor is called: its option, or its class if it is one of the user's own. A repeated name
    gets a number.
    """
    names: list[str] = []
    for processor in processors:
        own = type(processor).__name__
        name = OPTIONS.get(own, own)
        again = sum(earlier.partition(" ")[0] == name for earlier in names)
        names.append(f"{name} {again + 1}" if again else name)
    return names


def trace_of(
    strategy: str,
    config: Any,
    processors: Sequence[Any],
    names: dict[str, str],
    models: dict[str, Any],
    prompt: list[int],
) -> Trace:
    """An empty trace of what transformers is about to do, under the name of our strategy that does the same.

    config: the complete GenerationConfig; names and models: by role. Options that our strategy lacks are in
    `model_defaults`, as are the classes of the user's own processors.
    """
    known = registry.get(strategy)
    parameters, others = own_parameters(known, options(strategy, config, models.get("draft")))
    if "model_defaults" in parameters and settings_of(models["target"].generation_config):
        parameters["model_defaults"] = False  # all that was in force is named here
    if own := [name for name in stages(processors) if name.partition(" ")[0] not in OPTIONS.values()]:
        others["logits_processor"] = ", ".join(own)
    relaxed = getattr(config, "assistant_ensemble_weight", None) is not None
    seed = torch.initial_seed() if config.do_sample else 0
    return Trace(
        strategy=strategy,
        title=f"{known.title} (generate)",
        parameters=parameters,
        seed=seed if seed < LARGEST_SEED else 0,
        models=dict(names),
        prompt=prompt,
        badge="relaxed" if relaxed else known.badge(parameters),
        model_defaults=others,
    )


def options(strategy: str, config: Any, assistant: Any) -> dict[str, Any]:
    """The options that shape the text, by their names in our strategies."""
    chosen = settings_of(config)
    if not config.do_sample:
        chosen = {name: value for name, value in chosen.items() if name not in WARPERS}
    if strategy in ("speculative", "prompt_lookup"):
        chosen["temperature"] = chosen.get("temperature", 1.0) if config.do_sample else 0.0
    if strategy == "speculative":
        own = getattr(assistant, "generation_config", config).num_assistant_tokens
        chosen["num_assistant_tokens"] = own or DEFAULT_ASSISTANT_TOKENS
    if strategy == "prompt_lookup":
        chosen["prompt_lookup_num_tokens"] = config.prompt_lookup_num_tokens
        chosen["max_matching_ngram_size"] = config.max_matching_ngram_size or DEFAULT_NGRAM
    if strategy == "beam":
        chosen |= {"num_beams": config.num_beams, "length_penalty": config.length_penalty}
        chosen |= {"early_stopping": str(config.early_stopping).lower(), "do_sample": bool(config.do_sample)}
    if strategy in ("beam", "sample"):
        chosen["num_return_sequences"] = config.num_return_sequences
    if getattr(config, "assistant_ensemble_weight", None) is not None:
        chosen["assistant_ensemble_weight"] = config.assistant_ensemble_weight
    return chosen


def own_parameters(strategy: Strategy, chosen: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our strategy's parameters with the chosen values, and the options that it has no parameter for. A list
    of token ids is no value of a parameter that takes text.
    """
    parameters = {p.name: p.default for p in strategy.parameters}
    kinds, others = {p.name: p.kind for p in strategy.parameters}, {}
    for name, value in chosen.items():
        fits = name in kinds and (kinds[name] != "text" or isinstance(value, str))
        (parameters if fits else others)[name] = value
    return parameters, others


def name_of(model: Any) -> str:
    """The name of a shipped model, else the id or folder that a model came from, else its class."""
    path = model.name_or_path
    shipped = path.startswith(f"{SHIPPED}/")
    return path.removeprefix(f"{SHIPPED}/") if shipped else path or type(model).__name__


def unpadded(inputs: torch.Tensor, mask: torch.Tensor | None) -> list[list[int]]:
    """The prompts in inputs [B, T] without the padding in front. mask [N, T], if there is one, has a row for
    each decoded text, the same number for each prompt.
    """
    rows = inputs.tolist()
    if mask is None or mask.dim() != 2:
        return rows
    own = mask[:: len(mask) // len(rows), -len(rows[0]) :]
    firsts = (own != 0).int().argmax(dim=1).tolist()
    return [row[first:] for row, first in zip(rows, firsts, strict=True)]
