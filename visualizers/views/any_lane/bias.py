"""Bias: how a mask changed the model's distribution at every token, beside the model's own distribution over
the texts that the constraint allows.

A fold over Propose, Commit and Table ("bias": the total variation between the two distributions; its rows are
the probabilities under both, by token, and of all others together).
"""

import math
from dataclasses import dataclass
from typing import Any

from decoders.trace.number_format import many
from decoders.trace.scores import OTHERS, ScoreName, Table
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.any_lane.constraint import RAISED

BENT = 1.5  # a token that the mask makes this many times too likely, or too unlikely, is coloured
RATHER = 0.1  # a token that lost this much probability to the mask is named above its column
LOW = 190  # least height of the picture in pixels at which it is
POOR = 4  # with a smaller effective sample size, the drawn texts say little
QUESTION = (
    "What would the model write if it had to satisfy the constraint? How far from that is the masked "
    "distribution, which looks at one token at a time?"
)


@dataclass(frozen=True)
class TokenBias:
    """A table of bias, read: both probabilities and the standard error by token, or OTHERS."""

    taken: int
    masked: dict[int, float]
    true: dict[int, float]
    errors: dict[int, float]
    parts: dict[str, float]

    @classmethod
    def of(cls, event: Table, token: int) -> "TokenBias":
        """Of the token that was taken."""
        masked, true, errors = {}, {}, {}
        for key, (under_mask, of_model, *error) in event.by_number.items():
            masked[key], true[key] = under_mask, of_model
            if error:
                errors[key] = error[0]
        return cls(token, masked, true, errors, event.parts)

    @property
    def times(self) -> float | None:
        """How many times more likely the mask makes the token than it should be; None where the drawn texts
        do not tell.
        """
        masked, true = self.masked.get(self.taken), self.true.get(self.taken)
        return masked / true if masked and true else None

    @property
    def spread(self) -> float:
        """The relative standard error of the token's true probability."""
        true = self.true.get(self.taken)
        return self.errors.get(self.taken, 0.0) / true if true else 0.0

    @property
    def estimated(self) -> bool:
        return "texts" in self.parts

    @property
    def forced(self) -> bool:
        return len(self.masked) == 1

    @property
    def order(self) -> list[int]:
        """The token that was taken, then the others by their probability under the mask; OTHERS last."""
        rest = sorted((key for key in self.masked if key != self.taken), key=lambda key: -self.masked[key])
        named = [key for key in rest if key != OTHERS]
        return [self.taken, *named, *([OTHERS] if OTHERS in self.masked else [])]


