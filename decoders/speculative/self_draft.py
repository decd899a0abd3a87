"""Drafts by the target itself: a part of its layers guesses, all of them check. Needs no second model.

Which layers guess is the strategy's choice; which keys and values of the draft may be kept is the engine's
(`engine.Scorer.score_part`).
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from decoders.lane import Lane
from decoders.speculative.parts import Draft, Drafter, Shape, Source, drafted
from decoders.thin import Layers


def self_drafted(
    layers: Callable[[Lane], Layers], shape: Shape, name: str, says: str, go_on: bool = False
) -> Drafter:
    """A drafter that writes down `shape` of what `layers(lane)` of the target guess. `name`: what they are.

    With `go_on` the layers are the first ones: they also read the last drafted tokens, and the check needs
    the other layers alone. The first token after a prompt is never drafted, since all layers must read it.
    """

    def scores(lane: Lane, nodes: list[int]) -> torch.Tensor:
        return lane.process(lane.score(nodes, "draft", layers=layers(lane)), nodes)

    inner = drafted(Source(scores, name, says), shape)

    def propose(lane: Lane) -> Draft:
        if lane.tip < lane.tree.trunk:
            return Draft(lane.tip)
        draft = inner.propose(lane)
        last = [n for n in draft.nodes if n not in draft.children and lane.tree.tokens[n] not in lane.eos]
        if go_on and last:
            lane.score(last, "draft", layers=layers(lane))
        return draft

    return replace(inner, propose=propose)


def parts_problem(parameters: dict, target) -> str | None:
    """Why a part of this target's layers cannot draft, as a sentence; None if it can."""
    return target.engine.parts_problem


def depth_of(target) -> int:
    """How many layers a target has whose layers can be run in part."""
    return target.engine.layer_count
