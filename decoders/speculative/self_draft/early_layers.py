"""Drafts by the target itself: some of its layers guess, all of them verify. Needs no second model.

Which layers guess is the strategy's choice; the engine decides which keys and values of the draft may be kept
(`engine.Scorer.score_part`).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.layers import Layers
from decoders.heads import DraftModule
from decoders.lane import Lane
from decoders.refusal import Refusal
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.fixed_trees import likeliest, open_ends, sampled
from decoders.speculative.drafters.sees import record_sees
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Drafter, Shape, Source, drafted


def self_drafted(
    layers: Callable[[Lane], Layers], shape: Shape, name: str, says: str, go_on: bool = False
) -> Drafter:
    """A drafter of `shape` from the guesses of the target's `layers(lane)`. `name`: what they are called.

    With `go_on` the layers are the first ones: they also read the last drafted tokens, and verification needs
    only the other layers. The first token after a prompt is never drafted, since all layers must read it.
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

    return replace(inner, propose=propose, reads=(Capability.LAYERS,))


class Exit(Protocol):
    """One lane's drafting from the target's first layers (`kangaroo.Shallow`, `m2r2.Doubled`) with `module`.
    `shown`: depths for which the trace has what their guesses depend on.
    """

    module: DraftModule
    shown: int

    def begin(self) -> torch.Tensor:
        """Logits [1, V] below the newest token, which the first layers have then read."""

    def read(self, node: int) -> object:
        """Lets the first layers read a drafted node."""

    def below(self, node: int, rank: int) -> torch.Tensor:
        """Logits [1, V] below a node that was read, the drafted one number `rank`."""


def doubly_exited(start: Callable[[Lane], Exit], parameters: dict, name: str, says: str) -> Drafter:
    """A chain of at most `num_assistant_tokens` guesses from the first layers; none follows one with a
    probability below `eta`. The first token after a prompt is never drafted, since all layers must read it.
    """
    temperature, max_tokens = parameters["temperature"], parameters["num_assistant_tokens"]
    running: dict[int, Exit] = {}

    def propose(lane: Lane) -> Draft:
        draft = Draft(lane.tip)
        if lane.tip < lane.tree.trunk or lane.left < 2:
            return draft
        early = running.get(id(lane))
        if early is None:
            running.clear()
            early = running[id(lane)] = start(lane)
        node, logits = lane.tip, early.begin()
        for rank in range(1, min(max_tokens, lane.left - 1) + 1):
            scores = lane.process(logits.float() if logits.dtype != torch.float64 else logits, [node])
            lane.distribution([node], scores, view="draft")
            sure = float(scores.softmax(-1).max())
            if temperature == 0.0:
                born = likeliest(lane, draft, [node], scores, [1])
            else:
                born = sampled(lane, draft, [node], distributions(lane, scores), [1], SAMPLED)
            (node,) = born
            if not open_ends(lane, born):
                break
            early.read(node)
            if sure < parameters["eta"] or rank == min(max_tokens, lane.left - 1):
                break
            logits = early.below(node, rank)
        early.shown = record_sees(lane, early.module, draft, draft.root, early.shown)
        return draft

    return Drafter(
        propose, FIXED if temperature == 0.0 else SAMPLED, name=name, says=says, reads=(Capability.LAYERS,)
    )


def suited(made: Callable[[dict, object], object]) -> Callable[[dict, object], str | None]:
    """The `suits` of a strategy that needs what `made(parameters, target)` returns or refuses with a
    Refusal.
    """

    def suits(parameters: dict, target) -> str | None:
        try:
            made(parameters, target)
        except Refusal as error:
            return str(error)
        return None

    return suits


def depth_of(target) -> int:
    """How many layers a target has whose layers can be run in part."""
    return target.engine.layer_count
