"""What an engine can provide besides log-probabilities after a node, in the words that messages use.

suitability.py compares an engine with a strategy.
"""

from enum import StrEnum


class Capability(StrEnum):
    """What a strategy may read from a model, or a view may show of it."""

    NEXT_TOKENS = "the probabilities of what may follow any text"  # given by all but servers that name texts
    FULL_DISTRIBUTION = "the probabilities of all tokens"
    HIDDEN_STATES = "hidden states"
    ATTENTION = "attention weights"
    LAYERS = "the output of a part of the layers"
    EMBEDDINGS = "the input embeddings"
    OUTPUT_EMBEDDING = "the output embedding"
    CANVAS_PARTS = "the rest of a canvas under cached keys and values"
    WEIGHTS = "the weights"


# What a lane records of its target wherever the engine provides it.
RECORDED = (Capability.FULL_DISTRIBUTION, Capability.ATTENTION)
