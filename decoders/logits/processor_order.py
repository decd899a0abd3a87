"""The processors that parameters switch on, in the order in which they run."""

# GenerationConfig name -> the value that changes nothing; order as in transformers' `_get_logits_processor`.
NEUTRAL = {
    "sequence_bias": "",
    "repetition_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "no_repeat_ngram_size": 0,
    "dry_multiplier": 0.0,
    "bad_words_ids": "",
    "min_length": 0,
    "min_new_tokens": 0,
    "prefix_allowed_tokens_fn": None,
    "forced_bos_token_id": "",
    "forced_eos_token_id": "",
    "remove_invalid_values": False,
    "exponential_decay_length_penalty": [0.0, 1.0],
    "suppress_tokens": "",
    "begin_suppress_tokens": "",
    "logits_processor": (),
    "thinking_budget": 0,
    "temperature": 1.0,
    "top_n_sigma": 0.0,
    "top_h": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "xtc_probability": 0.0,
    "watermark_bias": 0.0,
    "renormalize_logits": False,
}
# Those that transformers lacks, placed where the engines that have them run them.
OTHER_ENGINES = (
    "frequency_penalty",
    "presence_penalty",
    "dry_multiplier",
    "thinking_budget",
    "top_n_sigma",
    "xtc_probability",
)
# Those that look at the tokens so far.
WITH_HISTORY = (
    "sequence_bias",
    "repetition_penalty",
    "frequency_penalty",
    "presence_penalty",
    "no_repeat_ngram_size",
    "dry_multiplier",
    "bad_words_ids",
    "min_length",
    "min_new_tokens",
    "prefix_allowed_tokens_fn",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "exponential_decay_length_penalty",
    "begin_suppress_tokens",
    "logits_processor",
    "thinking_budget",
    "xtc_probability",
    "watermark_bias",
)
OF_ENTROPY = ("top_h", "eta_cutoff")  # those that need the entropy of a row
# Those that only sampling needs: transformers leaves them out in greedy decoding.
WARPERS = (
    "temperature",
    "top_n_sigma",
    "top_h",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "xtc_probability",
)
# Those that people use against loops, with usual values.
AGAINST_LOOPS = {
    "temperature": 1.3,
    "repetition_penalty": 1.2,
    "presence_penalty": 1.0,
    "frequency_penalty": 0.5,
    "dry_multiplier": 0.8,
    "xtc_probability": 0.5,
    "no_repeat_ngram_size": 4,
}
LONGEST = 24  # characters of a typed value in a title


def stages(parameters: dict) -> list[str]:
    """Names of the processors that would change something.

    Temperature 0 means greedy decoding: no division by 0, and no truncation before an argmax.
    """
    greedy = parameters.get("temperature", 1.0) == 0.0
    return [
        name
        for name, neutral in NEUTRAL.items()
        if parameters.get(name, neutral) != neutral and not (greedy and name in WARPERS)
    ]


def title(name: str, parameters: dict) -> str:
    """A stage in words, such as `temperature 0.7`."""
    value = parameters[name]
    if isinstance(value, bool):
        return name
    if isinstance(value, int | float):
        return f"{name} {value:g}"
    if isinstance(value, list) and all(isinstance(v, int | float) for v in value):
        value = ", ".join(f"{v:g}" for v in value)
    shown = str(value)
    return f"{name} {shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + '…'}"
