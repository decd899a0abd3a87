"""Note bus: which notes each of several parallel streams read, round by round, and which ones they sent.

A fold over the readiness of blocks (Measure), links of kind "note" and Cell events, as `graphs/notes.py`
reads them. One band of rows per round: above, the notes on the bus, the oldest first; below, a row for each
stream that wrote: the weight with which it read each note, the block that it wrote then, and the note that it
sent after it.
"""

from collections import defaultdict

from decoders.trace.number_format import many
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.token_text import visible
from visualizers import scene
from visualizers.graphs.notes import PLANNER, Block, Bus, text_of
from visualizers.scene import sizes
from visualizers.scene.layout import Columns, Layout, heading, scroll_row
from visualizers.scene.marks import Op
from visualizers.scene.verdict_marks import GLYPHS, look
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability, three_digits

HEADER, CELL, GAP = 0.7, 0.92, 0.3  # heights in rows: a round's heading, a cell, the space below a round
WIDE = 5  # columns of a block


@view("note_bus", "Note bus", reads=has(Measure, name=ScoreName.PLAN_ITEM))
class NoteBus:
    """x: notes in the order in which they were sent, then the block; y: rounds, and in each the streams."""

    def __init__(self, header: Header):
        self.header, self.bus = header, Bus()
        self.rounds = 0
        self.y = 0.0  # top of the next round
        # writer -> total weight with which its notes were read
        self.looked: dict[str, float] = defaultdict(float)
        self.gates: dict[str, float] = {}
        self.sent = self.taken_back = 0

    def head(self) -> Layout:
        """Title, question, layout and legend."""
        return Columns(
            question="Which stream reads whose notes, and what does it send?",
            ops=[
                heading(px_narrow=52, heading="No notes yet."),
                scene.Panel("rounds", y0=-0.1, y1=8, share=1, grow=True),
            ],
            row=sizes.BOX,
            column=sizes.SLOT,
            column_narrow=22,
            tightest_narrow=14,
            wide=34,
            widest=64,
            clip=True,
            left=66,
            left_narrow=24,
            right=74,
            right_narrow=40,
            axis=None,
            columns=2 + WIDE,
            overview="piled",
            legend=[
                ["cell:chosen", "■", "chosen", "note on the bus, and who sent it (P: the planner)"],
                ["cell:amount", "▪", "soft", "how strongly it was read, in percent"],
                ["cell:unreached", "◌", "unreached", "cannot be read yet, or not any more"],
                ["cell:accepted", "■", "accepted", "block committed; right of it the note that it sends"],
                ["cell:rejected", "✕", "rejected", "block taken back: no note"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """One round: the notes on the bus, and what every stream read, wrote and sent."""
        for score in (e for e in step.of(Measure) if e.name == ScoreName.GATE):
            self.gates[score.level] = score.total
        blocks = self.bus.take(step)
        if not blocks:
            return []
        self.rounds += 1
        kept = sum(block.sent is not None for block in blocks)
        notes = self.bus.notes[: len(self.bus.notes) - kept]  # before the streams wrote
        top = self.y + HEADER
        ops = self._bus(notes, top)
        for row, block in enumerate(blocks, 1):
            ops += self._block(block, len(notes), top + row)
            for number, weight in block.read.items():
                self.looked[notes[number].stream] += weight
        self.sent, self.taken_back = self.sent + kept, self.taken_back + len(blocks) - kept
        self.y = top + 1 + len(blocks) + GAP
        parts = [f"Round {blocks[0].round}", f"{many(len(notes), 'note')} on the bus"]
        parts.append(f"{many(kept, 'note')} sent")
        if kept < len(blocks):
            parts.append(f"{many(len(blocks) - kept, 'block')} taken back")
        words = {"text": " · ".join(parts), "align": "left", "role": "ink", "priority": 0}
        ops.append(scene.Label(f"h{self.rounds}", panel="rounds", x=0.55, y=top - HEADER / 2, **words))
        ops.append(scroll_row(self.rounds, "rounds", top - HEADER, top))
        lead, rest = self._heading()
        short = f": {self.sent} sent, {self.taken_back} taken back."
        ops.append(scene.Change("heading", lead=lead, heading=rest, short=short))
        say = f"{', '.join(parts)}. {lead}{rest}"
        return [*ops, scene.Front(len(notes) + WIDE + 1, self.y - GAP), scene.Say(say)]

    def _bus(self, notes: list, y: float) -> list[Op]:
        """The notes of a round, the oldest first."""
        key, ops = f"{self.rounds}.bus", []
        ops.append(self._row(key, "bus", "bus", y))
        for number, note in enumerate(notes):
            planned = note.stream == PLANNER
            short = "P" if planned else note.stream.split()[-1]
            hover = [f"note {number}, sent by {'the planner' if planned else note.stream}"]
            hover.append(
                "from the prompt, before round 1" if planned else f"after its block of round {note.round}"
            )
            box = {"panel": "rounds", "x": number + 1, "y": y + CELL / 2, "w": 0.94, "h": CELL}
            text = {"text": short, "node": note.node, "hover": hover}
            ops.append(scene.Cell(f"n{key}.{number}", **box, state="chosen", fill="outline", **text))
        return ops

    def _block(self, block: Block, count: int, y: float) -> list[Op]:
        """A stream's row: what it read, what it wrote, and the note that it sent."""
        key = f"{self.rounds}.{block.stream}"
        ready = f"ready {probability(block.readiness)}"
        ops = [self._row(key, block.stream, block.stream.split()[-1], y, right=ready)]
        box = {"panel": "rounds", "y": y + CELL / 2, "h": CELL}
        for number in range(count):
            at = {**box, "x": number + 1, "w": 0.94}
            if number not in block.read:
                hover = [f"{block.stream} cannot read note {number} in this round"]
                ops.append(
                    scene.Cell(f"w{key}.{number}", **at, state="unreached", fill="dotted", hover=hover)
                )
                continue
            weight = block.read[number]
            percent = f"{100 * weight:.0f}" if weight >= 0.005 else ""
            hover = [f"{block.stream} read note {number} with weight {three_digits(weight)}"]
            shade = {"state": "prompt", "fill": "amount", "weight": weight, "text": percent, "hover": hover}
            ops.append(scene.Cell(f"w{key}.{number}", **at, **shade))
        state = "rejected" if block.sent is None else "accepted"
        glyph = {"glyph": GLYPHS[state]} if state in GLYPHS else {}
        text = visible(text_of(self.header, block.tokens).encode())
        fate = "taken back, and written again" if block.sent is None else "committed"
        hover = [
            f"{text}  {fate}",
            f"readiness {probability(block.readiness)}, {many(block.visible, 'note')} seen",
        ]
        at = {**box, "x": count + 0.5 + WIDE / 2, "w": WIDE - 0.06, "node": block.node}
        ops.append(scene.Cell(f"b{key}", **at, **look(state), **glyph, text=text, hover=hover))
        if block.sent is not None:
            at = {**box, "x": count + WIDE + 1, "w": 0.94, "node": block.node}
            hover = [f"{block.stream} sends note {block.sent}", "streams that come later can read it"]
            sends = {"state": "chosen", "fill": "outline", "text": block.stream.split()[-1], "hover": hover}
            ops.append(scene.Cell(f"s{key}", **at, **sends))
        return ops

    def _row(self, key: str, text: str, short: str, y: float, right: str = "") -> Op:
        """A row's names in the gutters."""
        names = {"text": text, "short": short, "right": right, "right_short": right.removeprefix("ready ")}
        place = {"panel": "rounds", "y0": y, "y1": y + 1, "label_y": y + CELL / 2}
        return scene.Row(f"r{key}", **place, rule=False, **names)

    def _heading(self) -> tuple[str, str]:
        """Whose notes were read most, and how far the layers let them in."""
        whole = sum(self.looked.values())
        counts = f"{many(self.sent, 'note')} sent, {many(self.taken_back, 'block')} taken back"
        if not whole:
            return "No stream reads notes here", f": the gates are closed. {counts}."
        plan = f"{100 * self.looked.get(PLANNER, 0.0) / whole:.0f} %"
        gates = ", ".join(f"{layer} {three_digits(gate)}" for layer, gate in self.gates.items())
        lets = f" Gates for notes: {gates}." if gates else ""
        by_stream = {stream: weight for stream, weight in self.looked.items() if stream != PLANNER}
        if not by_stream:
            return "Only the planner's note is on the bus", f": {counts}.{lets}"
        writer = max(by_stream, key=by_stream.get)
        share = f"{100 * by_stream[writer] / whole:.0f} %"
        lead = f"Of the streams, {writer} is read most"
        return lead, f": {share} of all attention to notes, the planner {plan}. {counts}.{lets}"
