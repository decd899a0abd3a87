"""Score terms: the sums that rank texts, term by term: likelihood and what was added to it, or the cost so
far and the estimated cost to come.

A fold over Propose, Rank (of a sum with the part `sum_logprob` and one more, a rank if it is live; or of a
"priority" with the parts `g` and `h`, lower is better), Verdict and Commit. A column is a step; each
candidate has two bars: a dark one from 0 down to its first part, and beside it a light one from there to its
sum. Where likelihood has a weight, the dark bar shows it times that weight.
"""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene.axis_scale import Scale
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, Reads, view

LIKELY, PAID, TO_COME = "sum_logprob", "g", "h"  # parts of a sum
MAX_CANDIDATES = 8  # candidates drawn per column: the live ones, then the best of the others
SHARE = 0.86  # of a column's width, for its candidates
DARK, LIGHT = 0, 3  # greys
LOOKS = {
    "live": {"glyph": "dot", "role": "live"},
    "finished": {"glyph": "square", "role": "finished"},
    "opened": {"glyph": "diamond", "role": "soft"},
    "chosen": {"glyph": "dot", "role": "chosen"},
}
QUESTION = "Which terms make up the scores that rank the texts?"


def two_terms(event: Rank) -> bool:
    """Whether a score is the sum of two named parts."""
    if event.name == ScoreName.PRIORITY:
        return {PAID, TO_COME} <= set(event.parts)
    return LIKELY in event.parts and len(event.parts) > 1


@view("score_terms", "Score terms", reads=Reads((Rank,), two_terms))
class ScoreTerms:
    """y: sums, worse ones further down; below the bars of a candidate what became of it."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.column = 0
        self.scale = Scale(1.0, top=0.0)
        weighed = header.parameters.get("combine") != "product"
        self.weight = header.number("likelihood_weight", 1.0) if weighed else 1.0
        # candidates of a column
        self.room = min(MAX_CANDIDATES, int(header.number("num_samples", 2 * header.number("num_beams", 2))))
        self.places: dict[int, float] = {}  # node -> x of its bars
        self.dots: set[int] = set()  # nodes with a mark for what became of them

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=QUESTION,
            ops=[
                heading(),
                scene.Panel("sums", y0=0, y1=-1, share=1, ticks=[]),
                scene.Panel("fates", y0=-0.5, y1=0.5, px=14),
            ],
            column=14 * self.room,
            column_narrow=11 * self.room,
            widest=24 * self.room,
            columns=8,
            left=44,
            axis="step",
            overview="piled",
            legend=[
                ["bar", "■", "ink", "dark: log p, or g"],
                ["bar", "▪", "soft", "light: from there to the sum"],
                ["symbol:live", "●", "live", "continues, or waits"],
                ["symbol:diamond", "◇", "soft", "expanded"],
                ["symbol:finished", "■", "finished", "finished"],
                ["symbol:chosen", "●", "chosen", "the text"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: a column for its candidates, and what became of these and of earlier ones."""
        scored, fates, final = {}, {}, []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                    if event.parent in self.dots:
                        fates[event.parent] = "opened"
                case Rank() if self._first(event) is not None:
                    scored[event.node] = event  # the last score has the rank
                case Verdict():
                    fates[event.node] = event.status
                case Commit():
                    final += event.nodes
        fresh = [e for e in scored.values() if e.node not in self.places]
        fresh.sort(key=lambda e: (e.rank is None and fates.get(e.node) != "finished", -e.total))
        ops = self._candidates(fresh[:MAX_CANDIDATES]) if fresh else []
        fates |= {e.node: "live" for e in fresh if e.rank is not None or e.name == ScoreName.PRIORITY}
        for node, fate in (fates | dict.fromkeys(final, "chosen")).items():
            if node in self.places:
                ops += self._fate(node, fate)
        return [*ops, scene.Front(self.column, 0)] if fresh else ops

    def _fate(self, node: int, fate: str) -> list[Op]:
        """The mark below a candidate's bars, once it had one."""
        key = f"d{node}"
        if fate not in LOOKS:
            return [scene.Change(key, gone=True)] if node in self.dots else []
        if node in self.dots:
            return [scene.Change(key, **LOOKS[fate], gone=False)]
        self.dots.add(node)
        place = {"panel": "fates", "x": self.places[node], "y": 0, "node": node, "size": 7}
        return [scene.Symbol(key, **place, **LOOKS[fate])]

    def _candidates(self, scored: list) -> list[Op]:
        """A column: two bars for each candidate, in the order of their sums."""
        self.column += 1
        ops: list[Op] = []
        ends = [end for e in scored for end in (e.total, self._first(e))]
        self.scale.top = max(self.scale.top, *ends)
        if self.scale.grow([0.0, *ends]):
            ops.append(scene.Change("sums", **self.scale.panel()))
        wide = SHARE / self.room
        for at, event in enumerate(sorted(scored, key=lambda e: -e.total)):
            x = self.column - SHARE / 2 + wide * (at + 0.5)
            node, first, total = event.node, self._first(event), event.total
            hover = [self._words(event), "".join(map(self.nodes.text, self.nodes.path(node)))]
            for name, off, (y0, y1), rank in (
                ("p", -0.2, (0.0, first), DARK),
                ("a", 0.2, (first, total), LIGHT),
            ):
                place = {"x": round(x + off * wide, 4), "w": round(0.4 * wide, 4), "rank": rank}
                ends = {"y0": round(min(y0, y1), 4), "y1": round(max(y0, y1), 4)}
                ops.append(scene.Bar(f"{name}{node}", panel="sums", **place, **ends, hover=hover, node=node))
            self.places[node] = round(x, 4)
        best = max(scored, key=lambda e: e.total)
        heading = {"lead": f"step {self.column}, the best", "heading": f": {self._words(best)}."}
        shown = abs(best.total) if best.name == ScoreName.PRIORITY else best.total
        short = {"short": f": {number_text(shown)}."}
        return [*ops, scene.Change("heading", **(heading | short)), scene.Say("".join(heading.values()))]

    def _first(self, event) -> float | None:
        """What the first part contributes to a sum; None if it is not a sum of two."""
        if not two_terms(event):
            return None
        if event.name == ScoreName.PRIORITY:
            return -event.parts[PAID]
        return self.weight * event.parts[LIKELY]

    def _words(self, event) -> str:
        """`sum −1.20: log p −0.90, diversity −0.30`, with a weight `0.1 log p −0.90`; `f 1.00: g .., ..`."""
        if event.name == ScoreName.PRIORITY:
            paid, to_come = (number_text(event.parts[part]) for part in (PAID, TO_COME))
            return f"f {number_text(-event.total)}: g {paid}, h {to_come}"
        first, name = self._first(event), next(name for name in event.parts if name != LIKELY)
        weight = "" if self.weight == 1.0 else f"{self.weight:g} "
        total, logprob, rest = (number_text(x) for x in (event.total, first, event.total - first))
        return f"sum {total}: {weight}log p {logprob}, {name.replace('_', ' ')} {rest}"


def number_text(value: float) -> str:
    """`−1.20`; no minus before a zero."""
    return f"{round(value, 2) or 0.0:.2f}".replace("-", "−")
