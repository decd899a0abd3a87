"""How far a mask bends the model's distribution at each token of a lane: recorded for the view Bias.

Under a mask a token v follows s with p(v|s) / Z(s), Z being the mass of all allowed tokens. The model itself,
among texts that the constraint allows, writes v with p(v|s) c(sv) / c(s), where c is the probability that the
whole text that the model writes after a prefix is allowed (Park et al. 2024, Grammar-Aligned Decoding). A
text that reaches the lane's limit counts as allowed as far as it goes. p is the model at the lane's
temperature, before other processors.

c is exact where all prefixes of allowed texts can be listed. Elsewhere it is the mean weight of masked texts,
which is right on average (Lipkin et al. 2025, AWRS, whose estimates of Z are not needed where there are
masks). The same number of texts is drawn after each likely token, and after all other tokens together. Texts
that begin as the output continues are used again at its next token, since from there on they are masked texts
like any others.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders import model_defaults, stopping
from decoders.chooser import SeparateStreams
from decoders.constraints.constraint import States
from decoders.constraints.settings import MEASURE, NONE, TEXTS
from decoders.engine.capabilities import Capability
from decoders.engine.kv_cache import OutOfSlots
from decoders.engine.tree import Tree
from decoders.logits.distributions import probabilities
from decoders.observer import Observer
from decoders.trace.events import Forward
from decoders.trace.scores import OTHERS, ScoreName, Table

# Levels of the tables of bias, whose totals are the total variation between the two distributions: how c was
# found.
EXACT, ESTIMATED = "exact", "estimated"
LISTED = 512  # prefixes of allowed texts that are read at most to know c exactly
NAMED = 4  # most likely allowed tokens whose c is found one by one, besides the token that was taken
LIKELY = 0.01  # under the mask; where c is estimated, a token that is less likely is one of the others
ROWS = 128  # prefixes that one forward reads


@dataclass(frozen=True)
class Future:
    """c after a token: its mean and standard error (0 if exact), and the effective sample size of the drawn
    texts, `worth` (0 if none was drawn).
    """

    mean: float
    error: float = 0.0
    worth: float = 0.0

    @classmethod
    def of(cls, weights: list[float]) -> "Future":
        """From the weights of at least two masked texts."""
        drawn = torch.tensor(weights, dtype=torch.float64)
        squares = float(drawn.square().sum())
        worth = float(drawn.sum()) ** 2 / squares if squares else 0.0
        return cls(float(drawn.mean()), float(drawn.std()) / len(weights) ** 0.5, worth)


@dataclass
class Distributions:
    """Both distributions after a prefix. Keys are tokens, or OTHERS. `kept` is Z, `allowed` is c of the
    prefix itself; errors are standard errors, to first order.
    """

    masked: dict[Any, float]
    true: dict[Any, float]
    errors: dict[Any, float]
    kept: float
    allowed: Future
    futures: dict[Any, Future] = field(default_factory=dict)

    @classmethod
    def of(cls, mass: dict[Any, float], futures: dict[Any, Future]) -> "Distributions":
        """mass: the model's own probability of each. Raises ZeroDivisionError if nothing is allowed."""
        kept = sum(mass.values())
        weights = {key: p * futures[key].mean for key, p in mass.items()}
        total = sum(weights.values())
        spreads = {key: p * futures[key].error for key, p in mass.items()}
        error = sum(spread**2 for spread in spreads.values()) ** 0.5
        true = {key: weight / total for key, weight in weights.items()}
        errors = {
            key: max(0.0, spreads[key] ** 2 * (1 - 2 * t) + (t * error) ** 2) ** 0.5 / total
            for key, t in true.items()
        }
        masked = {key: p / kept for key, p in mass.items()}
        return cls(masked, true, errors, kept, Future(total, error), futures)

    @property
    def distance(self) -> float:
        """Total variation between them, over the named tokens and the others together."""
        return sum(abs(self.masked[key] - self.true[key]) for key in self.masked) / 2

    def table(self, node: int, token: int, texts: int) -> Table:
        """The event about both distributions, at the node of the token that was taken. texts: how many were
        drawn after each named token; 0 if c is exact.
        """
        parts = {"kept": self.kept, "allowed": self.allowed.mean, "after": self.futures[token].mean}
        rows = []
        for key in self.masked:
            error = [self.errors[key]] if texts else []
            rows.append([float(key), self.masked[key], self.true[key], *error])
        if texts:
            parts |= {"texts": float(texts), "worth": self.futures[token].worth}
            parts |= {"allowed error": self.allowed.error, "after error": self.futures[token].error}
        level = ESTIMATED if texts else EXACT
        return Table(node, ScoreName.BIAS, self.distance, parts, level, unit="token", rows=rows)


