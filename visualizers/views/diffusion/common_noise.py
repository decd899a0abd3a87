"""Common noise: two distributions at each drafted position, and the token that wins in each of them.

A fold over Propose, Verdict, Commit and Distribution ("processed": what was drafted from, "combined": the
mixture that judges). Rows are rounds, columns token positions; in each stand two stacked bars.
"""

import math

from decoders.explain.verdicts import status_in_words
from decoders.trace.events import Distribution
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, view
from visualizers.scene.words import probability

TOKEN, HIGH, GAP = 0.92, 3.4, 1.7  # rows: the drafted token, the bars, letters and the space below
WIDE, APART, PIECES = 0.34, 0.2, 5  # width of a bar, its distance from the middle, pieces drawn separately
BARS = (("processed", -APART, "D", "the draft"), ("combined", APART, "T", "the mixture"))
SMALLEST = 0.16  # least height of a winner's piece in rows


@view("common_noise", "Common noise")
class CommonNoise:
    """One band of rows per round. A drafted token passes where the winners of both bars are the same."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.rounds, self.y = 0, 0.0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Rounds(
            question="Where do both distributions pick the same token under the same noise?",
            ops=[scene.Panel("rounds", y0=-0.15, y1=8, share=1, grow=True)],
            column=52,
            wide=60,
            left=92,
            left_narrow=46,
            legend=[
                ["cell:accepted", "■", "accepted", "the same winner in both bars: accepted"],
                ["cell:rejected", "✕", "rejected", "the mixture has another winner"],
                ["cell:forced", "⚑", "forced", "the same, but the first of a round is kept"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["bar:0", "▪", "soft", "left bar pD, right bar pT; darker: more likely"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One step is one round."""
        born, verdicts, commits = self.nodes.read(step)
        drafted = [event for event in born if event.source == "draft"]
        if not drafted:
            return []
        rivals = {event.parent: event for event in born if event.source == "mixture"}
        offers = {(event.node, event.view): event for event in step.events if isinstance(event, Distribution)}
        self.rounds += 1
        ops = []
        for event in drafted:
            column = self.nodes.position[event.node]
            verdict = verdicts.get(event.node)
            state = STATES[verdict.status] if verdict else "live"
            ops.append(self._token(column, event, state, verdict))
            rival = rivals.get(event.parent)
            winners = (event.token, rival.token if rival else event.token)
            if (event.parent, "combined") in offers:
                for (name, shift, letter, whose), winner in zip(BARS, winners, strict=True):
                    offer = offers.get((event.parent, name))
                    ops += self._bar(column + shift, letter, whose, offer, winner, state)
                    ops.append(self._word(column + shift, f"p{letter}", 0.45, "soft", 0.4))
                if rival:
                    ops.append(
                        self._word(column, f"◆ {self.nodes.word(rival.token)}", 1.05, "resampled", 1.0)
                    )
        agreed = sum(v.status == "accepted" for v in verdicts.values())
        columns = [self.nodes.position[event.node] for event in drafted]
        row = scene.Row(
            f"r{self.rounds}",
            panel="rounds",
            y0=self.y - 0.13,
            y1=self.y + TOKEN + HIGH + GAP - 0.3,
            text=f"round {self.rounds}",
            short=str(self.rounds),
            bold=f"+{len(commits)}",
            label_y=self.y + TOKEN / 2,
        )
        front = [min(columns) + agreed + 1, self.y + TOKEN + HIGH]
        self.y += TOKEN + HIGH + GAP
        sentence = (
            f"Round {self.rounds}: {agreed} of {len(drafted)} drafted tokens accepted, {len(commits)} kept."
        )
        return [row, *ops, scene.Front(*front), scene.Say(sentence)]

    def _token(self, column: int, event, state: str, verdict) -> Op:
        says = [f"{self.nodes.word(event.token)}: {state}"]
        if reason := self.nodes.reason(verdict):
            says = [f"{self.nodes.word(event.token)}: {status_in_words(verdict.status)}", reason]
        glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
        place = {"x": column, "y": self.y + TOKEN / 2, "w": 0.96, "h": TOKEN, "panel": "rounds"}
        words = {"text": self.nodes.word(event.token), "hover": says, "node": event.node}
        return scene.Cell(f"n{event.node}", **place, **look(state), **glyph, **words)

    def _word(self, x: float, text: str, below: float, role: str, columns: float) -> Op:
        """A word below the bars."""
        place = {"x": x, "y": self.y + TOKEN + 0.1 + HIGH + below, "w": columns, "panel": "rounds"}
        look_ = {"face": "mono", "size": sizes.TINY, "align": "center", "role": role}
        return scene.Label(f"w{self.rounds}-{x:g}-{below}", text=text, **place, **look_)

    def _bar(self, x: float, letter: str, whose: str, offer, winner: int, state: str) -> list[Op]:
        """Stacked pieces of a distribution, the most likely at the bottom, the winner's piece in colour."""
        base, ops = self.y + TOKEN + 0.1 + HIGH, []
        pieces = [(int(token), math.exp(min(0.0, logprob))) for token, logprob in offer.top]
        shown = [piece for i, piece in enumerate(pieces) if i < PIECES or piece[0] == winner]
        if winner not in dict(shown):
            shown.append((winner, 0.0))
        for rank, (token, p) in enumerate(shown):
            won, tall = token == winner, p * HIGH
            tall = max(tall, SMALLEST) if won else tall
            place = {"x": x, "w": WIDE, "panel": "rounds"}
            fate = f"wins under {whose}" if won else f"under {whose}"
            number = probability(p) if p else "less than those shown"
            says = [f"{self.nodes.word(token)} {fate}", f"p{letter} {number}"]
            key = f"{letter}{self.rounds}-{x:g}-{rank}"
            if won:
                style = look(state if letter == "D" or state != "rejected" else "resampled")
                box = {"y": base - tall / 2, "h": tall, **style}
                ops.append(scene.Cell(key, **place, **box, hover=says))
            else:
                box = {"y0": base - tall, "y1": base, "rank": min(rank, 4)}
                ops.append(scene.Bar(key, **place, **box, hover=says))
            base -= tall
        return ops
