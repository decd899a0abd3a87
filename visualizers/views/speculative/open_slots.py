"""Open slots: in which order the slots of a drafted tree were filled, and which ones waited meanwhile.

A fold over Propose, Rank ("slot": the value of a slot when it was filled; its parts are the values of the
slots that it opened, `below` and `beside` it), Verdict and Commit. Each step shows its own round. A slot
waits from when it was opened until it is filled.
"""

from dataclasses import dataclass

from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Table, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

ROWS = 5  # places of the heap that are listed
ARROWS = {"below": "→", "beside": "↓"}  # as the tree is drawn: children to the right, siblings downwards


@dataclass
class Place:
    """A waiting slot: its value, the node that it is below or beside, and since when it waits."""

    value: float
    kind: str
    node: int
    since: int


@view("open_slots", "Open slots", reads=has(Rank, name=ScoreName.SLOT))
class OpenSlots:
    """x counts the slots of the round in the order of filling; y: the waiting slots, the best first."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.shown: list[str] = []  # ids of the marks of the round on show
        self.rounds = 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        names = [(f"waits, {place}", str(place)) for place in range(1, ROWS + 1)] + [
            ("others waiting", "more")
        ]
        rows = [
            scene.Row(f"row{i}", panel="heap", y0=i, y1=i + 1, text=name, short=short, rule=False)
            for i, (name, short) in enumerate(names)
        ]
        ticks = [[0, "0"], [1, "1"]]
        return Table(
            question="Which open slot got the next token? Which ones waited?",
            ops=[
                heading(),
                scene.Panel("worth", y0=1.5, y1=0, px=46, ticks=ticks),
                scene.Panel("filled", y0=-0.55, y1=0.55, px=26),
                scene.Panel("heap", y0=0, y1=ROWS + 1, share=1, grow=True),
                *rows,
            ],
            row=sizes.LINE,
            row_min=13,
            row_tall=44,
            gap=sizes.GAP,
            column=sizes.WORD,
            wide=84,
            left=104,
            left_narrow=42,
            axis="slots in the order in which they were filled",
            legend=[
                ["bar", "▂", "soft", "value of the slot that was filled"],
                ["cell:accepted", "■", "accepted", "accepted"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:chosen", "▣", "chosen", "filled next: → below a token, ↓ beside it"],
                ["cell:live", "▣", "live", "opened just now"],
                ["cell:pruned", "▢", "pruned", "has waited longer"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """Hides the previous round and draws this one."""
        born, verdicts, commits = self.nodes.read(step)
        scores = [e for e in step.of(Rank) if e.name == ScoreName.SLOT]
        if not scores:
            return []
        self.rounds += 1
        parents = {event.node: event.parent for event in born}
        marks: list[Op] = []
        waiting: list[Place] = []
        for at, score in enumerate(scores, 1):
            taken = self._taken(waiting, score, parents)
            if taken is not None:
                waiting.remove(taken)
            opened = [Place(value, kind, score.node, at) for kind, value in score.parts.items()]
            waiting = sorted([*waiting, *opened], key=lambda p: -p.value)
            following = scores[at] if at < len(scores) else None
            then = self._taken(waiting, following, parents) if following else None
            marks += [*self._filled(at, score, verdicts), *self._listed(at, waiting, then)]
        hidden = [scene.Change(key, gone=True) for key in self.shown]
        self.shown = [mark.id for mark in marks]
        return [
            *hidden,
            *marks,
            *self._heading(scores, verdicts),
            scene.Front(1, 0),
            self._say(scores),
        ]

    @staticmethod
    def _taken(waiting: list[Place], score, parents: dict[int, int]) -> Place | None:
        """The slot that a node filled: below its parent, or beside the newest of its siblings."""
        parent = parents.get(score.node)
        own = [p for p in waiting if p.kind == "below" and p.node == parent]
        own += [p for p in waiting if p.kind == "beside" and parents.get(p.node) == parent]
        return min(own, key=lambda p: abs(p.value - score.total), default=None)

    # ---- marks -------------------------------------------------------------------------------
    def _filled(self, at: int, score, verdicts) -> list[Op]:
        """The value of a slot, and the token that it got."""
        verdict, text = verdicts.get(score.node), self.nodes.text(score.node)
        state = STATES[verdict.status] if verdict else "live"
        hover = [
            f"{text}  slot {at}, value {probability(score.total)}",
            *([verdict.status] if verdict else []),
        ]
        shared = {"node": score.node, "hover": hover, "x": at}
        glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
        key = f"{self.rounds}.{at}"
        bar = {"panel": "worth", "y0": 0, "y1": round(score.total, 4), "w": 0.5, "rank": 1}
        label = {
            "panel": "worth",
            "x": at,
            "y": round(score.total, 4),
            "dy": -7,
            "text": probability(score.total),
        }
        cell = {"panel": "filled", "y": 0, "w": 1, "h": 1, "text": text}
        return [
            scene.Bar(f"v{key}", **shared, **bar),
            scene.Label(f"w{key}", **label, priority=3),
            scene.Cell(f"n{score.node}", **shared, **cell, **look(state), **glyph),
        ]

    def _listed(self, at: int, waiting: list[Place], then: Place | None) -> list[Op]:
        """The slots that wait after this one was filled; the one that is filled next stands out."""
        ops: list[Op] = []
        for row, place in enumerate(waiting[:ROWS]):
            look = {"state": "live" if place.since == at else "pruned", "fill": "tint"}
            if place is then:
                look = {"state": "chosen", "fill": "outline"}
            word = self.nodes.text(place.node)
            words = f"{place.kind} {word}: value {probability(place.value)}"
            since = "" if place.since == at else f", waits since slot {place.since}"
            where = {"panel": "heap", "x": at, "y": row + 0.5, "w": 1, "h": 0.9, "node": place.node}
            text = f"{short(place.value)}{ARROWS.get(place.kind, '')}{word.removeprefix('␣')}"
            key = f"h{self.rounds}.{at}.{row}"
            ops.append(scene.Cell(key, **where, **look, text=text, hover=[words + since]))
        if len(waiting) > ROWS:
            more = {
                "panel": "heap",
                "x": at,
                "y": ROWS + 0.5,
                "text": f"+{len(waiting) - ROWS}",
                "priority": 4,
            }
            ops.append(scene.Label(f"m{self.rounds}.{at}", **more))
        return ops

    # ---- words -------------------------------------------------------------------------------
    def _heading(self, scores, verdicts) -> list[Op]:
        """The total value of the slots, which is how many the draft expects to be tested."""
        total = sum(score.total for score in scores)
        tested = sum(
            1 for s in scores if s.node in verdicts and verdicts[s.node].status in ("accepted", "rejected")
        )
        lead = f"Round {self.rounds}: {many(len(scores), 'slot')}, total value {total:.2f}"
        rest = f", as many as the draft expects to be tested; tested: {tested}."
        return [scene.Change("heading", lead=lead, heading=rest, short=f"; {tested} tested.")]

    def _say(self, scores) -> dict:
        first = ", ".join(f"{self.nodes.text(s.node)} {probability(s.total)}" for s in scores[:4])
        return scene.Say(f"Round {self.rounds}: {many(len(scores), 'slot')} filled, first {first}.")


def short(value: float) -> str:
    """Two places: `.42`, `<.01`, `1.00`."""
    return "<.01" if value < 0.005 else f"{value:.2f}".removeprefix("0")
