"""Sentences of notes: what a lane says once, beside its verdicts."""

DRAFTS_STAY_EXACT = (
    "Guessed tokens stay exact until they are committed, so this lane may write another text than "
    "decoding token by token with the same memory."
)


def bias_measured_no_further(full: Exception) -> str:
    """full: why the cache has no slot left."""
    return f"The bias of the mask is measured no further. {full}"
