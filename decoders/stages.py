"""The processors that parameters ask for, in the order in which they run. Knows names, no tensors."""

# GenerationConfig name -> the value that changes nothing; order as in transformers' `_get_logits_processor`.
NEUTRAL = {
    "sequence_bias": "",
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "bad_words_ids": "",
    "min_new_tokens": 0,
    "exponential_decay_length_penalty": [0.0, 1.0],
    "suppress_tokens": "",
    "begin_suppress_tokens": "",
    "temperature": 1.0,
    "top_h": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
# Those that look at the tokens so far.
WITH_HISTORY = (
    "sequence_bias", "repetition_penalty", "no_repeat_ngram_size", "bad_words_ids", "min_new_tokens",
    "exponential_decay_length_penalty", "begin_suppress_tokens",
)  # fmt: skip
# Those that only a draw needs: transformers leaves them out where the likeliest token is taken.
WARPERS = (
    "temperature", "top_h", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff"
)  # fmt: skip
LONGEST = 24  # characters of a typed text in a title


def stages(parameters: dict) -> list[str]:
    """Names of the processors that would change something.

    Temperature 0 stands for greedy: it is no division, and nothing is removed before an argmax.
    """
    greedy = parameters.get("temperature", 1.0) == 0.0
    return [
        name
        for name, neutral in NEUTRAL.items()
        if parameters.get(name, neutral) != neutral and not (greedy and name in WARPERS)
    ]


def title(name: str, parameters: dict) -> str:
    """`temperature 0.7`: a stage in words."""
    value = parameters[name]
    if isinstance(value, list):
        return f"{name} {', '.join(f'{v:g}' for v in value)}"
    if isinstance(value, str):
        return f"{name} {value if len(value) <= LONGEST else value[: LONGEST - 1] + '…'}"
    return f"{name} {value:g}"
