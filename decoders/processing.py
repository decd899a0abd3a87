"""What a lane does to logits before a token is chosen: its constraint, then its processors.

Knows a tree, parameters and logits; nothing of models' forwards or of limits.
"""

from typing import Any

import torch

from decoders.chooser import Chooser
from decoders.constraints.constraint import masked
from decoders.logits.distributions import Around, processors
from decoders.recorder import Recorder


class Processing(Recorder):
    """The verbs `process` and `constrained` of a lane, see `lane.Lane`, and what they need of it."""

    chooser: Chooser
    eos: frozenset[int]
    budget: int
    parameters: dict[str, Any]
    shaping: dict[str, Any]  # the processors that the parameters and the model's settings ask for
    _processors: dict[int, Any]  # vocabulary -> the stack of processors, made once

    def process(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """Logits [N, V] after the constraint and the processors that the parameters ask for, each row with
        its own node's prefix. With `record`, what each of them but the last has left is recorded. Raises
        DeadEnd, which ends the lane with a sentence, if the constraint leaves no row any token.
        """
        allowed = self.constrained(logits, nodes)
        if allowed is not logits and record and self._stack(logits.shape[-1]) is not None:
            self.distribution(nodes, allowed, "processed", "constraint")
        return self.shaped(allowed, nodes, record)

    def shaped(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """Logits [N, V] after the processors alone, as `process`: for methods that ask the constraint
        themselves, and whose model is what the processors make of the scores.
        """
        stack = self._stack(logits.shape[-1])
        if stack is None:
            return logits

        def hear(name: str, scores: torch.Tensor) -> None:
            if scores.isfinite().any(-1).all():
                self.distribution(nodes, scores, "processed", name)

        return stack(logits, (self.tree.text(n) for n in nodes), hear if record else None)

    def constrained(self, logits: torch.Tensor, nodes: list[int]) -> torch.Tensor:
        """Logits [N, V] without the tokens that the constraint forbids after each node. Raises DeadEnd."""
        if self.constraint is None:
            return logits
        return masked(logits, self.constraint.masks_of(nodes))

    def _stack(self, vocabulary: int) -> Any:
        """The processors for logits over this many tokens, None for none."""
        if vocabulary not in self._processors:
            cut = getattr(self.models["target"], "cut", None)
            keep = 1 + len(self.eos) if self.parameters.get("do_sample") else 1  # of each beam
            coin = self.chooser.bernoulli
            more = dict(length=self.tree.trunk + self.budget, keep=keep, coin=lambda *p: bool(coin(*p).value))
            around = Around(vocabulary, tuple(sorted(self.eos)), len(self.trace.prompt), cut, **more)
            self._processors[vocabulary] = processors(self.shaping, vocabulary, around)
        return self._processors[vocabulary]
