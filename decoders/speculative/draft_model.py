"""Source of guesses: a second, smaller model. Knows the lane's draft model and nothing of the target."""

from dataclasses import replace
from functools import partial

import torch

from decoders.lane import Lane
from decoders.speculative.parts import Drafter, Source, drafted
from decoders.speculative.shapes import widths


def scores(lane: Lane, nodes: list[int], hidden: bool = False) -> torch.Tensor:
    """The draft's scores [N, V] after each node, processed as the target's are, in one draft forward; with
    `hidden` its scorer keeps their states.
    """
    return lane.process(lane.score(nodes, "draft", role="draft", hidden=hidden), nodes)


DRAFT_MODEL = Source(scores, "a draft model", "A second, smaller model guesses, one forward for each level.")
DRAFT_STATES = replace(DRAFT_MODEL, scores=partial(scores, hidden=True))


def draft_chain(parameters: dict) -> Drafter:
    """A chain of num_assistant_tokens guesses of the draft model, drawn from q, or its best ones at
    temperature 0.
    """
    return drafted(DRAFT_MODEL, widths([1] * parameters["num_assistant_tokens"], parameters["temperature"]))
