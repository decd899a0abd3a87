"""Target top tokens: under each guess the target's most likely tokens, and how far below them the guess
is.

A fold over Propose, Verdict, Distribution (what the target offered in a place, after its processors if there
are any), Measure (a number that is compared with its `limit`) and Commit. Rows are rounds, columns token
positions. Where several were drafted for one position, the first that was tested is shown.
"""

import math
from dataclasses import replace
from typing import Any

from decoders.trace.events import Distribution
from decoders.trace.scores import Measure
from visualizers import scene
from visualizers.analysis.distribution_stages import best
from visualizers.scene import sizes
from visualizers.scene.drafted import OF_DRAFTS
from visualizers.scene.layout import Layout, Rounds, heading
from visualizers.scene.marks import Op
from visualizers.scene.nodes import Nodes
from visualizers.scene.verdict_marks import GLYPHS, STATES, folds_to, look
from visualizers.scene.view import Header, view
from visualizers.scene.words import probability

# Heights in rows: the guess, a place of the list, the bar with its number, the space below.
GUESS, LINE, BAR, GAP = 0.92, 0.74, 0.9, 0.3
LISTED, MAX_PLACES = 3, 5  # ranks listed if no parameter says how many count, and at most
AHEAD = 4  # guesses after the text that stay visible
WIDE, EMPTY, FULL = 0.84, 0.12, 0.75  # a full bar in columns; greys of its scale and of the bar


