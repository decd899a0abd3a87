"""The processors that parameters ask for, in the order in which they run. Knows names, no tensors."""

# GenerationConfig name -> the value that changes nothing; order as in transformers' `_get_logits_processor`.
NEUTRAL = {
    "repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
WITH_HISTORY = ("repetition_penalty", "no_repeat_ngram_size")  # those that look at the tokens so far


def stages(parameters: dict) -> list[str]:
    """Names of the processors that would change something.

    Temperature 0 stands for greedy: it is no division, and nothing is removed before an argmax.
    """
    greedy = parameters.get("temperature", 1.0) == 0.0
    return [
        name
        for name, neutral in NEUTRAL.items()
        if parameters.get(name, neutral) != neutral and (name in WITH_HISTORY or not greedy)
    ]


def title(name: str, parameters: dict) -> str:
    """`temperature 0.7`: a stage in words."""
    return f"{name} {parameters[name]:g}"
