"""Contrastive search: likely tokens whose hidden state is unlike those of the text so far.

Definition as in transformers' former `penalty_alpha` generation and in "A Thorough Examination of Decoding
Methods in the Era of LLMs" (2024), item 10.
"""

from collections.abc import Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.sampling.candidates import Parts, likeliest, take_best
from decoders.strategy import Part
from decoders.trace.scores import ScoreName


@strategy(
    name="contrastive_search",
    title="Contrastive search",
    family="search",
    parameters=(
        real("penalty_alpha", 0.6, "Weight of the similarity penalty; 0: greedy.", low=0.0, high=1.0),
        integer("top_k", 4, "Candidates looked ahead at each position; 1 is greedy.", low=1, high=64),
    ),
    view="beam_tree",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part(
            "value",
            "degeneration penalty",
            "The largest cosine similarity of a hidden state with the earlier ones.",
        )
    ],
    reads=lambda parameters: {"target": {Capability.HIDDEN_STATES}},
)
def contrastive_search(lane: Lane) -> Iterator[None]:
    """Of the top_k tokens, takes a likely one whose hidden state differs most from the text so far.

    1. The top_k most likely tokens are tried in one forward, which gives each its hidden state h.
    2. Each is penalised by its largest similarity to any earlier position; the best score is taken:
       `x = argmax_v (1 - alpha) p(v) - alpha max_j cos(h_v, h_j)`.
    3. That forward also gives the distribution after the winner: one forward per token.
    """
    scorer = lane.scorers["target"]
    alpha, top_k = lane.parameters["penalty_alpha"], lane.parameters["top_k"]
    trunk = list(range(lane.tree.trunk))
    lane.score(trunk, hidden=True)
    context = [direction(scorer.hidden(node)) for node in trunk]  # unit vectors [d] of all positions so far
    scorer.forget(trunk[:-1])
    while lane.more:
        logprobs = lane.distribution([lane.tip], lane.score([lane.tip]))[0]  # [V], from an earlier forward
        candidates = likeliest(lane, logprobs, top_k)
        nodes = [candidate.node for candidate in candidates]
        lane.score(nodes, hidden=True)
        states = torch.stack([direction(scorer.hidden(node)) for node in nodes])  # [K, d]
        penalties = (states @ torch.stack(context).T).max(dim=-1).values.tolist()  # [K]
        scores = [
            ((1 - alpha) * candidate.p - alpha * penalty, {"p": candidate.p, "penalty": penalty})
            for candidate, penalty in zip(candidates, penalties, strict=True)
        ]
        best = take_best(lane, ScoreName.CONTRASTIVE, candidates, scores, because)
        context.append(states[nodes.index(best.node)])
        yield


def because(rank: int, count: int, parts: Parts) -> str:
    """Why a candidate was not taken, in a sentence."""
    return f"rank {rank} of {count}: p {parts['p']:.3f}, similarity to the text {parts['penalty']:.3f}"


def direction(state: torch.Tensor) -> torch.Tensor:
    """The hidden state [d], scaled to unit length, in float32 or float64."""
    state = state if state.dtype == torch.float64 else state.float()
    return state / state.norm()
