"""Draws: which tokens were tried at each position by a sampler that checks only what it draws.

A fold over Propose, Verdict and Measure ("log weight" or "weight", whose parts are the estimate and the
number of checks). Only the draws of the first text are shown.
"""

import math

from decoders.trace.events import Distribution
from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

WEIGHTS = (ScoreName.LOG_WEIGHT, ScoreName.WEIGHT)
CHECK = "✓"
STATE = {"rejected": "rejected", "pruned": "live"}
WORDS = {
    "rejected": "drawn, and forbidden: it cannot be drawn again",
    "pruned": "allowed, and drawn for the estimate alone",
    "accepted": "drawn, and allowed: it is written",
}


@view("draws", "Draws", reads=has(Measure, name=ScoreName.LOG_WEIGHT))
class Draws:
    """Columns are positions of the first text, with the draws at each downwards; above, the estimate of Z."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.checks = self.columns = 0
        self.texts = 1  # how many texts are sampled side by side
        self.size = 0  # of the vocabulary, in tokens

    def head(self) -> Layout:
        """Title, question, the panels and the legend."""
        shares = [[0, "0"], [0.5, ".5"], [1, "1"]]
        return Rounds(
            question="Which tokens were drawn and checked? How much mass is allowed, by estimate?",
            column=sizes.MARKED,
            ops=[
                heading(),
                scene.Panel("z", y0=1.06, y1=-0.06, px=74, ticks=shares, rule=True),
                scene.Panel("draws", y0=-0.1, y1=5, share=1, grow=True),
            ],
            row=sizes.BOX,
            wide=52,
            left=74,
            left_narrow=56,
            legend=[
                ["cell:chosen", CHECK, "chosen", "drawn, and allowed"],
                ["cell:rejected", "✕", "rejected", "drawn, and forbidden"],
                ["cell:live", CHECK, "live", "allowed, for the estimate alone"],
                ["bar", "■", "soft", "estimate of Z, the probability of all allowed tokens"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """A column: what was drawn at the next position of the first text."""
        drawn, verdicts, _ = self.nodes.read(step)
        scores = [e for e in step.of(Measure) if e.name in WEIGHTS]
        self.texts = max([self.texts, *(int(e.parts["text"]) for e in scores)])
        (score,) = [e for e in scores if e.parts["text"] == 1.0][:1] or (None,)
        offers = [e for e in step.events if isinstance(e, Distribution) and e.view == "target"]
        self.size = max([self.size, *(e.among or 0 for e in offers)])
        own = [e.node for e in drawn if e.slot == 0]
        if score is not None and score.node not in own:
            own.append(score.node)
        if not own:
            return []
        self.columns = x = max(self.nodes.position[node] for node in own)
        ops = [op for at, node in enumerate(own) for op in self._draw(at, node, x, verdicts, score)]
        if score is not None:
            self.checks += int(score.parts["checks"])
            ops += self._estimate(score, x)
        more = int(score.parts["checks"]) - len(own) if score is not None else 0
        if more > 0:
            place = {"panel": "draws", "x": x, "y": len(own) + 0.4, "role": "soft", "size": sizes.TINY}
            ops.append(scene.Label(f"m{x}", **place, text=f"+{more}"))
        front = scene.Front(x, len(own))
        return [*ops, self._summary(), front, scene.Say(self._caption(own, verdicts, score))]

    def _draw(self, at: int, node: int, x: int, verdicts: dict, score) -> list[Op]:
        status = verdicts[node].status if node in verdicts else "accepted"
        status = status if status in STATE and (score is None or node != score.node) else "accepted"
        state = STATE.get(status, "chosen")
        text = self.nodes.text(node)
        return [
            scene.Cell(
                f"d{x}.{at}",
                panel="draws",
                node=node,
                x=x,
                y=at + 0.5,
                w=0.94,
                h=0.84,
                **look(state),
                text=text,
                glyph=GLYPHS.get(state, CHECK),
                hover=[f"{text}: draw {at + 1}", WORDS[status]],
            )
        ]

    def _estimate(self, score, x: int) -> list[Op]:
        z = score.parts["estimate"]
        hover = [f"Z is estimated as {probability(z)} from {many(int(score.parts['checks']), 'check')}"]
        if score.name == ScoreName.LOG_WEIGHT:
            hover.append(f"the text weighs {math.exp(score.total):.3g} now")
        place = {"panel": "z", "x": x, "w": 0.84, "y0": 0, "y1": round(min(1.0, z), 4), "rank": 2}
        return [scene.Bar(f"z{x}", **place, hover=hover, node=score.node)]

    def _summary(self) -> Op:
        lead = f"{many(self.checks, 'check')} for {many(self.columns, 'token')}"
        which = f", the first of {self.texts} texts" if self.texts > 1 else ""
        return scene.Change(
            "heading", lead=lead, heading=f"{which}; a mask would make {self.size * self.columns:,}."
        )

    def _caption(self, own: list[int], verdicts: dict, score) -> str:
        lost = sum(node in verdicts and verdicts[node].status == "rejected" for node in own)
        end = f"; Z is estimated as {probability(score.parts['estimate'])}" if score is not None else ""
        return f"{many(len(own), 'token')} drawn, {lost} forbidden{end}."
