"""What the tokens of a text belong to: spans by delimiters, and loops. For views that draw a text."""

from collections.abc import Iterator
from typing import Any

from decoders.trace.repetition import Loop, Repeats
from decoders.trace.spans import Spans, delimiters_of
from visualizers import scene
from visualizers.scene.marks import Op
from visualizers.scene.view import Header

LOOP = "loop"  # the role of a copy in a loop
LEGEND = [
    ["band:reasoning", "▮", "reasoning", "reasoning"],
    ["band:answer", "▮", "answer", "answer"],
    ["band:tool call", "▮", "tool call", "tool call"],
    ["band:loop", "▮", "loop", "copy in a loop"],
]


class TextSpans:
    """`feed` reads the next token of the output."""

    def __init__(self, header: Header):
        self.vocabulary = header.vocabulary
        self.spans = Spans(delimiters_of(header.parameters), map(self._bytes, header.prompt))
        self.nodes = list(range(len(header.prompt)))  # of the tokens, in order
        self.before = len(header.prompt)
        self.repeats = Repeats()
        self.newest: Loop | None = None
        self.loops = 0
        self.copied: dict[int, list[int]] = {}  # node -> number of its loop, which copy, tokens of one

    def _bytes(self, token: int) -> bytes:
        return self.vocabulary.get(token, b"")

    def of_prompt(self) -> dict[int, str]:
        """Node of the prompt -> the part that it belongs to."""
        return {node: str(part) for node, part in enumerate(self.spans.parts[: self.before]) if part}

    def feed(self, node: int, token: int) -> dict[int, dict[str, Any]]:
        """Node -> its fields of a Chip that are new: `part`, `loop`."""
        self.nodes.append(node)
        found: dict[int, dict[str, Any]] = {}
        for at in self.spans.feed(self._bytes(token)):
            if part := self.spans.parts[at]:
                found.setdefault(self.nodes[at], {})["part"] = str(part)
        self.repeats.feed(token)
        for other, place in self._loop():
            found.setdefault(other, {})["loop"] = self.copied[other] = place
        return found

    def _loop(self) -> Iterator[tuple[int, list[int]]]:
        """Nodes that are found to be in a loop, with their place in it. Of tokens that two loops share, the
        later one has those of the former's unfinished copy.
        """
        loop, text, before = self.repeats.loop, self.repeats.text, self.newest
        if loop is None or not self.repeats.looping:
            return
        first = len(text) - 1
        if before is None or (loop.first, loop.period) != (before.first, before.period):
            self.loops, first = self.loops + 1, loop.first
        self.newest = loop
        whole = before.first + before.copies * before.period if before else 0
        for place in range(first, len(text)):
            node = self.nodes[self.before + place]
            if node not in self.copied or place >= whole:
                yield node, [self.loops, (place - loop.first) // loop.period, loop.period]


def bands(found: dict[int, dict[str, Any]], columns: dict[int, int], panel: str) -> list[Op]:
    """The bands behind columns of a panel, from what `TextSpans.feed` has found. columns: node -> column."""
    made: list[Op] = []
    for node, fields in found.items():
        if (x := columns.get(node)) is None:
            continue
        ends: dict[str, Any] = {"panel": panel, "x0": x - 0.5, "x1": x + 0.5, "aside": True}
        if part := fields.get("part"):
            made.append(scene.Band(f"part{x}-{part}", role=part, **ends))
        number, copy, _ = fields.get("loop", (0, 0, 0))
        if copy:
            made.append(scene.Band(f"loop{number}-{x}", role=LOOP, **ends))
    return made
