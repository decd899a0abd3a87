"""Batch: several texts that share every forward, round by round, each at its own position.

A fold over Cell events that name a text in their level, and over Forward and Measure: one band of rows per
round, one row per text. At the left is its cached text, to scale, then its guesses in columns and what became
of them.
"""

from decoders.trace.events import Cell, Forward
from decoders.trace.number_format import many, were
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.scene import sizes
from visualizers.scene.layout import Layout, Rounds, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.verdict_marks import GLYPHS, STATES, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

HEADER, CELL, GAP = 0.68, 0.94, 0.12  # heights in rows: a round's heading, a cell, the space below a round
LEFT, EDGE = -1.45, 0.4  # columns between which the caches are drawn
OWN = ("resampled", "bonus", "settled")


OF_A_BATCH = {ScoreName.PADDING, ScoreName.DRAFT_LENGTH, ScoreName.BUDGET, ScoreName.READINESS}


@view("batch", "Batch", reads=has(Measure, name=OF_A_BATCH))
class Batch:
    """x counts the tokens after what a text had before the round; y: rounds, and in each the texts."""

    def __init__(self, header: Header):
        self.header = header
        self.rounds = 0
        self.y = 0.0  # top of the next round
        self.written: dict[str, str] = {}  # text -> what was written of it so far
        self.tokens = self.forwards = 0  # of all texts, so far
        self.held = self.slots = 0  # cache entries in use, and entries of a rectangle around them

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        lengths = [self.header.number(k, 0) for k in ("num_assistant_tokens", "extra_tokens")]
        return Rounds(
            question="How far did each text of the batch get in each round? What did it wait for?",
            ops=[
                heading(px_narrow=None, heading="."),
                scene.Panel("rounds", y0=-0.1, y1=8, share=1, grow=True),
            ],
            first=-1,
            row=sizes.TALL,
            column=sizes.SLOT,
            column_narrow=24,
            wide=42,
            clip=True,
            left=58,
            left_narrow=22,
            right=62,
            right_narrow=34,
            axis="tokens of the round",
            columns=sum(int(length) for length in lengths if length) + 4,
            legend=[
                ["cell:amount", "■", "soft", "text so far (a number: tokens)"],
                ["cell:hatched", "▨", "soft", "padding"],
                ["cell:accepted", "■", "accepted", "accepted"],
                ["cell:rejected", "✕", "rejected", "rejected"],
                ["cell:resampled", "◆", "resampled", "the target's own instead"],
                ["cell:bonus", "★", "bonus", "bonus"],
                ["cell:chosen", "■", "chosen", "decoded without a guess"],
                ["cell:unreached", "◌", "unreached", "never reached"],
                ["cell:pruned", "□", "pruned", "drafted, not submitted"],
                ["path", "━", "ink", "end of each text"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One round: its heading, a row for each text that took part, and the ragged edge."""
        texts: dict[str, list] = {}
        for event in step.events:
            if isinstance(event, Cell) and event.level is not None:
                texts.setdefault(event.level, []).append(event)
        if not texts:
            return []
        self.rounds += 1
        scores = step.of(Measure)
        padding = {event.level: event for event in scores if event.name == ScoreName.PADDING}
        longest = max(
            cells[0].position + (padding[name].total if name in padding else 0)
            for name, cells in texts.items()
        )
        top = self.y + HEADER
        ops, edge, accepted, drafted = [], [], 0, 0
        for row, (name, cells) in enumerate(texts.items()):
            y, got = top + row, [cell for cell in cells if kept(cell)]
            ready = next((e for e in scores if e.name == ScoreName.READINESS and e.level == name), None)
            ops += [
                self._row(name, cells, got, y, ready),
                *self._cache(name, cells, padding.get(name), longest, y),
            ]
            ops += [self._cell(name, index, cell, cells, y) for index, cell in enumerate(cells)]
            edge += [[len(got) + 0.5, y], [len(got) + 0.5, y + 1]]
            drafted += sum(cell.state not in OWN for cell in cells)
            accepted += sum(cell.state == "accepted" for cell in cells)
        self.y = top + len(texts) + GAP
        edge = [[x, y - (1 - CELL) / 2] for x, y in edge]
        ops.append(scene.Path(f"p{self.rounds}", panel="rounds", points=edge, role="ink", width=2))
        caption = self._caption(scores, accepted, drafted)
        ops += self._total(step, texts)
        look = {"text": caption, "align": "left", "role": "ink", "priority": 0}
        at = {"panel": "rounds", "x": LEFT, "y": top - HEADER / 2}
        ops.append(scene.Label(f"h{self.rounds}", **at, **look))
        ops.append(scroll_row(self.rounds, "rounds", top - HEADER, top))
        guesses = f"{accepted} of {many(drafted, 'guess', 'guesses')}"
        say = f"Round {self.rounds}: {guesses} of {many(len(texts), 'text')} accepted."
        return [*ops, scene.Front(1, self.y - GAP), scene.Say(say)]

    def _caption(self, scores, accepted: int, drafted: int) -> str:
        """The heading of a round."""
        counts = {event.name: round(event.total) for event in scores}
        parts = [f"Round {self.rounds}", f"{accepted} of {drafted} accepted" if drafted else "no guesses"]
        if ScoreName.DRAFT_LENGTH in counts:
            parts.append(f"draft length {counts[ScoreName.DRAFT_LENGTH]}")
        if ScoreName.BUDGET in counts:
            parts.append(f"budget {counts[ScoreName.BUDGET]}")
        return " · ".join(parts)

    def _total(self, step, texts) -> list[Op]:
        """The tokens of all texts so far, and the target forwards they took; what padding would add."""
        self.forwards += sum(
            e.model == "target" and e.kind != "lens" for e in step.events if isinstance(e, Forward)
        )
        ends = [cells[0].position + sum(kept(cell) for cell in cells) for cells in texts.values()]
        self.tokens += sum(kept(cell) for cells in texts.values() for cell in cells)
        self.held, self.slots = self.held + sum(ends), self.slots + max(ends) * len(ends)
        rate = f"{self.tokens / max(1, self.forwards):.1f} per forward"
        text = (
            f"{many(self.tokens, 'token')} of all texts in {many(self.forwards, 'target forward')}: {rate}."
        )
        if wasted := 100 * (self.slots - self.held) / self.slots:
            text += f" In a rectangle around the texts {wasted:.0f} % of the slots are padding."
        return [
            scene.Change("heading", heading=text, short=f"{many(self.tokens, 'token')} of all texts, {rate}")
        ]

    def _row(self, name: str, cells: list, got: list, y: float, ready) -> Op:
        """The text's name and its new tokens, in the gutters. ready: the score by which a parallel stream
        keeps its block, None for other batches.
        """
        self.written[name] = self.written.get(name, "") + "".join(self._shown(cell) for cell in got)
        return scene.Row(
            f"r{self.rounds}.{name}",
            panel="rounds",
            y0=y,
            y1=y + 1,
            rule=False,
            text=name,
            short=name.split()[-1],
            right=f"→ {cells[0].position + len(got)}",
            right_bold=f"+{len(got)}",
            right_short="",
            label_y=y + CELL / 2,
            hover=[f"{name}: …{self.written[name][-60:]}", *self._readiness(ready)],
        )

    def _readiness(self, ready) -> list[str]:
        """The scores of a parallel stream when its block was judged."""
        if ready is None:
            return []
        notes = many(round(ready.parts.get("notes", 0)), "note")
        return [f"readiness {probability(ready.total)}, having seen {notes}"]

    def _cache(self, name: str, cells: list, padding, longest: float, y: float) -> list[Op]:
        """The text's tokens so far as a box that ends at its guesses, and the padding before it."""
        held, pads = cells[0].position, round(padding.total) if padding else 0
        unit = (EDGE - LEFT) / longest
        wide, key = held * unit, f"{self.rounds}.{name}"
        hover = [f"{name}: {many(held, 'token')} before this round"]
        if padding and padding.parts.get("moved"):
            moved = round(padding.parts["moved"])
            hover.append(f"{were(moved, 'cache entry', 'cache entries')} moved to realign the rows")
        box = {"panel": "rounds", "y": round(y + CELL / 2, 3), "h": CELL}
        ops = [
            scene.Cell(
                f"c{key}",
                **box,
                x=round(EDGE - wide / 2, 3),
                w=round(wide, 3),
                state="prompt",
                fill="amount",
                weight=0.25,
                text=str(held),
                hover=hover,
            )
        ]
        if pads:
            hover = [f"{name}: {many(pads, 'slot')} of padding, so that all texts of the batch end together"]
            ops.append(
                scene.Cell(
                    f"d{key}",
                    **box,
                    x=round(EDGE - wide - pads * unit / 2, 3),
                    w=round(pads * unit, 3),
                    state="unreached",
                    fill="hatched",
                    text=str(pads),
                    hover=hover,
                )
            )
        return ops

    def _cell(self, name: str, index: int, cell, cells: list, y: float) -> Op:
        """A guess, or the target's own token, which shares a place with the guess that it replaces."""
        x, state = cell.position - cells[0].position + 1, STATES.get(cell.state, "chosen")
        shared = sum(other.position == cell.position for other in cells) > 1
        h = (CELL - 0.02) / 2 if shared else CELL
        middle = y + (CELL - h / 2 if shared and cell.state not in OWN else h / 2)
        place = {"panel": "rounds", "x": x, "y": round(middle, 3), "w": 0.98, "h": h}
        glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
        return scene.Cell(
            f"g{self.rounds}.{name}.{index}",
            **place,
            **look(state),
            **glyph,
            text=self._shown(cell),
            hover=self._hover(name, cell),
        )

    def _hover(self, name: str, cell) -> list[str]:
        text = f"{self._shown(cell)}  {cell.state if cell.state != 'settled' else 'decoded without a guess'}"
        if cell.confidence is not None:
            who = "p" if cell.state in OWN else "q"
            text += f": {who} {probability(cell.confidence)}"
        return [text, f"{name}, token {cell.position + 1}"]

    def _shown(self, cell) -> str:
        return visible(self.header.vocabulary.get(cell.token, b"?"))


def kept(cell) -> bool:
    """Whether the token is part of its text now."""
    return cell.state in ("accepted", *OWN)
