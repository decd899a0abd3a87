"""Traversal verification: leaves first; a path is accepted as a whole, and a leaf that fails is removed.

Weng et al. (2025), Traversal Verification for Speculative Tree Decoding, algorithm 2. On a chain it is block
verification; on a tree of depth one it accepts as often as recursive rejection.
"""

from decoders.explain import verifiers
from decoders.logits.distributions import without
from decoders.speculative.interfaces import (
    SAMPLED,
    WITHOUT_REPLACEMENT,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.trace.reasons import Code, Reason
from decoders.trace.scores import ScoreName


class Standing:
    """What is left of a drafted tree: R and D [V] of each node, its probability a, and its children."""

    def __init__(self, inputs: VerifierInput):
        self.root, self.tokens = inputs.draft.root, inputs.tokens
        self.left = dict(inputs.p)  # R: node -> what the target still wants there
        self.drafted = dict(inputs.draft.q)  # D: node -> what is left of the draft's distribution
        self.below = {n: list(c) for n, c in inputs.draft.children.items()}
        self.parent = {c: n for n, below in self.below.items() for c in below}
        self.probability = {self.root: 1.0}
        self.weigh(self.root)

    def compared(self, node: int) -> tuple[float, float]:
        """R and D of a node's token, at its parent."""
        parent, token = self.parent[node], self.tokens[node]
        return float(self.left[parent][token]), float(self.drafted[parent][token])

    def weigh(self, node: int) -> None:
        """a(child) = min(a(node) R(token) / D(token), 1) for all descendants of `node`."""
        for child in self.below.get(node, []):
            p, q = self.compared(child)
            self.probability[child] = min(self.probability[node] * p / q, 1.0) if p > 0 else 0.0
            self.weigh(child)

    def leaf(self) -> int:
        """The first leaf, always following the first child that is left."""
        node = self.root
        while self.below.get(node):
            node = self.below[node][0]
        return node

    def remove(self, leaf: int) -> None:
        """Removes a rejected leaf: at its parent, R becomes norm(max(a R - D, 0)) and D loses its token."""
        node = self.parent[leaf]
        delta = (self.probability[node] * self.left[node] - self.drafted[node]).clamp(min=0.0)
        mass = float(delta.sum())
        missing = 1.0 - self.probability[node]
        self.probability[node] = mass / (mass + missing) if mass + missing > 0 else 0.0
        if node == self.root:
            self.probability[node] = 1.0
        if mass > 0:
            self.left[node] = delta / mass
        self.drafted[node] = without(self.drafted[node], self.tokens[leaf])
        self.below[node].remove(leaf)
        self.weigh(node)

    def path(self, node: int) -> list[int]:
        """From below the root down to `node`."""
        path = []
        while node != self.root:
            path.append(node)
            node = self.parent[node]
        return path[::-1]


def verify(inputs: VerifierInput) -> Verification:
    """From the leaves up: a leaf passes with its probability a, and with it the whole path; one that fails is
    removed. The target's own token comes from what is left at the end of the accepted path.
    """
    standing, tests = Standing(inputs), []
    while (leaf := standing.leaf()) != standing.root:
        p, q = standing.compared(leaf)
        probability, parent = standing.probability[leaf], standing.parent[leaf]
        passed, u = inputs.chooser.bernoulli(probability, ("accept", inputs.position, len(tests)))
        watched = (ScoreName.PATH_PROBABILITY, probability, 1.0)
        reason = Reason(Code.TRAVERSAL, {"probability": probability, "passed": bool(passed)})
        tests.append(TokenTest(leaf, bool(passed), p, q, u, (reason,), None, watched, probability))
        if passed:
            break
        standing.remove(leaf)
        tests[-1].left = standing.left[parent]
    path = standing.path(leaf)
    why = (Reason(Code.ON_ACCEPTED_PATH),)
    tests += [TokenTest(node, True, *standing.compared(node), None, why) for node in path[:-1]]
    verification = Verification(tests, path)
    if leaf not in inputs.p:
        return verification  # an end-of-text token
    probs, depth = standing.left[leaf], inputs.position + len(path) + 1
    code = Code.RESIDUAL_ON_PATH if inputs.children(leaf) else Code.ALL_ACCEPTED
    return verification.end(inputs, probs, depth, code)


TRAVERSAL = Verifier(verify, frozenset({SAMPLED, WITHOUT_REPLACEMENT}), *verifiers.TRAVERSAL)
