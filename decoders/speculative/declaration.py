"""Declares a strategy that drafts and verifies: badge and description follow from its parts."""

from collections.abc import Callable
from typing import Any

from decoders.registry import strategy
from decoders.speculative.interfaces import VIEWS, Drafter, Verifier, badge, described

Pair = Callable[[dict], tuple[Drafter, Verifier, float]]  # parameters -> drafter, verifier, temperature


def draft_and_verify(pair: Pair, /, **declaration: Any) -> Callable[[Callable], Callable]:
    """The decorator `registry.strategy` with the badge and the description of `pair`, the family of
    speculative methods and their usual views, unless `declaration` says otherwise.
    """
    usual = {
        "family": "speculative",
        "views": VIEWS,
        "badge": lambda parameters: badge(*pair(parameters)),
        "parts": lambda parameters: described(*pair(parameters)),
    }
    return strategy(**usual | declaration)
