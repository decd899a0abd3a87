"""What a lane applies to logits before a token is chosen: its constraint, then its processors.

Knows a tree, parameters and logits; no forwards and no limits.
"""

from typing import Any

import torch

from decoders.chooser import Chooser
from decoders.constraints.constraint import masked
from decoders.logits.distributions import ProcessorContext, processors
from decoders.recorder import Recorder


class Processing(Recorder):
    """The methods `process` and `constrained` of a `lane.Lane`, and the attributes that they need."""

    chooser: Chooser
    eos: frozenset[int]
    budget: int
    parameters: dict[str, Any]
    shaping: dict[str, Any]  # the processors that the parameters and the model's settings switch on
    _processors: dict[int, Any]  # vocabulary -> the stack of processors, made once

    def process(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """Logits [N, V] after the constraint and the processors, each row with its own node's prefix. With
        `record`, the distribution after each of them but the last is recorded. Raises DeadEnd, which ends the
        lane with a message, if the constraint leaves no token in any row.
        """
        allowed = self.constrained(logits, nodes)
        if allowed is not logits and record and self._stack(logits.shape[-1]) is not None:
            self.distribution(nodes, allowed, "processed", "constraint")
        return self.shaped(allowed, nodes, record)

    def shaped(self, logits: torch.Tensor, nodes: list[int], record: bool = False) -> torch.Tensor:
        """As `process`, without the constraint: for methods that apply the constraint themselves, to the
        distribution after the processors.
        """
        stack = self._stack(logits.shape[-1])
        if stack is None:
            return logits

        def record_stage(name: str, scores: torch.Tensor) -> None:
            if scores.isfinite().any(-1).all():
                self.distribution(nodes, scores, "processed", name)

        return stack(logits, (self.tree.text(n) for n in nodes), record_stage if record else None)

    def constrained(self, logits: torch.Tensor, nodes: list[int]) -> torch.Tensor:
        """Logits [N, V] with -inf for the tokens that the constraint forbids after each node. Raises DeadEnd
        if no row has a token left.
        """
        if self.constraint is None:
            return logits
        return masked(logits, self.constraint.masks_of(nodes))

    def _stack(self, vocabulary: int) -> Any:
        """The processors for logits over this many tokens; None if there are none."""
        if vocabulary not in self._processors:
            cut = getattr(self.models["target"], "cut", None)
            keep = 1 + len(self.eos) if self.parameters.get("do_sample") else 1  # of each beam
            coin = self.chooser.bernoulli
            more = dict(length=self.tree.trunk + self.budget, keep=keep, coin=lambda *p: bool(coin(*p).value))
            context = ProcessorContext(
                vocabulary, tuple(sorted(self.eos)), len(self.trace.prompt), cut, **more
            )
            self._processors[vocabulary] = processors(self.shaping, vocabulary, context)
        return self._processors[vocabulary]
