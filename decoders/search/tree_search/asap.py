"""ASAp: samples under a constraint, and learns from them how much of what follows each prefix is allowed.

Park et al. (2024), Grammar-Aligned Decoding. Constraints are in constraints.py.
"""

from collections import defaultdict
from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import probabilities
from decoders.parameters import choice, integer
from decoders.registry import strategy
from decoders.sampling.next_token import pick
from decoders.sampling.sampling_parameters import SHAPING
from decoders.search.tree_search import constraints
from decoders.search.tree_search.constraints import ASKED, Gate
from decoders.search.tree_search.program_tree import TRIES, Programs
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

MAX_TRIES = 100  # draws of one text that may end in a dead end
DEAD_ENDS = {
    "go back": "After a dead end the last token is drawn again from the remaining ones; after many, the "
    "whole text.",
    "start over": "After a dead end the whole text is drawn again: each text then has its exact probability.",
}
DEAD_END = choice("dead_end", "go back", "Where a draw continues after a dead end.", DEAD_ENDS)


class Futures:
    """c~: for each prefix an upper bound on the probability that the model's whole text after it is allowed.
    It is 1 until something is learned, and `c~(s) = sum_v p(v|s) c~(s v)`.
    """

    def __init__(self) -> None:
        self.probs: dict[int, torch.Tensor] = {}  # node -> p [V], 0 for what a mask forbids
        self.masked: set[int] = set()  # nodes whose mask forbids some token
        self.learned: dict[int, dict[int, float]] = {}  # node -> token -> c~ of the child, where below 1
        self.above: dict[int, tuple[int, int]] = {}  # node -> (its parent, its token)

    def of(self, node: int) -> float:
        """c~ of a prefix."""
        if not self.learned.get(node) and node not in self.masked:
            return 1.0
        return min(1.0, float(self.weights(node).sum()))

    def weights(self, node: int) -> torch.Tensor:
        """p(v|s) c~(s v) [V]."""
        weights = self.probs[node].clone()
        for token, bound in self.learned.get(node, {}).items():
            weights[token] *= bound
        return weights

    def shares(self, node: int, token: int) -> tuple[float, float]:
        """The probability of a token after a prefix: under the mask alone, and with what was learned."""
        weights, probs = self.weights(node), self.probs[node]
        total = float(weights.sum())
        return float(probs[token] / probs.sum()), float(weights[token]) / total if total else 0.0

    def visit(self, node: int, probs: torch.Tensor, mask: torch.Tensor | None) -> None:
        """Notes that a prefix is reached for the first time: probs [V] of the model alone, and the tokens
        that a mask allows [V]. The probability of forbidden tokens is lost to all prefixes above.
        """
        self.probs[node] = probs
        if mask is None or bool(mask[: len(probs)].all() and len(mask) >= len(probs)):
            return
        self.masked.add(node)
        self.probs[node] = probs * torch.zeros(len(probs)).index_fill(
            0, mask[: len(probs)].nonzero()[:, 0], 1.0
        )
        if node in self.above:
            self.learn(*self.above[node], self.of(node))

    def learn(self, node: int, token: int, bound: float) -> None:
        """Sets c~ of a child, and updates all prefixes above it."""
        while True:
            self.learned.setdefault(node, {})[token] = bound
            if node not in self.above:
                return
            bound, (node, token) = self.of(node), self.above[node]


