"""Scores a lane's tree after a different prompt: a model reads another text in place of the lane's prompt."""

import torch

from decoders.engine.engine import Work
from decoders.engine.tree import Tree
from decoders.lane import Lane


class OtherPrompt:
    """A scorer of the lane's tree whose model reads `start` [T] in place of the prompt. It has its own tree,
    with its own keys and values; nodes below the prompt are copied to it when they are first scored.
    """

    def __init__(self, lane: Lane, start: list[int], counts_as: str = "target", model: str = "target"):
        """The model of role `model` reads it; its forwards count as those of role `counts_as`. Raises
        OutOfSlots if `start` does not fit.
        """
        self.lane, self.counts_as, self.tree = lane, counts_as, Tree(start)
        self.scorer = lane.attach(lane.models[model], self.tree)
        self.node_of = {lane.tree.trunk - 1: len(start) - 1}  # node of the lane's tree -> node of this one

    @property
    def work(self) -> Work:
        """What the last call of `score` computed."""
        work = self.scorer.work
        work.scope = f"{self.tree.trunk:,} tokens in place of the prompt's {self.lane.tree.trunk:,}"
        return work

    @property
    def used(self) -> int:
        """As `engine.Scorer.used`."""
        return self.scorer.used

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] after each node of the lane's tree, none of them inside the prompt."""
        for node in nodes:
            self._copy(node)
        return self.scorer.score([self.node_of[n] for n in nodes], hidden)

    def _copy(self, node: int) -> None:
        new = []
        while node not in self.node_of:
            new.append(node)
            node = self.lane.tree.parents[node]
        for node in reversed(new):
            above = self.node_of[self.lane.tree.parents[node]]
            self.node_of[node] = self.tree.add(above, self.lane.tree.tokens[node])

    def forget(self, nodes: list[int]) -> None:
        """As `engine.Scorer.forget`."""
        self.scorer.forget([self.node_of[n] for n in nodes if n in self.node_of])

    def release(self, nodes: list[int]) -> None:
        """As `engine.Scorer.release`."""
        self.scorer.release([self.node_of[n] for n in nodes if n in self.node_of])

    def close(self) -> None:
        """As `engine.Scorer.close`."""
        self.scorer.close()


def read_instead(lane: Lane, view: str, start: list[int], model: str = "target") -> bool:
    """Makes `lane.score(nodes, role=view)` score with `start` in place of the prompt. Returns False, and the
    lane ends with a message, if `start` and the tokens still to be written do not fit the model's context.
    """
    given = lane.tree.tokens[len(lane.trace.prompt) : lane.tree.trunk]
    context = lane.models[model].context
    if (over := len(start) + len(given) + lane.left - context) > 0:
        lane.ended_by = (
            f"The second prompt has {len(start):,} tokens, and with {lane.left:,} new ones the model cannot "
            f"read it: its context is {context:,}. Shorten it, or ask for fewer tokens, by {over:,}."
        )
        return False
    lane.scorers[view] = OtherPrompt(lane, [*start, *given], model, model)
    return True
