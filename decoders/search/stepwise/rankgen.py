"""RankGen: samples several blocks and continues with those whose text fits the prompt best.

Krishna et al. (2022), RankGen: Improving Text Generation with Large Ranking Models, section 3; the ranker is
heads/scorers/ranker.py.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch

from decoders.heads.scorers.ranker import Ranker
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT
from decoders.sampling.sampling_parameters import PROCESSORS, SHAPING
from decoders.sampling.side_by_side import extended
from decoders.search.stepwise import scorers
from decoders.search.stepwise.step_boundaries import shared
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

RANKER, LIKELIHOOD = "ranker", "likelihood"
SUMMARIES = {
    RANKER: "A trained ranker says how well the text fits the prompt: a dot product.",
    LIKELIHOOD: "The mean log-probability of the text.",
}
NO_RANKER = (
    "No ranker comes with the project for the target {!r}: texts are ranked by their likelihood. Choose a "
    "scorer that reads the text to rank them otherwise."
)


@dataclass(eq=False)
class Text:
    """A prefix of a text: its newest node; sum of log p and length since the prompt; its newest block."""

    number: int
    node: int
    total: float = 0.0
    length: int = 0
    ended: bool = False
    score: float = -math.inf
    aside: dict[str, float] = field(default_factory=dict)  # where its vector lies, if a ranker made one
    block: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Plane:
    """A second direction beside the prompt's vector, for pictures: unit vector [w], origin [w]."""

    across: torch.Tensor
    origin: torch.Tensor

    def asides(self, vectors: torch.Tensor) -> torch.Tensor:
        """How far each of the vectors [N, w] lies along it."""
        return (vectors - self.origin) @ self.across


def plane(prompt: torch.Tensor, vectors: torch.Tensor) -> Plane:
    """The direction orthogonal to the prompt's vector [w] in which these vectors [N, w] vary most: the first
    principal component of what is left of them without the prompt's direction.
    """
    along, origin = prompt / prompt.norm().clamp_min(1e-9), vectors.mean(0)
    apart = vectors - origin
    apart = apart - (apart @ along)[:, None] * along
    across = torch.linalg.svd(apart, full_matrices=False).Vh[0]
    return Plane(across * (1 if across[across.abs().argmax()] > 0 else -1), origin)


class Fit:
    """How well texts fit the lane's prompt, by the ranker. Each is read on its own, without the prompt: its
    tokens are in the tree a second time, below a root of their own.
    """

    def __init__(self, lane: Lane, ranker: Ranker):
        self.lane, self.ranker, self.root = lane, ranker, lane.tip
        self.copies: dict[int, int] = {lane.tip: -1}  # node -> where it stands without the prompt
        self.plane: Plane | None = None
        self.prompt = ranker.vector(self._states(lane.tree.path(lane.tip)), prefix=True)

    def scores(self, texts: list[Text]) -> list[float]:
        """The dot product of the prompt's vector with that of each text; one forward reads what is new. Sets
        `aside` of each text.
        """
        tree, paths = self.lane.tree, []
        for text in texts:
            whole = tree.path(text.node, above=self.root)
            paths.append([n for n in whole if tree.tokens[n] not in self.lane.eos] or whole)
        for node in (n for path in paths for n in path if n not in self.copies):
            self.copies[node] = tree.add(self.copies[tree.parents[node]], tree.tokens[node])
        copied = [[self.copies[n] for n in path] for path in paths]
        self._states(sorted({n for path in copied for n in path}))
        hidden = self.lane.scorers["target"].hidden
        read = [self.ranker.vector(torch.stack([hidden(n) for n in p]), prefix=False) for p in copied]
        vectors = torch.stack(read)  # [N, w]
        self.plane = self.plane or plane(self.prompt, vectors)
        for text, aside in zip(texts, self.plane.asides(vectors).tolist(), strict=True):
            text.aside = {"aside": aside}
        return (vectors @ self.prompt).tolist()

    def _states(self, nodes: list[int]) -> torch.Tensor:
        """The target's last states [N, d] at these nodes."""
        self.lane.score(nodes, "value", hidden=True)
        return torch.stack([self.lane.scorers["target"].hidden(n) for n in nodes])

    def drop(self, nodes: list[int]) -> None:
        """Frees the slots of the copies of these nodes, which are dead."""
        self.lane.drop([self.copies.pop(n) for n in nodes if n in self.copies])


