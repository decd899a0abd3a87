"""What drafters and verifiers pass to each other, and the badge that a pair of them earns.

p is the target's distribution and q the draft's, both after all processors; at temperature 0 both are
one-hot.
"""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import torch

from decoders.chooser import Chooser
from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.own_code import Stack, passes_on, stack
from decoders.sampling.sampling_parameters import PROCESSORS
from decoders.strategy import Part, PartId
from decoders.trace.reasons import Code, Reason

# How the slots below a node are filled: with one drawn token; with several, each drawn from what the
# earlier ones left, or all from the same distribution; or with nothing drawn at all.
SAMPLED, WITHOUT_REPLACEMENT = "sampled", "sampled without replacement"
WITH_REPLACEMENT, FIXED = "sampled with replacement", "fixed"


@dataclass
class Draft:
    """What one round drafted: a tree below `root`, which is the newest committed node.

    `q` holds, for each node whose children were drawn, the distribution [V] (float64) that the first of them
    was drawn from; the others came from what was left of it. Fixed drafts have no q. `beside` are nodes that
    the target scores in the same forward for the drafter's sake: they are no candidates, and no verifier sees
    them. `ahead` are nodes that the source has read before they were proposed, and who guessed them.
    """

    root: int
    nodes: list[int] = field(default_factory=list)  # in the order proposed, so parents come first
    children: dict[int, list[int]] = field(default_factory=dict)  # node -> its children in slot order
    q: dict[int, torch.Tensor] = field(default_factory=dict)
    draws: dict[int, list[int]] = field(default_factory=dict)  # node -> its draws, which may repeat
    # node -> what each of them came from
    draw_probs: dict[int, list[torch.Tensor]] = field(default_factory=dict)
    # node -> the drafter's probability of its token
    probability: dict[int, float] = field(default_factory=dict)
    beside: list[int] = field(default_factory=list)
    scores: dict[int, torch.Tensor] = field(default_factory=dict)  # node -> the source's scores [V] after it
    ahead: dict[tuple[int, int], dict] = field(default_factory=dict)  # parent, token -> {node, source}

    @passes_on
    def propose(self, lane: Lane, parent: int, token: int, logprob: float | None, **how: Any) -> int:
        """Adds `token` in the next slot below `parent` and records it; returns the node."""
        siblings = self.children.setdefault(parent, [])
        if self.ahead:
            how |= self.ahead.pop((parent, token), {})
        node = lane.propose(parent, token, logprob, slot=len(siblings), **how)
        siblings.append(node)
        self.nodes.append(node)
        if logprob is not None:
            self.probability[node] = math.exp(logprob)
        return node

    def below(self, lane: Lane, parent: int) -> dict[int, int]:
        """Token -> node of what has been drafted below `parent`."""
        return {lane.tree.tokens[n]: n for n in self.children.get(parent, [])}

    @passes_on
    def prune(self, lane: Lane, nodes: list[int], reason: str) -> None:
        """Removes drafted nodes, whole branches, before the target sees them."""
        lost = set(nodes)
        for node in nodes:
            lane.verdict(node, "pruned", q=self.probability.get(node), reason=reason)
        self.nodes = [n for n in self.nodes if n not in lost]
        self.children = {
            parent: kept
            for parent, below in self.children.items()
            if parent not in lost and (kept := [n for n in below if n not in lost])
        }
        lane.drop(nodes)

    @passes_on
    def record(self, lane: Lane) -> None:
        """Records what the source offered after the nodes that are left."""
        scored = {n: row for n in (self.root, *self.nodes) if (row := self.scores.get(n)) is not None}
        if scored:
            lane.distribution(list(scored), torch.stack(list(scored.values())), view="draft")


@dataclass
class TokenTest:
    """The test of one drafted node: p and q are the probabilities that were compared, u the draw, None where
    there is none. `threshold`: the token passes if u is below it, None for min(1, p / q). `reasons`: what
    decided, in order. `left` [V] is what the target still wants after a rejection, if the draft played a part
    in the test. `watched`: name, value and limit of another number that played a part. `code`: where in the
    verifier the test was made.
    """

    node: int
    accepted: bool
    p: float | None = None
    q: float | None = None
    u: float | None = None
    reasons: tuple[Reason, ...] = ()
    left: torch.Tensor | None = field(default=None, compare=False)
    watched: tuple[str, float, float] | None = None
    threshold: float | None = None
    code: Stack = field(default_factory=stack, compare=False, repr=False)


