"""Sentences that say why a lane ended, shared by several files."""

NOTHING_FOLLOWS = "The text is one that the constraint allows, and nothing may follow it."
END_OF_TEXT = "The model wrote its end-of-text token."
WHOLE = (NOTHING_FOLLOWS, END_OF_TEXT)  # endings that a constraint allows only for a complete text

STOP_STRING = "The model wrote a stop string."
IMPORTED = "The answer of the server ends here."
MAX_NEW_TOKENS = "Reached max_new_tokens = {}."
MAX_LENGTH = "Reached max_length = {}, prompt and text together."
CONTEXT_FULL = "The model's context of {:,} tokens is full."
NO_NUMBERS = (
    "The scores of {} are not finite: a weight is damaged, or too large for its number format; copy the "
    "weights again, or load them in float32."
)


def limited(ended: str | None) -> bool:
    """Whether a limit on the text's length ended a lane."""
    starts = tuple(sentence.partition("{")[0] for sentence in (MAX_NEW_TOKENS, MAX_LENGTH, CONTEXT_FULL))
    return ended is not None and ended.startswith(starts)


def without_numbers(ended: str | None) -> bool:
    """Whether scores that are no numbers ended a lane."""
    return ended is not None and ended.startswith(NO_NUMBERS.partition("{")[0])


def inside_the_text(ended: str | None) -> bool:
    """Whether a token of the text itself ended a lane, or the end of an imported text."""
    return ended in (*WHOLE, STOP_STRING, IMPORTED)