class BiasRecord(Observer):
    """Records both distributions at each token that a lane commits under a constraint. Prefixes have their
    own tree, which the target reads with its own scorer, so the counts of the lane's work do not change.
    """

    def __init__(self, lane: Any):
        self.lane, self.full, self.scorer = lane, False, None

    def begin(self) -> None:
        """Sets up the record at the first token, since a strategy may set the lane's constraint itself."""
        lane = self.lane
        self.texts, self.tree = lane.parameters[TEXTS], Tree(lane.tree.tokens[: lane.tree.trunk])
        self.states = States(lane.constraint.constraint, self.tree, len(lane.trace.prompt), lane.eos)
        self.scorer = lane.models["target"].engine.attach(self.tree)
        self.deepest = self.tree.trunk - 1 + lane.budget
        drawn = model_defaults.draws(lane.parameters)
        self.temperature = float(lane.shaping.get("temperature") or 1.0) if drawn else 1.0
        self.chooser = SeparateStreams(lane.chooser, before=(ScoreName.BIAS,))
        self.at = self.tree.trunk - 1  # where the output stands
        self.below: dict[tuple[int, int], int] = {}  # (node, token) -> node
        self.rows: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # node -> allowed tokens and p [A]
        self.ends: list[int] = []  # of masked texts that were drawn and begin as the output stands
        self.exact: dict[int, float] = {}  # node -> c, once all allowed texts below it are listed

    def committed(self, lane: Any, nodes: list[int]) -> None:
        if self.full or lane.constraint is None:
            return
        try:
            if self.scorer is None:
                self.begin()
            for node in nodes:
                token = lane.tree.tokens[node]
                if self.states.mask(self.at) is not None:
                    self.measure(node, token)
                self.move(token)
        except OutOfSlots as full:
            self.full = True
            lane.note(f"The bias of the mask is measured no further. {full}")

    def measure(self, node: int, token: int) -> None:
        """Records both distributions at the end of the output; nothing if the mask forbids the token, or if
        all drawn texts have weight 0.
        """
        if self.at not in self.exact:
            self.list_all()
        tokens, p = self.row_of([self.at])[self.at]
        place = {t: n for n, t in enumerate(tokens.tolist())}
        if token not in place or not float(p[place[token]]):
            return
        if int((p > 0).sum()) == 1:  # whatever c is, both are 1
            parts, rows = {"kept": float(p.sum())}, [[float(token), 1.0, 1.0]]
            self.lane.record(Table(node, ScoreName.BIAS, 0.0, parts, EXACT, unit="token", rows=rows))
            return
        known = self.at in self.exact
        min_mass = 0.0 if known else LIKELY * float(p.sum())
        named = [int(tokens[n]) for n in p.argsort(descending=True, stable=True)[:NAMED] if p[n] > min_mass]
        if known:  # the model's own top-1 token may be one that the mask hardly leaves
            c = torch.tensor([self.known(self.at, t) for t in place], dtype=p.dtype)
            named.append(int(tokens[(p * c).argmax()]))
        else:  # nothing needs to be drawn after the end of a text
            named += [t for t in self.lane.eos if t in place and float(p[place[t]])]
        named = list(dict.fromkeys([*named, token]))
        mass = {t: float(p[place[t]]) for t in named}
        rest = p.clone()
        rest[[place[t] for t in named]] = 0.0
        if float(rest.sum()):
            mass[OTHERS] = float(rest.sum())
        futures = (self.exact_futures if known else self.drawn_futures)(mass, tokens, rest)
        if any(futures[key].mean for key in mass):
            self.lane.record(Distributions.of(mass, futures).table(node, token, 0 if known else self.texts))

    # ---- c, exactly ---------------------------------------------------------------------------------------

    def list_all(self) -> None:
        """Finds c of all prefixes below the output, if they are few: c(s) = sum_v p(v|s) c(sv)."""
        beginnings = self.beginnings()
        if beginnings is None:
            return
        rows = self.row_of(beginnings)
        for node in reversed(beginnings):  # children first
            tokens, p = rows[node]
            self.exact[node] = sum(
                q * self.known(node, t) for t, q in zip(tokens.tolist(), p.tolist(), strict=True)
            )

    def known(self, node: int, token: int) -> float:
        """c after a token, if it was found exactly; 1 after the last token of a text."""
        return self.exact.get(self.below.get((node, token), -1), 1.0)

    def beginnings(self) -> list[int] | None:
        """The incomplete prefixes of all allowed texts below the output, parents first; None if there are too
        many. Asks only the constraint.
        """
        listed = [self.at]
        for node in listed:
            if self.tree.depths[node] + 1 >= self.deepest:
                continue
            tokens = [t for t in self.states.mask(node).nonzero()[:, 0].tolist() if t not in self.lane.eos]
            if len(listed) + len(tokens) > LISTED:
                return None
            children = [self.child(node, token) for token in tokens]
            listed += [child for child in children if not self.is_whole(child)]
            self.lane.check_limits()
        return listed

    def exact_futures(
        self, mass: dict[Any, float], tokens: torch.Tensor, rest: torch.Tensor
    ) -> dict[Any, Future]:
        futures = {t: Future(self.known(self.at, t)) for t in mass if t != OTHERS}
        if OTHERS in mass:
            c = [
                self.known(self.at, t) if q else 0.0
                for t, q in zip(tokens.tolist(), rest.tolist(), strict=True)
            ]
            weighed = float(rest @ torch.tensor(c, dtype=rest.dtype))
            futures[OTHERS] = Future(weighed / mass[OTHERS])
        return futures

    # ---- c, estimated -------------------------------------------------------------------------------------

    def drawn_futures(
        self, mass: dict[Any, float], tokens: torch.Tensor, rest: torch.Tensor
    ) -> dict[Any, Future]:
        """c after each token, estimated from the weights of masked texts after it; all texts grow in the same
        forwards.
        """
        texts: dict[Any, list[tuple[int, int]]] = {key: [] for key in mass}  # (prefix, end) of each
        for end in self.ends:
            first = self.tree.path(end)[self.tree.depths[self.at] + 1]
            token = self.tree.tokens[first]
            texts[token if token in mass else OTHERS].append((first, end))
        whole, starts = {}, []
        depth = self.tree.depths[self.at]
        for key, drawn_texts in texts.items():
            if key == OTHERS:
                numbers = range(len(drawn_texts), self.texts)
                draws = [self.chooser.categorical(rest, (depth, "others", n)).value for n in numbers]
                starts += [(key, self.child(self.at, int(tokens[draw]))) for draw in draws]
            elif self.is_whole(child := self.child(self.at, key)):
                whole[key] = Future(1.0)
            else:
                starts += [(key, child)] * (self.texts - len(drawn_texts))
        for (key, start), end in zip(starts, self.draw([start for _, start in starts]), strict=True):
            texts[key].append((start, end))
            self.ends.append(end)
        drawn = {key: drawn_texts[: self.texts] for key, drawn_texts in texts.items() if key not in whole}
        return whole | {key: Future.of([self.weight(*text) for text in some]) for key, some in drawn.items()}

    def draw(self, starts: list[int]) -> list[int]:
        """Draws a masked text below each of these nodes and returns its last node: there it is whole, or all
        allowed tokens have probability 0.
        """
        at, depth = list(starts), self.tree.depths[self.at]
        growing = list(range(len(at)))
        while growing := [n for n in growing if not self.is_whole(at[n])]:
            rows = self.row_of(list(dict.fromkeys(at[n] for n in growing)))
            growing = [n for n in growing if float(rows[at[n]][1].sum())]
            for n in growing:
                tokens, p = rows[at[n]]
                draw = self.chooser.categorical(p, (depth, n, self.tree.depths[at[n]])).value
                at[n] = self.child(at[n], int(tokens[draw]))
        return at

    def weight(self, start: int, end: int) -> float:
        """The product of Z along a drawn text, after its prefix; 0 if the text is not whole."""
        if not self.is_whole(end):
            return 0.0
        along = self.tree.path(end)[self.tree.depths[start] : -1]
        return math.prod(float(self.rows[node][1].sum()) for node in along)

    # ---- prefixes ---------------------------------------------------------------------------------------

    def child(self, node: int, token: int) -> int:
        """The node of a token below a node."""
        if (node, token) not in self.below:
            self.below[node, token] = self.tree.add(node, token)
        return self.below[node, token]

    def is_whole(self, node: int) -> bool:
        """Whether a text is over with this node: it ends, or has reached the lane's limit."""
        own = self.tree.depths[node] >= self.deepest or self.tree.tokens[node] in self.lane.eos
        stops, bytes_of = self.lane.stop_strings, self.lane.models["target"].bytes_of
        return own or self.states.over(node) or stopping.stopped(self.tree, bytes_of, stops, node)

    def row_of(self, nodes: list[int]) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
        """The allowed tokens after each node and their probabilities [A], which need not sum to 1."""
        missing = [node for node in nodes if node not in self.rows]
        for first in range(0, len(missing), ROWS):
            self.read(missing[first : first + ROWS])
            self.lane.check_limits()
        return {node: self.rows[node] for node in nodes}

    def read(self, nodes: list[int]) -> None:
        """One lens forward."""
        start = self.lane.clock()
        logits = self.scorer.score(nodes)  # [N, V]
        work, seconds = self.scorer.work, self.lane.clock() - start
        p = probabilities(logits / self.temperature).cpu()
        for node, row in zip(nodes, p, strict=True):
            tokens = self.states.mask(node)[: len(row)].nonzero()[:, 0]
            self.rows[node] = (tokens, row[tokens])
        self.scorer.forget(nodes)
        if asked := work.tokens + work.shared:
            counts = {"tokens": asked, "rows": work.rows, "shared": work.shared}
            self.lane.record(Forward("target", "lens", start=start, seconds=seconds, **counts))

    def move(self, token: int) -> None:
        """The output continues with a token: texts and rows that do not begin with it are dropped."""
        self.at = self.child(self.at, token)
        depth = self.tree.depths[self.at]

        def stays(node: int) -> bool:
            while self.tree.depths[node] > depth:
                node = self.tree.parents[node]
            return node == self.at

        self.ends = [node for node in self.ends if node != self.at and stays(node)]
        gone = [node for node in self.rows if not stays(node)]
        path = set(self.tree.path(self.at))
        self.scorer.release([node for node in gone if node not in path])
        for node in gone:
            del self.rows[node]

    def close(self) -> None:
        """Gives the slots back."""
        if self.scorer is not None:
            self.scorer.close()


def bias_problem(parameters: dict[str, Any], models: dict[str, Any]) -> str | None:
    """Why the bias cannot be measured with these models, as a sentence; None if it can be or is off."""
    target = models["target"]
    if not parameters.get(MEASURE) or parameters.get("constraint", NONE) == NONE:
        return None
    if target.model_kind != "causal" or not target.engine.gives(Capability.FULL_DISTRIBUTION):
        return (
            f"{MEASURE} reads the whole distribution of a causal target at every token, which "
            f"{target.name!r} does not give; switch it off, or choose another target."
        )
    return None