class Asap:
    """Draws `samples` texts one after another, one token per turn; the last text is the answer."""

    def __init__(self, programs: Programs, samples: int, start_over: bool):
        self.programs, self.samples, self.start_over = programs, samples, start_over
        self.futures, self.at, self.number = Futures(), programs.root, 0
        self.below: dict[tuple[int, int], int] = {}  # (node, token) -> its node, used again by later texts
        self.children: dict[int, dict[int, int]] = defaultdict(dict)  # node -> token -> its node
        self.logprobs: dict[int, torch.Tensor] = {}  # node -> the target's own [V]
        self.last: int | None = None
        self.has_news = False  # whether this turn has recorded anything new
        self.ends = self.tries = 0  # dead ends; draws of the text that is being written

    def turn(self) -> bool:
        """Draws until there is something to record; False once all texts are drawn."""
        self.has_news, more = False, True
        while more and not self.has_news:
            more = self.token()
        return more

    def token(self) -> bool:
        """Draws one token, or backs out of a dead end; what was drawn before is not recorded again."""
        programs, node, futures = self.programs, self.at, self.futures
        if node not in self.logprobs:
            self.read(node)
        weights = futures.weights(node)
        if not float(weights.sum()):
            return self.back()
        token = pick(programs.lane, weights.log(), programs.tag(node, self.number, self.tries))
        logprob = float(self.logprobs[node][token])
        phi = programs.gate.phi(node, token)
        self.has_news = not phi or (node, token) not in self.below
        if not phi:
            programs.gate.reject(node, token, logprob, self.number)
            self.ends, self.tries = self.ends + 1, self.tries + 1
            futures.learn(node, token, 0.0)
            stuck = self.start_over or len(futures.learned[node]) % TRIES == 0
            self.at = programs.root if stuck else node
            return self.tries < MAX_TRIES
        if (node, token) not in self.below:
            self.below[node, token] = programs.add(node, token, logprob, self.number)
            self.children[node][token] = self.below[node, token]
            futures.above[self.below[node, token]] = (node, token)
        self.at = self.below[node, token]
        return self.completed(phi) if programs.gate.ends(node, token) else True

    def read(self, node: int) -> None:
        """The model's row after a prefix, and what a grammar allows there."""
        lane = self.programs.lane
        logits = lane.score([node])
        self.logprobs[node] = lane.distribution([node], logits)[0]
        mask = None if lane.constraint is None else lane.constraint.mask(node)
        self.futures.visit(node, probabilities(lane.shaped(logits, [node]))[0].cpu(), mask)

    def back(self) -> bool:
        """Goes back one token, since nothing below is allowed. False at the root: then no text is allowed."""
        node, programs = self.at, self.programs
        if node == programs.root:
            return False
        self.ends, self.tries = self.ends + 1, self.tries + 1
        if node not in self.futures.learned and node in programs.unjudged:
            programs.unjudged.discard(node)
            programs.lane.verdict(node, "rejected", reason="nothing that is allowed can follow")
        if self.tries >= MAX_TRIES:
            return False
        self.at = self.programs.root if self.start_over else self.futures.above[self.at][0]
        return True

    def completed(self, phi: float) -> bool:
        """Learns from a drawn text's worth, and begins the next one."""
        self.last, self.number, self.tries = self.at, self.number + 1, 0
        if phi < 1.0:
            self.futures.learn(*self.futures.above[self.at], phi)
        self.record()
        self.at = self.programs.root
        return self.number < self.samples

    def record(self) -> None:
        """Records c~ of the prompt and of the prefixes of this text."""
        lane, allowed = self.programs.lane, self.futures.of(self.programs.root)
        self.has_news = True
        lane.record_measure(self.programs.root, ScoreName.ALLOWED_FUTURE, allowed)
        for node in [self.programs.root, *lane.tree.path(self.at, above=lane.tip)[:-1]]:
            for token, child in self.children[node].items():
                masked, learned = self.futures.shares(node, token)
                bound = self.futures.learned.get(node, {}).get(token, 1.0)
                lane.record_measure(child, ScoreName.ALLOWED_FUTURE, bound, masked=masked, learned=learned)
        self.programs.lane.note(
            f"Text {self.number}: {many(self.ends, 'dead end')} so far; of what the model would draw, at "
            f"most {allowed:.3g} is allowed."
        )

    def best(self) -> int | None:
        """The text that was drawn last, whose distribution is nearest to the model's among allowed texts."""
        return self.last


@strategy(
    name="asap",
    title="Grammar-aligned sampling (ASAp)",
    family="search",
    parameters=(
        *ASKED,
        integer("samples", 4, "Texts drawn one after another; the last is output.", low=1, high=512),
        DEAD_END,
        *SHAPING,
    ),
    together=constraints.unusable,
    view="sample_trie",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        *constraints.constraint_parts(parameters),
        Part("control", parameters["dead_end"], DEAD_ENDS[parameters["dead_end"]]),
    ],
)
def asap(lane: Lane) -> Iterator[None]:
    """Samples texts that satisfy constraints without favouring prefixes that rarely lead to a valid text.

    1. Masking forbidden tokens one by one does not sample from the model's distribution over allowed
       texts: a likely prefix that nearly always leads to a dead end is taken too often.
    2. Therefore each prefix has an upper bound `c~` on the probability that the model, without a mask, would
       finish an allowed text after it. The bound begins at 1.
    3. A token is drawn from `p(v|s) c~(s v) / c~(s)`, where p is the model's own distribution without a mask.
       The probability of tokens that the grammar forbids, or at which a check ends the text, is lost: `c~(s)
       = sum_v p(v|s) c~(s v)` over allowed tokens is computed again for all prefixes on the path.
    4. After several texts the bounds are close to the true probabilities, and draws are close to the model's
       distribution over allowed texts.

    A grammar or schema (constraint) forbids tokens before they are drawn; the first text is then the one that
    a mask alone would give. The checks (constraints) look at tokens that were drawn, so dead ends are found
    only by reaching them: where sixteen tokens after one prefix are dead ends, the text is drawn again. With
    "start over" every dead end discards the whole text instead of one token; that takes longer, and without a
    grammar each text has exactly the model's distribution among allowed ones.
    """
    programs = Programs(lane, Gate(lane))
    decoder = Asap(programs, lane.parameters["samples"], lane.parameters["dead_end"] == "start over")
    while decoder.turn():
        yield
    yield from programs.conclude(decoder.best())
