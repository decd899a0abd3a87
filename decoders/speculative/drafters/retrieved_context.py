"""Which chunks of a prompt its shorter view keeps: those that share rare tokens with the question."""

import math
from collections import Counter
from collections.abc import Sequence

SATURATION, LENGTH_WEIGHT = 1.2, 0.75  # BM25's k1 and b, at their usual values


def chunked(tokens: Sequence[int], size: int, ends: frozenset[int]) -> list[tuple[int, int]]:
    """`tokens` cut into chunks (start, end) of at most `size`: after the last token of `ends` that fits, if
    there is one.
    """
    chunks, start = [], 0
    while start < len(tokens):
        stop = min(start + size, len(tokens))
        if stop < len(tokens):
            stop = next((i + 1 for i in range(stop - 1, start, -1) if tokens[i] in ends), stop)
        chunks.append((start, stop))
        start = stop
    return chunks


def bm25(query: Sequence[int], documents: list[Sequence[int]]) -> list[float]:
    """How well each document fits the query: rare tokens that both have count most (Robertson and Zaragoza
    2009).
    """
    counts = [Counter(d) for d in documents]
    mean = sum(map(len, documents)) / max(1, len(documents))
    scores = [0.0] * len(documents)
    for token in set(query):
        having = sum(token in c for c in counts)
        weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for i, count in enumerate(counts):
            often = count[token]
            long = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * len(documents[i]) / mean
            scores[i] += weight * often * (SATURATION + 1) / (often + SATURATION * long)
    return scores


def best(scores: list[float], count: int) -> list[int]:
    """The `count` chunks with the highest scores, none with 0, in their own order."""
    ranked = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    return sorted(i for i in ranked if scores[i] > 0.0)
