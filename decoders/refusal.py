"""The one channel for sentences to people: what was asked cannot be done, and what to do instead."""

import textwrap

LONGEST = 200  # characters that a sentence quotes of another library's text


class Refusal(ValueError):
    """One sentence that is shown as it is. Any other ValueError is a fault of the program: it is logged, and
    the person reads that this happened, never its text.
    """


def said_by(error: object, longest: int = LONGEST) -> str:
    """What another library says, as a part of a sentence: on one line, cut between words, without its full
    stop. An error without a message is named by its type.
    """
    said = " ".join(str(error).split()).rstrip(".:; ") or type(error).__name__
    if len(said) <= longest:
        return said
    cut = textwrap.shorten(said, longest, placeholder=" …", break_on_hyphens=False)
    return cut if cut.strip() != "…" else f"{said[: longest - 1]}…"  # one endless word
