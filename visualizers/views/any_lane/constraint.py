"""Constraint: what a constraint removed at every token, how much probability that was, and what was forced.

A fold over Distribution (target and forbidden), Propose and Commit. One column per committed token, drawn
from what was recorded at the token's parent.
"""

import math
from typing import Any

from decoders.trace.events import Commit, Distribution
from decoders.trace.number_format import many
from visualizers import scene
from visualizers.scene.layout import Columns, Layout, heading, token_line
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NAMED = 2  # forbidden tokens that are named above a column ...
LOW = 190  # least height of the picture in pixels at which forbidden tokens are named in it
MIN_PROBABILITY = 0.02  # ... if the model gave them at least this probability
ONLY = {"state": "chosen", "fill": "dashed"}
QUESTION = "Which tokens did the constraint forbid? How much probability did it remove? What was forced?"


@view("constraint", "Constraint", reads=has(Distribution, view="forbidden"))
class Constraint:
    """Columns are committed tokens. Below each other: the most likely forbidden tokens, the mass that was
    kept and removed, how many tokens were allowed, the token that was taken.
    """

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.removed: dict[int, Any] = {}  # node -> its Distribution of forbidden tokens
        self.size: dict[int, int] = {}  # node -> tokens of the vocabulary
        self.chosen: dict[int, float | None] = {}
        self.column, self.logkept, self.only = 0, 0.0, 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        shares = [[0, "0"], [0.5, ".5"], [1, "1"]]
        return Columns(
            question=QUESTION,
            left=74,
            left_narrow=60,
            ops=[
                heading(),
                scene.Panel("forbidden", y0=-0.1, y1=NAMED + 0.1, px=54, from_px=LOW),
                scene.Panel("mass", y0=1.04, y1=-0.04, share=1, ticks=shares),
                scene.Panel("counts", y0=-0.1, y1=1.1, px=24),
                token_line(),
                scene.Row("row-forbidden", panel="forbidden", y0=0, y1=NAMED, text="forbidden", rule=False),
                scene.Row("row-counts", panel="counts", y0=0, y1=1, text="allowed", rule=False),
            ],
            legend=[
                ["bar", "■", "soft", "probability that was kept"],
                ["cell:dotted", "▭", "rejected", "removed: probability, and the top forbidden tokens"],
                ["symbol:dot", "●", "ink", "the token that was taken, at its probability before"],
                ["cell:dashed", "▭", "soft", "the only token that was allowed"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for each token that was committed."""
        ops, captions = [], []
        for event in step.events:
            match event:
                case Distribution() if event.view == "target" and event.level is None:
                    self.size[event.node] = event.among or 0
                case Distribution() if event.view == "forbidden":
                    self.removed[event.node] = event
        self.nodes.read(step)
        for event in step.events:
            if isinstance(event, Commit):
                for node, logprob in zip(event.nodes, event.logprobs, strict=True):
                    ops += self._column(node, logprob, captions)
        return [*ops, *self._heading(), scene.Say(". ".join(captions) + ".")] if captions else ops

    def _column(self, node: int, logprob: float | None, captions: list[str]) -> list[Op]:
        self.column += 1
        x, key, text = self.column, f"c{self.column}", self.nodes.text(node)
        event = self.removed.get(self.nodes.parent[node])
        if event is None:
            look = {
                "state": "prompt",
                "fill": "tint",
                "hover": [f"{text}: the constraint was not consulted here"],
            }
            captions.append(look["hover"][0])
            place = {"panel": "tokens", "x": x, "y": 0, "w": 0.96, "h": 1, "text": text, "node": node}
            return [scene.Cell(f"{key}-token", **place, **look)]
        kept, allowed = min(1.0, math.exp(event.kept)), self.size.get(event.node, 0) - event.among
        self.logkept += event.kept
        self.only += allowed == 1
        words = self._words(text, logprob, event, kept, allowed)
        captions.append(words[0])
        shared = {"hover": words, "node": node}
        ops = [scene.Bar(f"{key}-kept", panel="mass", x=x, w=0.84, y0=0, y1=round(kept, 4), rank=2, **shared)]
        if kept < 0.9995:
            place = {
                "panel": "mass",
                "x": x,
                "w": 0.84,
                "y": round((1 + kept) / 2, 4),
                "h": round(1 - kept, 4),
            }
            ops.append(scene.Cell(f"{key}-gone", **place, state="rejected", fill="dotted", **shared))
        if logprob is not None:
            place = {"panel": "mass", "x": x, "y": round(math.exp(min(0.0, logprob)), 4)}
            ops.append(scene.Symbol(f"{key}-taken", **place, glyph="dot", role="ink", **shared))
        likely = [(t, p) for t, lp in event.top if (p := math.exp(lp)) >= MIN_PROBABILITY][:NAMED]
        for row, (token, p) in enumerate(likely):
            word = self.nodes.word(token)
            place = {"panel": "forbidden", "x": x, "y": row + 0.5, "w": 0.94, "h": 0.9, "text": word}
            look = {"state": "rejected", "fill": "dotted", "weight": round(p, 4), "priority": 3}
            line = [f"{word} is forbidden here; the model gave it {probability(p)}"]
            ops.append(scene.Cell(f"{key}-no{row}", **place, **look, hover=line, node=node))
        place = {"panel": "counts", "x": x, "y": 0.5, "w": 0.94, "h": 0.9, "text": short(allowed)}
        share = math.log(allowed) / math.log(max(2, self.size[self.nodes.parent[node]])) if allowed else 0.0
        ops.append(
            scene.Cell(f"{key}-n", **place, state="prompt", fill="amount", weight=0.5 * share, **shared)
        )
        look = ONLY if allowed == 1 else {"state": "chosen", "fill": "tint"}
        place = {"panel": "tokens", "x": x, "y": 0, "w": 0.96, "h": 1, "text": text}
        return [*ops, scene.Cell(f"{key}-token", **place, **look, **shared)]

    def _words(self, text: str, logprob: float | None, event, kept: float, allowed: int) -> list[str]:
        """Two lines: the token chosen and the mass allowed, and what was forbidden."""
        size = self.size.get(event.node, 0)
        before = "" if logprob is None else f": p {probability(math.exp(logprob))} before"
        after = (
            ""
            if logprob is None or not kept
            else f", {probability(min(1.0, math.exp(logprob) / kept))} after"
        )
        first = (
            f"{text}{before}{after}; {many(allowed, 'token')} of {size:,} allowed, kept {probability(kept)}"
        )
        gone = " · ".join(f"{self.nodes.word(t)} {probability(math.exp(lp))}" for t, lp in event.top)
        return [first, f"forbidden: {gone}"] if gone and kept < 0.9995 else [first]

    def _heading(self) -> list[Op]:
        """What the constraint cost so far."""
        lead = f"kept so far {power(self.logkept)}"
        long = f", the product of what was kept at each token; {many(self.only, 'token')} had no alternative."
        return [scene.Change("heading", lead=lead, heading=long, short=f"; {self.only} without choice.")]


def power(log: float) -> str:
    """e to the power of this logarithm: `.034`, `1.5 × 10⁻⁸⁴`."""
    if log > math.log(1e-4):
        return probability(math.exp(min(0.0, log)))
    exponent = math.floor(log / math.log(10))
    mantissa = math.exp(log - exponent * math.log(10))
    return f"{mantissa:.1f} × 10" + str(exponent).translate(RAISED)


def short(count: int) -> str:
    """`12`, `3.4k`: a count that fits into a column."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 10_000 else f"{count // 1000}k"
