"""Constraints of a tree search, checked on every prefix or on the whole text; each returns 0 to 1.

Their product Phi is the value of a text; 0 rejects it at once. The rules of scorers.py are used unchanged.
The lane's callback checks syntax, since programming languages are described outside this package.
"""

from collections.abc import Callable
from dataclasses import dataclass

from decoders.lane import Lane
from decoders.parameters import free_text
from decoders.search.stepwise import scorers
from decoders.search.stepwise.scorers import RULES, Text
from decoders.strategy import Part


def well_formed(text: Text, parameters: dict) -> float:
    """1 for what the prompt's language allows, or if it has none; else 0."""
    return float(text.callbacks.allowed(text.prompt, text.written, text.whole) is not False)


def no_comments(text: Text, parameters: dict) -> float:
    """0 as soon as a comment begins."""
    return float("#" not in text.written and "//" not in text.written)


@dataclass(frozen=True)
class Constraint:
    """`early`: checked on every prefix as well, else on whole texts only."""

    value: Callable[[Text, dict], float]
    early: bool
    says: str


CONSTRAINTS = {
    "syntax": Constraint(well_formed, True, "A text that is not in the prompt's language is ended."),
    "no comments": Constraint(no_comments, True, "A comment ends the text."),
    "json": Constraint(RULES["json"][0], True, "A text that cannot become JSON is ended."),
    "arithmetic": Constraint(RULES["arithmetic"][0], True, "The share of equations that are true."),
    "keyword": Constraint(
        RULES["keyword"][0], False, "The share of the keywords that occur in the complete text."
    ),
    "tests": Constraint(
        RULES["tests"][0], False, "The share of the prompt's examples that the program passes."
    ),
}
ASKED = (
    free_text("constraints", "", "Any of " + ", ".join(CONSTRAINTS) + "; empty: none."),
    free_text("keywords", "", "For keyword: words that should occur, such as dog, ball."),
)


def constraint_names(parameters: dict) -> list[str]:
    """The constraints that were typed."""
    return list(dict.fromkeys(n.strip() for n in parameters["constraints"].split(",") if n.strip()))


def unusable(parameters: dict) -> str | None:
    """The message to show if there is no such constraint, or it lacks what it needs."""
    for name in constraint_names(parameters):
        if name not in CONSTRAINTS:
            return f"There is no constraint {name!r}; choose any of: {', '.join(CONSTRAINTS)}."
        if name == "keyword" and not scorers.keywords(parameters):
            return "The constraint keyword needs keywords: type some, such as dog, ball."
    return None


def constraint_parts(parameters: dict) -> list[Part]:
    """The constraints as parts of a strategy."""
    return [Part("constraint", name, CONSTRAINTS[name].says) for name in constraint_names(parameters)]


class Gate:
    """The constraints of one lane. `calls` counts the checks; `reason`: which constraint rejected a text."""

    def __init__(self, lane: Lane):
        self.lane, self.names = lane, constraint_names(lane.parameters)
        self.prompt = scorers.decoded(lane, lane.tree.path(lane.tip))
        self.deepest = lane.tree.depths[lane.tip] + lane.left
        self.known: dict[tuple[int, int], float] = {}
        self.reason: dict[tuple[int, int], str] = {}
        self.calls = 0

    def ends(self, parent: int, token: int) -> bool:
        """Whether the text ends with this token, by itself or by the limit."""
        grammar, at_limit = self.lane.constraint, self.lane.tree.depths[parent] + 1 >= self.deepest
        over = grammar is not None and grammar.over_after(parent, token)
        return token in self.lane.eos or at_limit or over

    def phi(self, parent: int, token: int) -> float:
        """The product of all constraints on the text that ends with `token` after the node `parent`."""
        key = (parent, token)
        if key not in self.known:
            self.known[key] = self._ask(key) if self.names else 1.0
        return self.known[key]

    def worth(self, node: int) -> float:
        """Phi of the text that ends with this node."""
        return self.phi(self.lane.tree.parents[node], self.lane.tree.tokens[node])

    def score(self, node: int, whole: bool) -> float:
        """Phi, as the scorer of a search; 0 for a text that could not be completed."""
        tree = self.lane.tree
        ended = self.ends(tree.parents[node], tree.tokens[node]) and node >= tree.trunk
        return self.worth(node) if ended or not whole else 0.0

    def why(self, node: int) -> str:
        """Which constraint rejected the text at a node."""
        return self.reason[self.lane.tree.parents[node], self.lane.tree.tokens[node]]

    def _ask(self, key: tuple[int, int]) -> float:
        parent, token = key
        path = self.lane.tree.path(parent, above=self.lane.tree.trunk - 1)
        written = scorers.decoded(self.lane, path, token)
        text = Text(self.prompt, written, self.ends(parent, token), self.lane.callbacks)
        product = 1.0
        for name in self.names:
            constraint = CONSTRAINTS[name]
            if constraint.early or text.whole:
                self.calls += 1
                product *= scorers.applied(constraint.value, text, self.lane.parameters, self.lane)
                if not product:
                    self.reason[key] = f"the constraint {name} gives 0"
                    break
        return product

    def reject(self, parent: int, token: int, logprob: float, slot: int = 0) -> int:
        """Records that a constraint rejected this token; returns its node."""
        node = self.lane.propose(parent, token, logprob, slot=slot)
        self.lane.verdict(node, "rejected", reason=self.reason[parent, token])
        return node