def scoring(lane: Lane, fit: Fit | None) -> Callable[[list[Text]], list[float]]:
    """Scores texts as the parameters say; by likelihood if they name the ranker and the target has none."""
    if fit is not None:
        return fit.scores
    if lane.parameters["scorer"] in SUMMARIES:
        return lambda texts: [text.total / text.length for text in texts]
    scorer = scorers.Scorer(lane)
    return lambda texts: [scorer.score(text.node, whole=text.ended) for text in texts]


def scorer_part(parameters: dict) -> Part:
    """The scorer as a part of a strategy."""
    name = parameters["scorer"]
    return Part("value", name, SUMMARIES[name]) if name in SUMMARIES else scorers.part(parameters)


@strategy(
    name="rankgen",
    title="RankGen",
    family="search",
    parameters=(
        replace(
            scorers.SCORER[0],
            default=RANKER,
            choices=(*SUMMARIES, *scorers.SCORER[0].choices),
            help="What ranks texts: the trained ranker, the model's likelihood, a rule, or the reward head.",
        ),
        *scorers.SCORER[1:],
        integer("num_samples", 10, "Blocks sampled after each beam.", low=1, high=64),
        integer("num_beams", 2, "Texts that continue after each round.", low=1, high=16),
        integer("block_length", 20, "Tokens of a block; 0: to the end, which is best of n.", low=0, high=512),
        *(replace(p, default=0.9) if p.name == "top_p" else p for p in SHAPING),
    ),
    together=scorers.unusable,
    suits=scorers.unscored,
    papers=("rankgen",),
    view="segments",
    badge=lambda parameters: "sampled" if parameters["temperature"] else "deterministic",
    parts=lambda parameters: [
        PROCESSORS,
        Part(
            "expansion",
            "sampled blocks",
            "Several continuations of each beam, each block_length tokens long.",
        ),
        scorer_part(parameters),
        Part("frontier", "beams", "The num_beams best texts, finished ones included."),
    ],
)
def rankgen(lane: Lane) -> Iterator[None]:
    """Samples several blocks after each beam and continues those that make the text fit the prompt best.

    1. After each of num_beams texts num_samples blocks of block_length tokens are sampled; in the first
       round all of them after the prompt. A finished text competes unchanged.
    2. Each text with its new block is scored as one continuation of the prompt: `p(prompt) · s(text)`, the
       dot product of two vectors that are not normalised.
    3. The num_beams best continue, the others are pruned. The prefix that all of them share is output.

    The paper's ranker is an encoder of its own; llama-tiny-ranker, which comes with the project, is two small
    networks that read the frozen target's states of prompt and text, each computed separately. It was trained
    to tell the true continuation of a story from other parts of it and from texts that the target sampled.

    With one beam and a block_length of 0 this is best of n, or reranking: num_samples whole texts are drawn,
    and the scorer, which may be the reward head, chooses one. One beam with one sample is nucleus sampling.
    At temperature 0 there is one sample, the text of greedy decoding. The released code keeps counting tokens
    from one prompt to the next; here every lane counts its own.
    """
    search = Search(lane)
    while search.beams and not all(text.ended for text in search.beams):
        search.advance()
        yield
    search.conclude()