@view("target_top_tokens", "Target top tokens", reads=OF_DRAFTS)
class TargetTopTokens:
    """One band of rows a round; its height is known when it is verified, and it never moves."""

    def __init__(self, header: Header):
        self.header, self.nodes = header, Nodes(header)
        self.listed = min(MAX_PLACES, int(header.number("beta", LISTED)) or LISTED)
        self.rounds = self.passed = self.tolerated = 0
        self.y = 0.0  # top of the next round

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        guesses = int(self.header.number("num_assistant_tokens", 5)) or 5
        return Rounds(
            question="How does the target rank the guesses? How far behind its best token are they?",
            ops=[
                heading(),
                scene.Panel("rounds", y0=-0.15, y1=6, share=1, grow=True),
            ],
            column=sizes.WORD,
            wide=60,
            left=92,
            left_narrow=46,
            by_depth=min(12, max(3, int(guesses) + 1)),
            fold_rows="stairs",
            legend=[
                ["cell:accepted", "■", "accepted", "the target's best, accepted"],
                ["cell:tolerated", "≈", "tolerated", "accepted, though not its best"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:resampled", "◆", "resampled", "the target's own instead"],
                ["cell:bonus", "★", "bonus", "bonus"],
                ["cell:unreached", "◌", "unreached", "never reached"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One step is one round: its guesses, the target's most likely tokens, and the gap between them."""
        born, verdicts, commits = self.nodes.read(step)
        places = self._places(born, verdicts)
        if not places or any(event.given for event in born):
            return []
        offers, watched = {}, {}
        for event in step.events:
            if isinstance(event, Distribution) and event.level is None:
                if event.view in (
                    "target",
                    "processed",
                ):  # the second replaces the first
                    offers[event.node] = event
            elif isinstance(event, Measure) and (event.limit or 0) > 0:
                watched[event.node] = event
        self.rounds += 1
        self.start, self.bottom = min(places), self.y
        ops = []
        for column, (guess, own) in places.items():
            ops += self._column(column, guess, own, offers, verdicts, watched)
        row = scene.Row(
            f"r{self.rounds}",
            panel="rounds",
            y0=self.y - 0.13,
            y1=self.bottom + 0.13,
            text=f"round {self.rounds}",
            short=str(self.rounds),
            bold=f"+{len(commits)}",
            label_y=self.y + GUESS / 2,
            first=self.start,
            last=max(places),
            folds_to=folds_to(ops),
        )
        newest = max((self.nodes.position[n] for n in commits), default=self.start)
        front, self.y = [min(max(places), newest + AHEAD), self.bottom], self.bottom + GAP
        captions = [op.hover[0] for op in ops if op.id.startswith("n") and op.state != "unreached"]
        return [row, *ops, *self._heading(), scene.Front(*front), scene.Say("; ".join(captions) + ".")]

    def _places(self, born, verdicts) -> dict[int, tuple]:
        """Column -> (the guess that is shown, the target's own token), as Propose events, None where there
        is none; nothing if nothing was drafted.
        """
        order = {node: i for i, node in enumerate(verdicts)}
        drafted = [e for e in born if e.source != "target"]
        drafted.sort(
            key=lambda e: (self._state(e, verdicts) != "accepted", order.get(e.node, len(order)), e.slot)
        )
        own = {self.nodes.position[e.node]: e for e in born if e.source == "target"}
        guess: dict[int, object] = {}
        for event in drafted:
            guess.setdefault(self.nodes.position[event.node], event)
        columns = sorted(guess.keys() | own.keys()) if guess else []
        return {column: (guess.get(column), own.get(column)) for column in columns}

    @staticmethod
    def _state(event, verdicts) -> str:
        return STATES[verdicts[event.node].status] if event.node in verdicts else "live"

    # ---- one place ---------------------------------------------------------------------------
    def _column(self, column, guess, own, offers, verdicts, watched) -> list[Op]:
        """The guess, the target's list below it, and the bar of the number that is watched."""
        shown = guess or own
        offer, state = offers.get(shown.parent), self._state(shown, verdicts)
        if offer is not None and state == "accepted":
            self.passed += 1
            if not best(offer, shown.token):
                state = "tolerated"
                self.tolerated += 1
        score = watched.get(shown.node)
        hover = [self._hover_text(shown, state, offer, score), *self._reason(shown, verdicts)]
        glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
        place = {"y": self._middle(self.y, GUESS), "h": GUESS}
        ops = [self._cell(f"n{shown.node}", column, shown, **place, **look(state), **glyph, hover=hover)]
        self.bottom = max(self.bottom, self.y + GUESS)
        if offer is None or guess is None:
            return ops
        top = self.y + GUESS + 0.06
        rows = [(int(token), logprob) for token, logprob in offer.top[: self.listed]]
        for place, (token, logprob) in enumerate(rows):
            y = self._middle(top + place * LINE, LINE)
            ops.append(self._entry(column, place, y, token, logprob, guess, own, state))
        self.bottom = max(self.bottom, top + self.listed * LINE)
        return [*ops, *(self._bar(column, top + self.listed * LINE, shown, score, state) if score else [])]

    def _entry(self, column, place, y, token, logprob, guess, own, state) -> Op:
        """One of the target's most likely tokens: outlined if it was guessed, or was written instead."""
        p = math.exp(min(0.0, logprob))
        words = f"{self.nodes.word(token)}  p {probability(p)}, the target's rank {place + 1}"
        fill = {"state": "prompt", "fill": "amount", "weight": round(0.75 * p, 4)}
        if token == guess.token:
            words, fill = words + ", guessed", {"state": state, "fill": "outline"}
        elif own is not None and token == own.token:
            words, fill = words + ", taken instead", {"state": "resampled", "fill": "outline"}
        key = f"l{self.rounds}.{column}.{place}"
        entry = self._cell(key, column, guess, y=y, h=LINE, **fill)
        return replace(entry, text=self.nodes.word(token), hover=[words], aside=True)

    def _bar(self, column, top, shown, score, state) -> list[Op]:
        """The watched number as a share of its limit."""
        limit, share = score.limit, min(1.0, max(0.0, score.total / score.limit))
        hover = [f"{score.name} {score.total:.2f}, limit {limit:.2f}".replace("-", "−")]
        y = self._middle(top, 0.5)
        self.bottom = max(self.bottom, top + BAR)
        place = {
            "panel": "rounds",
            "y": y,
            "h": 0.28,
            "node": shown.node,
            "hover": hover,
        }
        key = f"{self.rounds}.{column}"
        scale = {"state": "prompt", "fill": "amount", "aside": True}
        depth = column - self.start + 1
        ops = [scene.Cell(f"s{key}", **place, **scale, weight=EMPTY, x=column, depth=depth, w=WIDE)]
        if share:
            x = column - WIDE / 2 + WIDE * share / 2
            at = {"x": round(x, 4), "depth": round(x - self.start + 1, 4), "w": round(WIDE * share, 4)}
            ops.append(scene.Cell(f"b{key}", **place, **scale, **at, weight=FULL))
        words, role = f"{score.total:.2f}".replace("-", "−"), "rejected" if state == "rejected" else "soft"
        label = {
            "x": column,
            "depth": depth,
            "dy": 12,
            "text": words,
            "size": sizes.TINY,
            "priority": 5,
            "role": role,
        }
        return [*ops, scene.Label(f"w{key}", **place, **label)]

    def _cell(self, key, column, event, **fields: Any) -> Op:
        return scene.Cell(
            key,
            panel="rounds",
            node=event.node,
            x=column,
            depth=column - self.start + 1,
            w=1,
            text=self.nodes.text(event.node),
            **fields,
        )

    @staticmethod
    def _middle(top: float, height: float) -> float:
        return round(top + height / 2, 4)

    # ---- words -------------------------------------------------------------------------------
    def _hover_text(self, event, state, offer, score) -> str:
        """`␣the  accepted, though not the target's best; gap 0.42, limit 1.00`."""
        words = {"tolerated": "accepted, though not the target's best", "unreached": "never reached"}
        text = f"{self.nodes.text(event.node)}  {words.get(state, state)}"
        if score is not None:
            text += f"; {score.name} {score.total:.2f}, limit {score.limit:.2f}".replace("-", "−")
        return text

    def _reason(self, event, verdicts) -> list[str]:
        reason = self.nodes.reason(verdicts.get(event.node))
        return [reason] if reason else []

    def _heading(self) -> list[Op]:
        """How many of the accepted guesses the target would not have written itself."""
        lead = f"{self.tolerated} of {self.passed} accepted guesses"
        rest = " were not the target's most likely token."
        return [scene.Change("heading", lead=lead, heading=rest, short=" were not the target's best.")]
