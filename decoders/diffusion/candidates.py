"""Which of several texts stands for all of them: the most frequent one, or the one whose word error rate
against the others is lowest (minimum Bayes risk).
"""

from collections import Counter


def edits(words: list[str], reference: list[str]) -> int:
    """The fewest words to insert, delete or replace that make one list the other (Levenshtein 1966)."""
    row = list(range(len(reference) + 1))
    for i, word in enumerate(words, 1):
        before, row = row, [i]
        for j, other in enumerate(reference, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (word != other)))
    return row[-1]


def word_error_rate(text: str, reference: str) -> float:
    """Edits per word of the reference; for an empty reference, the number of words in the text."""
    words, right = text.split(), reference.split()
    return edits(words, right) / max(1, len(right))


def error_rates(texts: list[str]) -> list[list[float]]:
    """Row i, column j: the word error rate of text i with text j as the reference."""
    return [[word_error_rate(text, reference) for reference in texts] for text in texts]


def medoid(rates: list[list[float]]) -> int:
    """The text with the lowest mean of `error_rates` against all; the first of several."""
    means = [sum(row) / len(row) for row in rates]
    return means.index(min(means))


def most_frequent(texts: list[str]) -> int:
    """The first of the texts that occur most often."""
    counts = Counter(texts)
    return max(range(len(texts)), key=lambda i: (counts[texts[i]], -i))
