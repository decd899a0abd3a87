"""What a lens has seen: events with levels, in the words of traces."""

from dataclasses import dataclass, field
from typing import Any

from decoders.trace.events import Cell, Distribution, Event, Forward, event_to_json


@dataclass
class LensFrame:
    """What a lens says of a text. The `node` of its events is a position of the text, counted from 0, their
    `level` one of `levels`.
    """

    lens: str
    title: str
    tokens: list[int]  # the text that was read
    levels: list[str]  # from the bottom up: "embeddings", "layer 1" ...
    events: list[Event]
    forwards: list[Forward]  # what it cost: kind "lens", counted apart from any lane's
    says: str  # the main thing in one sentence
    words: dict[int, str] = field(default_factory=dict)  # token -> its text, of the text and of all events
    source: list[int] = field(default_factory=list)  # what an encoder has read
    data: dict[str, Any] = field(default_factory=dict)  # what no event holds: numbers and tensors of one lens

    def of(self, kind: type, /, **wanted: Any) -> list:
        """The events of one type whose fields have these values, in order."""
        return [
            e
            for e in self.events
            if isinstance(e, kind) and all(getattr(e, name) == value for name, value in wanted.items())
        ]

    @property
    def named_tokens(self) -> set[int]:
        """The tokens of the text, and those that events name."""
        offered = {int(token) for one in self.of(Distribution) for token, _ in one.top}
        return {*self.tokens, *self.source, *offered, *(cell.token for cell in self.of(Cell))}

    @property
    def cost(self) -> str:
        """What it cost, in words."""
        tokens, seconds = sum(f.tokens for f in self.forwards), sum(f.seconds for f in self.forwards)
        times = f"{len(self.forwards)} lens forward" + ("" if len(self.forwards) == 1 else "s")
        return f"{times} over {tokens:,} tokens, {1000 * seconds:.0f} ms, counted in no lane."

    def to_json(self) -> dict:
        """All but `data`, which is a lens's own."""
        return {
            "lens": self.lens,
            "title": self.title,
            "says": self.says,
            "cost": self.cost,
            "source": self.source,
            "tokens": self.tokens,
            "words": {str(token): text for token, text in sorted(self.words.items())},
            "levels": self.levels,
            "events": [event_to_json(event) for event in self.events],
            "forwards": [event_to_json(forward) for forward in self.forwards],
        }


def level_names(layers: int) -> list[str]:
    """The levels of a stack: its embeddings, and what leaves each layer."""
    return ["embeddings", *(f"layer {n}" for n in range(1, layers + 1))]