class Search:
    """The beams of one lane, and the operations of one round."""

    def __init__(self, lane: Lane):
        self.lane, self.given = lane, lane.parameters
        ranker = lane.models["target"].heads.get("ranker") if self.given["scorer"] == RANKER else None
        if ranker is None and self.given["scorer"] == RANKER:
            lane.note(NO_RANKER.format(lane.models["target"].name))
        self.longest = lane.tree.depths[lane.tip] + lane.left
        self.fit = None if ranker is None else Fit(lane, ranker)
        self.score = scoring(lane, self.fit)
        self.beams = [Text(0, lane.tip)]
        self.alive: dict[int, float] = {}  # node neither committed nor dead -> the target's log-probability
        self.rounds = 0

    def advance(self) -> None:
        """One round: sample, score, keep the best."""
        self.rounds += 1
        fresh = self._sample()
        for text, score in zip(fresh, self.score(fresh) if fresh else [], strict=True):
            text.score = score
        rivals = sorted([*(b for b in self.beams if b.ended), *fresh], key=lambda t: (-t.score, t.number))
        for rank, text in enumerate(rivals, 1):
            if text in fresh:
                self.lane.record_rank(text.node, ScoreName.REWARD, text.score, rank, **text.aside)
                if text.ended:
                    self.lane.verdict(
                        text.node, "finished", reason=f"a complete text, score {text.score:.2f}"
                    )
        width = self.given["num_beams"]
        self.beams, pruned = rivals[:width], rivals[width:]
        if rivals:
            self.lane.note(
                f"Round {self.rounds}: {many(len(fresh), 'block')}, the best score is {rivals[0].score:.2f}."
            )
        self._settle(pruned)

    # ---- sampling ----------------------------------------------------------------------------
    def _sample(self) -> list[Text]:
        """Texts with a new block each, written side by side; without those that could not be continued."""
        drawn = self.given["temperature"] > 0.0
        count = self.given["num_samples"] if drawn else 1
        if drawn and self.rounds == 1:
            count *= self.given["num_beams"]  # all beams are the same empty text
        texts = [
            Text(slot * count + i, beam.node, beam.total, beam.length)
            for slot, beam in enumerate(self.beams)
            if not beam.ended
            for i in range(count)
        ]
        running = texts
        while running:
            self._write(running)
            full = self.given["block_length"] or self.longest
            running = [text for text in running if not text.ended and len(text.block) < full]
        return [text for text in texts if text.length]

    def _write(self, running: list[Text]) -> None:
        """Appends a token to each text, all in one forward; a text that allows no token has ended."""
        tree = self.lane.tree
        for text, logprob in extended(self.lane, running):
            if logprob is None:
                text.ended = True
                continue
            text.block.append(text.node)
            text.total, text.length = text.total + logprob, text.length + 1
            text.ended = tree.tokens[text.node] in self.lane.eos or tree.depths[text.node] >= self.longest
            self.alive[text.node] = logprob

    # ---- what becomes of them ----------------------------------------------------------------
    def _settle(self, pruned: list[Text]) -> None:
        """Drops what was pruned, and commits what the beams share."""
        lane, paths = self.lane, [self.lane.tree.path(b.node, above=self.lane.tip) for b in self.beams]
        needed = {node for path in paths for node in path}
        for text in pruned:
            lost = [n for n in text.block if n not in needed]
            self._prune(lost, f"score {text.score:.2f}, not among the best")
        self._prune([n for n in self.alive if n not in needed], "no block after it was kept")
        if together := shared(paths):
            lane.commit(together, [self.alive.pop(n) for n in together])

    def _prune(self, nodes: list[int], reason: str) -> None:
        """Prunes nodes that lead nowhere, and frees their slots."""
        dead = [n for n in nodes if n in self.alive]
        for node in dead:
            self.lane.verdict(node, "pruned", reason=reason)
            del self.alive[node]
        self.lane.drop(dead)
        if self.fit is not None:
            self.fit.drop(dead)

    def conclude(self) -> None:
        """Outputs the best text."""
        others, self.beams = self.beams[1:], self.beams[:1]
        self._settle(others)
        if self.lane.more:
            self.lane.ended_by = NOTHING_LEFT
