"""Lexical units (Sun et al., 2024): runs of tokens of which all but the first are nearly certain once the
first is known.

`explorer/training/recipes/llama_tiny_lud.py` trains on the units.
"""

from collections.abc import Sequence


def mark_units(probs: Sequence[float], alpha: float, longest: int) -> list[tuple[int, int]]:
    """Divides a text into units (first place, place after the last), from left to right: a unit continues
    while the next token has probability `alpha` or more given the true text before it, up to `longest`
    tokens.
    """
    units, first = [], 0
    for place in range(1, len(probs) + 1):
        full = place - first == longest
        if place == len(probs) or full or probs[place] < alpha:
            units.append((first, place))
            first = place
    return units
