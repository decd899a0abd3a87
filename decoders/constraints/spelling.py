"""How a text is cut into tokens where it follows another one."""

from typing import Any

from decoders.constraints.kinds import vocabulary_of


def spelt(model: Any, eos: frozenset[int], before: bytes, text: str) -> list[int]:
    """The tokens of a text after the bytes `before`, with a space in front unless `before` ends in white
    space or the model has no token for a space.
    """
    cut, tokens = vocabulary_of(model, eos).cut, []
    if before and not before[-1:].isspace():
        tokens = cut(" " + text)
    has_space = b"".join(map(model.bytes_of, tokens)) == (" " + text).encode()
    return tokens if tokens and has_space else cut(text)