@dataclass
class Verification:
    """A verifier's result: the tests in the order in which they were made, the accepted path, and the
    target's own token.

    `token` is None if the path ends in an end-of-text token. `p` is its probability under the distribution
    that it was drawn from. `cut` are nodes that passed their tests but are dropped nevertheless. `code`: the
    place in the verifier where the token was drawn, None if that is not known.
    """

    tests: list[TokenTest] = field(default_factory=list)
    path: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    token: int | None = None
    p: float | None = None
    u: float | None = None
    reason: Reason | None = None
    note: Reason | None = None
    code: Stack | None = field(default=None, compare=False, repr=False)

    def end(
        self,
        inputs: "VerifierInput",
        probs: torch.Tensor,
        depth: int,
        code: Code = Code.ALL_ACCEPTED,
    ) -> "Verification":
        """Draws the target's own token from `probs` [V] and returns this verification. `code` says from
        what.
        """
        return self.drawn(*inputs.chooser.categorical(probs, ("sample", depth)), probs, code)

    def drawn(self, token: int, u: float | None, probs: torch.Tensor, code: Code) -> "Verification":
        """Ends with the target's own `token`, which u drew from `probs` [V]."""
        self.token, self.u, self.p = token, u, float(probs[token] / probs.sum())
        self.reason, self.code = Reason(code, {"p": self.p}), stack()
        return self

    def chosen(self, token: int, code: Code) -> "Verification":
        """Ends with the target's own `token`, its most likely one."""
        self.token, self.reason, self.code = token, Reason(code), stack()
        return self


