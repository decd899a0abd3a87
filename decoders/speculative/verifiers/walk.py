"""The walk down a drafted tree, written once for all rules that test one token after the other.

A rule is the test of one drafted token and the distribution from which the target draws if no token passes.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch

from decoders.chooser import Draw
from decoders.logits.distributions import without
from decoders.speculative.interfaces import TokenTest, Verification, Verifier, VerifierInput
from decoders.trace.reasons import Code, Reason


@dataclass(slots=True)
class Place:
    """A node of the draft, and which of its children is tested: what a rule may ask for besides p and q."""

    inputs: VerifierInput
    node: int
    depth: int  # of the children
    greedy: bool
    child: int = -1
    slot: int = -1
    drawn: Draw | None = None

    def accept(self, probability: float) -> Draw:
        """Whether the child passes: the draw of its slot."""
        return self.inputs.chooser.bernoulli(probability, ("accept", self.depth, self.slot))

    def guessed(self) -> torch.Tensor:
        """The source's distribution here [V] (float64), before any argmax."""
        return self.inputs.guessed(self.node)

    def own(self, p: torch.Tensor) -> Draw:
        """The target's own token after this node, drawn from p [V] when it is first asked for; the most
        likely one if the rule is greedy.
        """
        if self.drawn is None:
            if self.greedy:
                self.drawn = Draw(int(self.inputs.p[self.node].argmax()), None)
            else:
                self.drawn = self.inputs.chooser.categorical(p, ("sample", self.depth))
        return self.drawn


class Rule(Protocol):
    """How one drafted token is tested. p is what the target still wants at the place [V] (float64), before a
    temperature of 0 makes it one-hot; q what is left of the distribution that the draft drew from [V], None
    where nothing was drawn.
    """

    greedy: bool  # the target's own token is its most likely one
    tests_all: bool = False  # one draw decides on all children of a node, so all have a test
    shows_residual: bool = False  # whether a trace holds the distribution that is left after each rejection

    @property
    def exact_for(self) -> frozenset[str]:
        """The fills for which the text has exactly the target's distribution."""
        return frozenset()

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        """The test of `token`, which stands at `place.child`."""

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor | None:
        """What the target wants [V] after the token `tried` was rejected; None if p and q leave nothing, so
        that it stays p.
        """
        return p

    def own_code(self, whole: bool) -> Code:
        """What the target's own token comes from: after a draft that passed as a `whole`, or a rejection."""
        return Code.ALL_ACCEPTED if whole else Code.RESIDUAL


def walk(inputs: VerifierInput, rule: Rule) -> Verification:
    """From the root down: at each node the first child in slot order that passes is kept; where none does,
    the target's own token ends the walk.
    """
    verification, node, depth = Verification(), inputs.draft.root, inputs.position + 1
    wanted = inputs.probs if rule.greedy else inputs.p
    while node in inputs.p:
        place = Place(inputs, node, depth, rule.greedy)
        p, q, tried, kept = wanted[node], inputs.draft.q.get(node), None, None
        for place.slot, place.child in enumerate(inputs.children(node)):
            if tried is not None and q is not None:
                q = without(q, tried)
            tried = inputs.tokens[place.child]
            test = rule.test(p, q, tried, place)
            verification.tests.append(test)
            if test.accepted:
                kept = place.child
            if kept is None:
                p = after_rejection(verification, rule, p, q, tried)
            elif not rule.tests_all:
                break
        if kept is None:
            return ended(verification, rule, p, place)
        verification.path.append(kept)
        node, depth = kept, depth + 1
    return verification


def after_rejection(
    verification: Verification, rule: Rule, p: torch.Tensor, q: torch.Tensor | None, tried: int
) -> torch.Tensor:
    """What the target wants [V] after the newest test, which rejected the token `tried`."""
    left = rule.residual(p, q, tried)
    if left is None:
        verification.note, left = Reason(Code.MODELS_AGREE), p
    if rule.shows_residual:
        verification.tests[-1].left = left
    return left


def ended(verification: Verification, rule: Rule, p: torch.Tensor, place: Place) -> Verification:
    """Ends the walk at a place none of whose children passed, with the target's own token from p [V]."""
    code, (token, u) = rule.own_code(whole=place.slot < 0), place.own(p)
    if rule.greedy:
        return verification.chosen(token, code)
    return verification.drawn(token, u, p, code)


def by_rule(rule: Rule, name: str, says: str, **declaration: Any) -> Verifier:
    """The verifier that walks with `rule`; `declaration` holds further fields of `Verifier`."""
    return Verifier(partial(walk, rule=rule), rule.exact_for, name, says, **declaration)
