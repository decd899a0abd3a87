"""Scores: the score of each candidate of a round, which of them stayed, and which came from which.

A fold over Propose, Rank ("reward"), Verdict and Commit. A column is a step in which texts were given scores,
y the score; in its column a candidate stands where its score's part `aside` says, else in the order in which
they came.
"""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene.axis_scale import Scale
from visualizers.scene.layout import Columns, Layout, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.view import Header, has, view

ASIDE, LIMIT = "aside", "threshold"
MIN_SPAN = 0.5  # least span of scores that the scale shows
HALF = 0.4  # of a column, to either side of its middle
LOST = ("pruned", "rejected")
QUESTION = "What was the score of each candidate of a round? Which ones stayed?"


@view("scores", "Scores", reads=has(Rank, name=ScoreName.REWARD))
class Scores:
    """Dots for candidates, lines to those they came from, and the best score of each round."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.round = 0
        self.placed: dict[int, tuple[float, float]] = {}  # scored node -> x and y of its dot
        self.scale = Scale(MIN_SPAN)
        self.widest = 0.0  # largest `aside` among the candidates of the first round
        self.best: list[float] = []
        self.stayed = 0
        # several candidates stand side by side in a column
        self.wide = header.number("num_samples", 1) > 1

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question=QUESTION,
            ops=[
                heading(),
                scene.Panel("scores", y0=1, y1=0, share=1, ticks=[]),
            ],
            left=44,
            axis="round",
            column=104 if self.wide else 40,
            column_narrow=84 if self.wide else 30,
            columns=8 if self.wide else 24,
            widest=460 if self.wide else 66,
            legend=[
                ["symbol:live", "●", "live", "stays for now"],
                ["symbol:chosen", "●", "chosen", "the text"],
                ["symbol:diamond", "◇", "soft", "left out"],
                ["path:soft", "━", "soft", "came from"],
                ["path:live", "╌", "live", "threshold"],
            ],
            overview=None,
        )

    def feed(self, step) -> list[Op]:
        """The ops of one step: the dots of its candidates, and what became of them and of earlier ones."""
        scored, fates, text = [], {}, []
        for event in step.events:
            match event:
                case Propose():
                    self.nodes.add(event)
                case Rank(name=ScoreName.REWARD) if event.node not in self.placed:
                    scored.append(event)
                case Verdict() if event.status in LOST:
                    fates[event.node] = {"role": "soft", "glyph": "diamond"}
                case Commit():
                    text += event.nodes
                    fates |= {node: {"role": "chosen"} for node in event.nodes}
        ops = self._candidates(scored) if scored else []
        ops += [scene.Change(f"d{node}", **look) for node, look in fates.items() if node in self.placed]
        if not scored:
            return [*ops, scene.Say(f"Final now: {''.join(map(self.nodes.text, text))}")] if ops else []
        kept = sum(fates.get(e.node, {}).get("glyph") is None for e in scored)
        self.stayed += kept
        heading = self._heading(scored, kept)
        sentence = heading["lead"] + heading["heading"]
        return [*ops, scene.Change("heading", **heading), scene.Front(self.round, 0), scene.Say(sentence)]

    def _heading(self, scored: list, kept: int) -> dict:
        """The newest round, and how it continued earlier ones."""
        if len(scored) == 1:
            limit = scored[0].parts.get(LIMIT)
            lead = f"score {number_text(self.best[-1])}" + (
                "" if limit is None else f", threshold {number_text(limit)}"
            )
            fate = "stays" if kept else "is left out"
            short = f": try {self.round} {fate}."
            return {"lead": lead, "heading": f"{short[:-1]}; {self.stayed} stayed so far.", "short": short}
        rest = f" of {len(scored)} in round {self.round}, {kept} stay"
        way = " → ".join(map(number_text, self.best[-5:]))
        alike = " Texts that the ranker finds similar lie close together." if ASIDE in scored[0].parts else ""
        return {
            "lead": f"best {number_text(self.best[-1])}",
            "heading": f"{rest}; the best of each round: {way}.{alike}",
            "short": f"{rest}.",
        }

    def _candidates(self, scored: list) -> list[Op]:
        """A column: a dot for each candidate, a line to what it came from, a threshold if there is one."""
        self.round += 1
        totals = [event.total for event in scored]
        ops: list[Op] = []
        if self.scale.grow([*totals, *(event.parts[LIMIT] for event in scored if LIMIT in event.parts)]):
            ops.append(scene.Change("scores", **self.scale.panel()))
        self.best.append(max(totals))
        for event, x in zip(scored, self._places(scored), strict=True):
            y = round(event.total, 4)
            self.placed[event.node] = (x, y)
            node, before = event.node, self._before(event.node)
            words = "".join(map(self.nodes.text, self.nodes.path(node)[len(self.nodes.path(before)) :]))
            parts = [f"{name.replace('_', ' ')} {number_text(value)}" for name, value in event.parts.items()]
            hover = [", ".join([f"score {number_text(event.total)}", *parts]), words]
            look = {"glyph": "dot", "role": "live"}
            if before in self.placed:
                points = [list(self.placed[before]), [x, y]]
                ops.append(scene.Path(f"w{node}", panel="scores", points=points, role="soft", width=1))
            ops.append(scene.Symbol(f"d{node}", panel="scores", x=x, y=y, **look, hover=hover, node=node))
            if LIMIT in event.parts:
                limit = round(event.parts[LIMIT], 4)
                ends = [[self.round - HALF, limit], [self.round + HALF, limit]]
                look = {"role": "live", "width": 1.4, "dash": "dash"}
                ops.append(scene.Path(f"t{node}", panel="scores", points=ends, **look))
        best = scored[totals.index(max(totals))]
        x, y = self.placed[best.node]
        look = {"text": number_text(best.total), "dy": -13, "role": "ink", "priority": 2}
        return [*ops, scene.Label(f"b{self.round}", panel="scores", x=x, y=y, **look)]

    def _places(self, scored: list) -> list[float]:
        """The x of each candidate within its column."""
        if all(ASIDE in event.parts for event in scored):
            asides = [event.parts[ASIDE] for event in scored]
            self.widest = self.widest or max(map(abs, asides)) or 1.0
            shares = [min(1.0, max(-1.0, aside / self.widest)) for aside in asides]
        else:
            shares = [(2 * at + 1) / len(scored) - 1 for at in range(len(scored))]
        return [round(self.round + HALF * share, 4) for share in shares]

    def _before(self, node: int) -> int:
        """The nearest prefix of a text that has a score, else the prompt's end."""
        above = self.nodes.upwards(self.nodes.parent[node])
        return next(at for at in above if at <= self.nodes.root or at in self.placed)


def number_text(value: float) -> str:
    """`5.21`, with a true minus sign."""
    return f"{value:.2f}".replace("-", "−")
