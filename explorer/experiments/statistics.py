"""Figures that several experiments quote: whether two shares differ, how alike texts are."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev

BLEU_ORDER = 4


def sign_test(won: int, lost: int) -> float:
    """The exact two-sided p of a sign test: how often a fair coin would split `won + lost` cases at least
    this unevenly.
    """
    from scipy.stats import binomtest  # takes two seconds to import, and only experiments need it

    return float(binomtest(won, won + lost).pvalue) if won + lost else 1.0


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Rank correlation (Spearman 1904); None if all values of one variable are equal."""
    from scipy.stats import spearmanr

    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(spearmanr(one, other).statistic)


def grams(tokens: Sequence[int], n: int) -> list[tuple[int, ...]]:
    """The n-grams of a text, in order."""
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def distinct(texts: list[list[int]], n: int) -> float:
    """distinct-n: the share of distinct n-grams among all n-grams of some texts (Li et al. 2016)."""
    all_grams = [gram for text in texts for gram in grams(text, n)]
    return len(set(all_grams)) / len(all_grams) if all_grams else 0.0


def repetition(text: list[int], n: int = 4) -> float:
    """rep-n: the share of a text's n-grams that have occurred in it before (Welleck et al. 2020)."""
    all_grams = grams(text, n)
    return 1 - len(set(all_grams)) / len(all_grams) if all_grams else 0.0


def bleu(text: list[int], others: list[list[int]]) -> float:
    """BLEU of a text against several, orders 1 to 4, with add-one smoothing above order 1 so that short texts
    have a value (Papineni et al. 2002; Lin and Och 2004).
    """
    logs = []
    for n in range(1, BLEU_ORDER + 1):
        counts, best = Counter(grams(text, n)), Counter()
        for other in others:
            best |= Counter(grams(other, n))
        hits, total, added = (counts & best).total(), counts.total(), int(n > 1)
        if not hits + added:
            return 0.0
        logs.append(math.log((hits + added) / (total + added)))
    nearest = min((abs(len(other) - len(text)), len(other)) for other in others)[1]
    brevity = min(0.0, 1 - nearest / len(text))
    return math.exp(brevity + sum(logs) / BLEU_ORDER)


def self_bleu(texts: list[list[int]]) -> float:
    """The mean BLEU of each text against the others: 1 if all are equal (Zhu et al. 2018)."""
    texts = [text for text in texts if text]
    scores = [bleu(text, texts[:i] + texts[i + 1 :]) for i, text in enumerate(texts)]
    return sum(scores) / len(scores) if len(texts) > 1 else 0.0


def lead(values: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """(mean, standard error) of the paired lead of some values over others."""
    gaps = [one - other for one, other in zip(values, others, strict=True)]
    return fmean(gaps), stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else 0.0