@dataclass
class VerifierInput:
    """All that a verifier may see: the draft, its tokens, p of the root and of every drafted node, and
    random draws.

    `p` maps a node to the target's distribution [V] (float64) of the token after it; nodes with an
    end-of-text token have none. `position` is the root's depth: it names the streams of the chooser. `probs`
    is p as it was before a temperature of 0 made it one-hot, for the relaxed rules that ask how likely a
    token is; else p. `states` are the target's states [d] after drafted tokens, for the verifiers that read
    them; tokens that end the text have none.
    """

    draft: Draft
    tokens: list[int]
    p: dict[int, torch.Tensor]
    chooser: Chooser
    position: int
    probs: dict[int, torch.Tensor] = field(default_factory=dict)
    states: dict[int, torch.Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.probs = self.probs or self.p

    def guessed(self, node: int) -> torch.Tensor:
        """The source's distribution [V] (float64) after `node`, before any argmax."""
        return torch.softmax(self.draft.scores[node].double(), dim=-1)

    def children(self, node: int) -> list[int]:
        """The drafted nodes below `node` in slot order."""
        return self.draft.children.get(node, [])

    def offers(self, node: int) -> list[int]:
        """What was drawn below `node`, draw by draw: children drawn with replacement may come up again."""
        return self.draft.draws.get(node) or self.children(node)

    def drawn_from(self, node: int) -> list[torch.Tensor]:
        """The distributions [V] of these draws, if they were made with replacement."""
        return self.draft.draw_probs.get(node, [])


@dataclass
class Seen:
    """What the target's forward of a round showed: the nodes that it scored, those of `Draft.beside` last,
    and their logits [N, V]; for a drafter that `reads_states` their states [N, d], the last norm included,
    and, if the scorer's `taps` are set, the residual streams [L + 1, N, d] after 0 to L layers.
    """

    nodes: list[int]
    logits: torch.Tensor
    hidden: torch.Tensor | None = None
    streams: torch.Tensor | None = None


def nothing_to_observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
    """The `observe` of drafters that learn nothing from a round."""


@dataclass(frozen=True)
class Drafter:
    """`propose(lane)` drafts below the lane's newest token, at most `lane.left - 1` deep; `observe` is told
    the outcome.

    `sees_token` is True if it decides whether a slot is used after having looked at the token that was drawn
    for it. `roles`: the further models that it drafts with, such as "draft". `reads`: what it reads from the
    target besides log-probabilities; hidden states come in `Seen`.
    """

    propose: Callable[[Lane], Draft]
    fill: str
    _: KW_ONLY
    sees_token: bool = False
    observe: Callable[[Lane, Draft, Verification, Seen], None] = nothing_to_observe
    name: str = ""
    says: str = ""  # what it does, in one sentence
    id: PartId | None = None
    roles: tuple[str, ...] = ()
    reads: tuple[Capability, ...] = ()

    @property
    def reads_states(self) -> bool:
        """Whether it wants the target's states in `Seen`."""
        return Capability.HIDDEN_STATES in self.reads


@dataclass(frozen=True)
class Source:
    """Who guesses: `scores(lane, nodes)` gives its processed scores [N, V] of the token after each node.
    `roles` as in `Drafter`.
    """

    scores: Callable[[Lane, list[int]], torch.Tensor]
    name: str  # "a draft model", "an n-gram table": the words after "from"
    says: str
    roles: tuple[str, ...] = ()
    chain: PartId | None = None  # what a chain of its guesses is


@dataclass(frozen=True)
class Shape:
    """Which guesses are written down: `grow(lane, draft, guess, max_levels)` fills the draft, at most
    `max_levels` deep.

    `guess(nodes)` asks the source for scores [N, V]. `fill` and `sees_token` as in `Drafter`.
    """

    grow: Callable[[Lane, Draft, Callable[[list[int]], torch.Tensor], int], None]
    fill: str
    name: str  # "chain", "tree of fixed widths"
    says: str
    sees_token: bool = False
    observe: Callable[[Lane, Draft, Verification, Seen], None] = nothing_to_observe
    is_chain: bool = False


def drafted(source: Source, shape: Shape) -> Drafter:
    """The drafter that writes down `shape` of the guesses of `source`."""

    def propose(lane: Lane) -> Draft:
        draft = Draft(lane.tip)

        def guess(nodes: list[int]) -> torch.Tensor:
            scores = source.scores(lane, nodes)  # [N, V]
            draft.scores.update(zip(nodes, scores, strict=True))
            return scores

        shape.grow(lane, draft, guess, lane.left - 1)
        return draft

    name, says = f"{shape.name} from {source.name}", f"{source.says} {shape.says}"
    return Drafter(
        propose,
        shape.fill,
        sees_token=shape.sees_token,
        observe=shape.observe,
        name=name,
        says=says,
        id=source.chain if shape.is_chain else None,
        roles=source.roles,
    )


@dataclass(frozen=True)
class Verifier:
    """`verify(inputs)` decides. `exact_for`: the fills for which its output has exactly the target's
    distribution.

    `draws` is False if it always takes the most likely token: correct at temperature 0 only. `uses_q` is
    False if the target draws its tokens without regard to the draft, so that no draft can change their
    distribution.

    A relaxed verifier is exact only at the limit of its parameter: `relaxed_for` holds the fills that it
    makes sense for, and `distribution(inputs, node)` gives the distribution [V] (float64) of the token that
    it keeps or draws after a node whose child was drawn, so that its distance from p can be measured. Where
    that distribution is not known, `divergence_estimate(inputs, node)` is an estimate of the distance that is
    right on average. `reads`: what it reads from the target besides log-probabilities.
    """

    verify: Callable[[VerifierInput], Verification]
    exact_for: frozenset[str]
    name: str = ""
    says: str = ""  # what it does, in one sentence
    id: PartId | None = None
    draws: bool = True
    uses_q: bool = True
    relaxed_for: frozenset[str] = frozenset()
    distribution: Callable[[VerifierInput, int], torch.Tensor] | None = None
    divergence_estimate: Callable[[VerifierInput, int], float] | None = None
    reads: tuple[Capability, ...] = ()

    @property
    def reads_states(self) -> bool:
        """Whether it wants the target's states in `VerifierInput`."""
        return Capability.HIDDEN_STATES in self.reads


Pair = tuple[Drafter, Verifier]


def described(drafter: Drafter, verifier: Verifier) -> list[Part]:
    """A pair as parts of a strategy, for its card."""
    return [
        Part("drafter", drafter.name, drafter.says, drafter.id),
        Part("verifier", verifier.name, verifier.says, verifier.id),
        PROCESSORS,
    ]


def badge(drafter: Drafter, verifier: Verifier, temperature: float) -> str:
    """What this pair promises about its output, by the non-anticipation rule.

    Exact if the verifier is exact for the way in which the slots were filled and, where they were filled at
    random, no slot was opened or dropped after a look at its own token. At temperature 0 nothing is random,
    so an exact verifier accepts the target's most likely tokens and no others.
    """
    exact = drafter.fill in verifier.exact_for
    if temperature == 0.0:
        return "lossless: equal to greedy" if exact else "relaxed"
    if not exact or not verifier.draws or (drafter.sees_token and drafter.fill != FIXED and verifier.uses_q):
        return "relaxed"
    return "exact because drafts are deterministic" if drafter.fill == FIXED else "exact in distribution"
