"""Source of guesses: a second, smaller model."""

from dataclasses import replace
from functools import partial

import torch

from decoders.lane import Lane
from decoders.parameters import real
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Drafter, Source, drafted
from decoders.strategy import PartId


def scores(
    lane: Lane, nodes: list[int], hidden: bool = False, sharper: float = 1.0, role: str = "draft"
) -> torch.Tensor:
    """The scores [N, V] of the draft model `role` after each node, processed as the target's are, in one
    forward; with `hidden` its scorer keeps their states. `sharper`: a factor for its logits before
    processing.
    """
    logits = lane.score(nodes, "draft", role=role, hidden=hidden)
    return lane.process(logits if sharper == 1.0 else logits * sharper, nodes)


DRAFT_MODEL = Source(
    scores,
    "a draft model",
    "A second, smaller model guesses, one forward per level.",
    roles=("draft",),
    chain=PartId.DRAFT_MODEL_CHAIN,
)
DRAFT_TEMPERATURE = real(
    "draft_temperature",
    0.0,
    "The temperature of the draft, whatever the target's is. Below 1 it "
    "is more confident in its best guesses, and a growing tree gets deeper. 0: the target's, or 1 if "
    "that is 0.",
    low=0.0,
    high=5.0,
)


def at_temperature(parameters: dict) -> Source:
    """The draft model at draft_temperature."""
    if parameters["draft_temperature"] == 0.0:
        return DRAFT_MODEL
    sharper = (parameters["temperature"] or 1.0) / parameters["draft_temperature"]
    return replace(DRAFT_MODEL, scores=partial(scores, sharper=sharper))


def draft_chain(parameters: dict) -> Drafter:
    """A chain of num_assistant_tokens guesses of the draft model, drawn from q, or its best ones at
    temperature 0.
    """
    return drafted(DRAFT_MODEL, widths([1] * parameters["num_assistant_tokens"], parameters["temperature"]))
