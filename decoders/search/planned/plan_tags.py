"""A prompt with tags around some of its units, as tokens: how a content plan is given to the model that
writes the text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from decoders.models.token_bytes import by_name
from decoders.search.planned.discourse_units import CLOSE, OPEN, units


@dataclass(frozen=True)
class Tags:
    """The tokens in front of a unit and after it."""

    open: int
    close: int


@dataclass(frozen=True)
class Source:
    """A prompt and its units: (first token, token after the last) of each, and what it says."""

    tokens: list[int]
    spans: list[tuple[int, int]]
    texts: list[str]

    def tagged(self, plan: Iterable[int], tags: Tags) -> tuple[list[int], list[int]]:
        """The prompt with tags around the units of a plan, and where in it the prompt's own tokens stand."""
        opens, closes = ({self.spans[i][side] for i in plan} for side in (0, 1))
        out, places = [], []
        for at, token in enumerate(self.tokens):
            out += [tags.close] * (at in closes) + [tags.open] * (at in opens)
            places.append(len(out))
            out.append(token)
        return out + [tags.close] * (len(self.tokens) in closes), places


def source_of(tokens: Sequence[int], bytes_of: Callable[[int], bytes]) -> Source:
    """The units of a prompt; the whole of it is one if there is no other."""
    pieces = [bytes_of(token) for token in tokens]
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    holder = [at for at, piece in enumerate(pieces) for _ in piece]  # byte -> its token

    def token_at(place: int) -> int:
        return holder[len(text[:place].encode("utf-8", "surrogateescape"))]

    spans, texts, free = [], [], 0
    for begin, end in units(text):
        first, last = token_at(begin), token_at(end - 1)
        if (first := max(first, free)) <= last:
            free = last + 1
            spans.append((first, free))
            texts.append(text[begin:end])
    if not spans:
        spans, texts = [(0, len(tokens))], [text]
    return Source(list(tokens), spans, texts)


def tags_of(target) -> Tags | None:
    """The tags of a model; None if it has none."""
    known = by_name(target)
    return Tags(known[OPEN], known[CLOSE]) if OPEN in known and CLOSE in known else None
