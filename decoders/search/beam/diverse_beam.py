"""Diverse beam search: groups of beams, decoded one after another at each position, that avoid each other's
tokens.

Live and finished hypotheses of each group are in beam_state.py. Paper: "Diverse Beam Search: Decoding Diverse
Solutions from Neural Sequence Models" (2016), Hamming diversity.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch

from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.search.beam.beam_state import EARLY_STOPPING, LENGTH_PENALTY, Beams, close_step
from decoders.strategy import Part


def uneven_groups(parameters: dict) -> str | None:
    """The message to show if the beams cannot be divided evenly among the groups."""
    beams, groups = parameters["num_beams"], parameters["num_beam_groups"]
    if beams % groups == 0:
        return None
    return (
        f"num_beams is {beams}, which {groups} groups cannot share evenly; "
        "make it a multiple of num_beam_groups."
    )


@strategy(
    name="diverse_beam",
    title="Diverse beam search",
    family="search",
    parameters=(
        integer("num_beams", 4, "Hypotheses kept at each position, all groups together.", low=1, high=64),
        integer("num_beam_groups", 2, "Groups that share the beams evenly.", low=1, high=64),
        real(
            "diversity_penalty",
            0.5,
            "Subtracted from a token's score for each beam of an earlier group that chose it at this "
            "position.",
            low=0.0,
            high=100.0,
        ),
        replace(LENGTH_PENALTY, default=0.0),  # the paper ranks by sums
        EARLY_STOPPING,
        *PENALTIES,
    ),
    together=uneven_groups,
    papers=("diverse-beam-search",),
    view="beam_tree",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("frontier", "grouped beams", "num_beam_groups beam searches that choose one after the other."),
        Part("value", "Hamming diversity", "A token is penalised for each earlier beam that chose it here."),
    ],
)
def diverse_beam(lane: Lane) -> Iterator[None]:
    """Beam search in groups; a group is penalized for tokens that earlier groups chose at this position.

    1. One forward scores the beams of all groups.
    2. The groups choose one after the other. The score of a token v is its log-probability minus
       diversity_penalty times the number of earlier beams that chose it here: `a(v) = log p(v) -
       diversity_penalty * taken(v)`.
    3. Each group keeps its best texts by the sum of a, so the penalty affects all later positions too. Each
       has finished texts of its own; their union is the result.

    Penalties and forbidden words are applied after the diversity penalty.
    """
    penalty, count = lane.parameters["diversity_penalty"], lane.parameters["num_beam_groups"]
    width = lane.parameters["num_beams"] // count
    groups = [Beams(lane, width, f"group {g + 1}", "diversity") for g in range(count)]
    while running := [beams for beams in groups if beams.live]:
        leaves = list(dict.fromkeys(node for beams in running for node in beams.live))
        logprobs = lane.distribution(leaves, lane.score(leaves))  # [N, V]
        row = {node: i for i, node in enumerate(leaves)}
        taken = torch.zeros_like(logprobs[0])  # [V] beams of earlier groups that took each token here
        for beams in running:
            own = logprobs[[row[node] for node in beams.live]]  # [B', V]
            scores = lane.process(own - penalty * taken, beams.live)  # in transformers' order
            for token in beams.advance(scores, own):
                taken[token] += 1
        close_step(lane, groups)
        yield