@view("bias", "Bias", reads=has(Table, name=ScoreName.BIAS))
class Bias:
    """Columns are committed tokens. Below each other: the token that the mask took most from, both
    distributions as stacked bars, how far the taken token is favoured, the token.
    """

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.column = 0
        self.log, self.variance = 0.0, 0.0  # of the text: sum of the logs of `times`, and its variance
        self.unknown = self.measured = 0  # tokens whose `times` is not known; tokens with both probabilities
        self.estimated = False

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        shares = [[0, "0"], [0.5, ".5"], [1, "1"]]
        return Columns(
            question=QUESTION,
            column=sizes.MARKED,
            left=74,
            left_narrow=62,
            gap=sizes.GAP,
            ops=[
                heading(px_narrow=70),
                scene.Panel("rather", y0=-0.05, y1=1.05, px=24, from_px=LOW),
                scene.Panel("laws", y0=1.04, y1=-0.04, share=1, ticks=shares),
                scene.Panel("times", y0=-0.05, y1=1.05, px=22),
                token_line(),
                scene.Row("row-rather", panel="rather", y0=0, y1=1, text="rather", rule=False),
                scene.Row("row-times", panel="times", y0=0, y1=1, text="too likely", rule=False),
            ],
            legend=[
                ["bar", "■", "soft", "left bar: under the mask; right bar: the model among allowed texts"],
                ["symbol:dot", "●", "ink", "share of the token that was taken, the darkest piece"],
                ["stem", "│", "ink", "± one standard error, where it is estimated"],
                ["cell:live", "▭", "live", "× the mask makes the token too likely, ÷ too unlikely"],
                ["cell:finished", "▭", "finished", "the model would rather write this; rest: all others"],
                ["cell:dashed", "▭", "soft", "the only token that was allowed"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        scores = {e.node: e for e in step.of(Table) if e.name == ScoreName.BIAS}
        _, _, commits = self.nodes.read(step)
        ops, captions = [], []
        for node in commits:
            ops += self._column(node, scores.get(node), captions)
        return [*ops, self._heading(), scene.Say(" ".join(captions))] if commits else []

    def _column(self, node: int, event: Table | None, captions: list[str]) -> list[Op]:
        self.column += 1
        x, key, text = self.column, f"c{self.column}", self.nodes.text(node)
        place = {"panel": "tokens", "x": x, "y": 0, "w": 0.96, "h": 1, "text": text, "node": node}
        bias = None if event is None else TokenBias.of(event, self.nodes.token[node])
        if bias is None or bias.taken not in bias.masked:
            words = [f"{text}: the bias was not measured here."]
            captions.append(words[0])
            return [scene.Cell(f"{key}-token", **place, state="prompt", fill="tint", hover=words)]
        self._count(bias)
        words = self._words(text, bias)
        captions.append(words[0])
        shared = {"hover": words, "node": node}
        look = {"state": "chosen", "fill": "dashed" if bias.forced else "tint"}
        ops = [*self._bars(x, key, bias, shared), scene.Cell(f"{key}-token", **place, **look, hover=words)]
        if not bias.forced:
            ops += self._verdict(x, key, bias, shared)
        return ops

    def _count(self, bias: TokenBias) -> None:
        self.measured, self.estimated = self.measured + 1, self.estimated or bias.estimated
        if bias.times is None:
            self.unknown += 1
        else:
            self.log += math.log(bias.times)
            self.variance += bias.spread**2

    def _bars(self, x: int, key: str, bias: TokenBias, shared: dict) -> list[Op]:
        """Both distributions as stacked bars, the taken token at the bottom; unnamed tokens stay white."""
        ops, taken = [], bias.true[bias.taken]
        for side, probs, at in (("m", bias.masked, x - 0.21), ("t", bias.true, x + 0.21)):
            top = 0.0
            for rank, token in enumerate(token for token in bias.order if token != OTHERS):
                low, top = top, min(1.0, top + probs[token])
                if top - low >= 0.002:
                    box = {"x": at, "w": 0.36, "y0": round(low, 4), "y1": round(top, 4), "rank": min(rank, 3)}
                    ops.append(scene.Bar(f"{key}-{side}{rank}", panel="laws", **box, **shared))
            share = min(1.0, probs[bias.taken])
            dot = {"panel": "laws", "x": at, "y": round(share, 4), "glyph": "dot", "role": "ink"}
            ops.append(scene.Symbol(f"{key}-{side}", **dot, **shared))
        if error := bias.errors.get(bias.taken):
            low, high = max(0.0, taken - error), min(1.0, taken + error)
            stem = {"panel": "laws", "x": x + 0.21, "y0": round(low, 4), "y1": round(high, 4)}
            ops.append(scene.Stem(f"{key}-error", **stem, **shared))
        return ops

    def _verdict(self, x: int, key: str, bias: TokenBias, shared: dict) -> list[Op]:
        """How far the token is favoured, and what the model would rather write."""
        times = bias.times
        bent = times is None or not 1 / BENT < times < BENT
        place = {"panel": "times", "x": x, "y": 0.5, "w": 0.94, "h": 0.9, "text": factor(times)}
        look = {"state": "live" if bent else "prompt", "fill": "tint"}
        ops = [scene.Cell(f"{key}-times", **place, **look, **shared)]
        lost = {token: bias.true[token] - bias.masked[token] for token in bias.masked}
        preferred = max(lost, key=lambda token: lost[token])
        if lost[preferred] >= RATHER and preferred != bias.taken:
            word = "rest" if preferred == OTHERS else self.nodes.word(preferred)
            place = {"panel": "rather", "x": x, "y": 0.5, "w": 0.94, "h": 0.9, "text": word, "priority": 3}
            line = (
                f"among allowed texts the model would write {self._word(preferred)} with "
                f"{share(bias.true[preferred])}; the mask leaves it {share(bias.masked[preferred])}"
            )
            look = {"state": "finished", "fill": "tint", "weight": round(bias.true[preferred], 4)}
            ops.append(scene.Cell(f"{key}-rather", **place, **look, hover=[line], node=shared["node"]))
        return ops

    def _words(self, text: str, bias: TokenBias) -> list[str]:
        """Two lines: what the mask made of the token that was taken, and of the others."""
        if bias.forced:
            return [f"{text}: the only allowed token, so the mask distorts nothing."]
        first = (
            f"{text}: {share(bias.masked[bias.taken])} under the mask, {true_share(bias, bias.taken)} for "
            f"the model among allowed texts: {verdict(bias)}."
        )
        others = [f"{self._word(key)} {moved(bias, key)}" for key in bias.order if key != bias.taken]
        if bias.estimated:
            texts, worth = int(bias.parts["texts"]), bias.parts.get("worth", 0.0)
            few = f", effectively only {worth:.1f}" if 0 < worth < POOR else ""
            others.append(f"from {texts} drawn texts per token{few}")
        return [first, " · ".join(others)]

    def _word(self, key: int) -> str:
        return "all others" if key == OTHERS else self.nodes.word(key)

    def _heading(self) -> Op:
        """What the mask has made of the whole text so far."""
        if not self.measured:
            words = "the bias of the mask was not measured"
            return scene.Change("heading", lead="", heading=words, short=words)
        times = math.exp(max(-700.0, min(700.0, self.log)))
        bent = "as likely as it should be" if close(times) else f"{in_words(times)} than it should be"
        how = "exact"
        if self.estimated:
            spread = number(math.exp(min(9.0, math.sqrt(self.variance))))
            how = "estimated" + (f", within a factor of {spread}" if spread != "1.0" else "")
        left = f"; {many(self.unknown, 'token')} of which too little is known" if self.unknown else ""
        return scene.Change(
            "heading", lead=f"the mask makes this text {bent}", heading=f" ({how}{left}).", short=f" ({how})."
        )


def close(times: float) -> bool:
    """Whether a token is about as likely as it should be."""
    return 0.95 < times < 1.05


def number(times: float) -> str:
    """A factor of at least 1: `4.1`, `12`, `12,000`, `1.5 × 10⁸`."""
    if times < 10:
        return f"{times:.1f}"
    if times < 1e6:
        return f"{times:.0f}" if times < 1000 else f"{float(f'{times:.2g}'):,.0f}"
    exponent = math.floor(math.log10(times))
    return f"{times / 10**exponent:.1f} × 10" + str(exponent).translate(RAISED)


def factor(times: float | None) -> str:
    """How a factor stands in a column: `4.1×`, `÷3.0`, `?` if unknown."""
    if times is None:
        return "?"
    if close(times):
        return "1×"
    return f"{short(times)}×" if times > 1 else f"÷{short(1 / times)}"


def short(times: float) -> str:
    """A factor of at least 1 that fits into a column."""
    return number(times) if times < 1000 else "10" + str(round(math.log10(times))).translate(RAISED)


def in_words(times: float) -> str:
    """A factor in words."""
    return f"{number(times)} times more likely" if times > 1 else f"{number(1 / times)} times less likely"


def verdict(bias: TokenBias) -> str:
    """What the mask did to the token that was taken."""
    if bias.times is None:
        return "no drawn text says how likely it should be" if bias.estimated else "it should never be"
    return "as likely as it should be" if close(bias.times) else f"{in_words(bias.times)} than it should be"


def moved(bias: TokenBias, key: Any) -> str:
    """`.14 → .44 ± .20`: a probability under the mask, and the true one."""
    return f"{share(bias.masked[key])} → {true_share(bias, key)}"


def true_share(bias: TokenBias, key: Any) -> str:
    """`.44 ± .20`: the true probability, with its standard error where it is estimated."""
    error = f" ± {share(bias.errors.get(key, 0.0))}" if bias.estimated else ""
    return share(bias.true[key]) + error


def share(p: float) -> str:
    """A probability; below .0001 only as `<.0001`."""
    return "0" if p <= 0 else "<.0001" if p < 1e-4 else probability(p)
