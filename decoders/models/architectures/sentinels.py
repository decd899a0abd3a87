"""Masked spans and how they are filled: spans, or all occurrences of a name, become sentinels, and the answer
lists each sentinel with the tokens that it replaced (T5, Raffel et al. 2020; CodeT5, Wang et al. 2021).
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]  # (first place, place after the last one)


@dataclass(frozen=True)
class Spliced:
    """A text with its spans filled in. missing: sentinels that the answer lacks; repeated: those that it has
    more than once. Both are replaced by nothing.
    """

    text: list[int]
    missing: list[int]
    repeated: list[int]


def random_spans(
    length: int, rng: random.Random, share: float = 0.15, mean: int = 3, max_spans: int = 8
) -> list[Span]:
    """Spans that cover about `share` of a text, `mean` tokens each on average, and do not touch."""
    count = max(1, min(max_spans, round(length * share / mean)))
    sizes = [rng.randint(1, 2 * mean - 1) for _ in range(count)]
    free = length - sum(sizes) - count + 1  # at least one token between two spans
    if free < 0:
        return [(0, min(mean, length))]
    cuts, at, spans = sorted(rng.randint(0, free) for _ in range(count)), 0, []
    for number, (cut, size) in enumerate(zip(cuts, sizes, strict=True)):
        begin = cut + at + number
        spans.append((begin, begin + size))
        at += size
    return spans


def with_holes(
    text: Sequence[int], groups: Iterable[Sequence[Span]], sentinels: Sequence[int], end: int
) -> tuple[list[int], list[int]]:
    """(source, answer): all spans of a group, which hold the same tokens, become one sentinel, with groups in
    the order of their first spans; the answer is `<s0> span <s1> span ... end`.
    """
    source, answer, at = [], [], 0
    ordered = sorted((sorted(group) for group in groups), key=lambda group: group[0])
    marked = sorted((span, sentinels[number]) for number, group in enumerate(ordered) for span in group)
    for (begin, behind), sentinel in marked:
        source += [*text[at:begin], sentinel]
        at = behind
    for number, group in enumerate(ordered):
        answer += [sentinels[number], *text[slice(*group[0])]]
    return [*source, *text[at:]], [*answer, end]


def fills(answer: Sequence[int], sentinels: Sequence[int], end: int) -> list[tuple[int, list[int]]]:
    """(sentinel, tokens after it) in the order of an answer, up to its end; tokens before the first sentinel
    are ignored.
    """
    known, named = set(sentinels), []
    for token in answer:
        if token == end:
            break
        if token in known:
            named.append((token, []))
        elif named:
            named[-1][1].append(token)
    return named


def splice(source: Sequence[int], answer: Sequence[int], sentinels: Sequence[int], end: int) -> Spliced:
    """A source with the answer's fills; every occurrence of a sentinel gets the same one."""
    named = fills(answer, sentinels, end)
    often = [sentinel for sentinel, _ in named]
    asked = list(dict.fromkeys(token for token in source if token in set(sentinels)))
    missing = [one for one in asked if one not in often]
    repeated = [one for one in asked if often.count(one) > 1]
    fill = {one: tokens for one, tokens in named if one not in repeated}
    text = []
    for token in source:
        text += fill.get(token, []) if token in asked else [token]
    return Spliced(text, missing, repeated)
