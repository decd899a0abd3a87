"""The simplest exact verifier for a way of drafting. Knows verifiers and how slots are filled, no model."""

from decoders.speculative.greedy_match import GREEDY_MATCH
from decoders.speculative.node_sampling import NODE_SAMPLING
from decoders.speculative.parts import FIXED, WITH_REPLACEMENT, Drafter, Verifier
from decoders.speculative.recursive_rejection import RECURSIVE_REJECTION, WITH_REPLACEMENT_REJECTION


def simplest_verifier(fill: str, temperature: float) -> Verifier:
    """Greedy match at temperature 0; else node sampling for guesses without chance, and token rejection, by
    the way in which they were drawn, for all others.
    """
    if temperature == 0.0:
        return GREEDY_MATCH
    if fill == FIXED:
        return NODE_SAMPLING
    return WITH_REPLACEMENT_REJECTION if fill == WITH_REPLACEMENT else RECURSIVE_REJECTION


def simplest(drafter: Drafter, temperature: float) -> tuple[Drafter, Verifier, float]:
    """What most strategies are made of: a drafter, its simplest exact verifier, and the temperature."""
    return drafter, simplest_verifier(drafter.fill, temperature), temperature
