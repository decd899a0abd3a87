"""The arithmetic of phi-Decoding: means, clusters of similar texts, and the probability of each candidate."""

import math
from collections import Counter

import torch

SHARP = 0.1  # temperature of the paper's code wherever it draws by one number alone


def mean(values: list[float]) -> float:
    """The arithmetic mean; 0 for no values."""
    return sum(values) / len(values) if values else 0.0


def softmax(values: list[float], temperature: float = 1.0) -> list[float]:
    """exp(value / temperature), normalised."""
    return torch.tensor(values, dtype=torch.float64).div(temperature).softmax(0).tolist()


def lowest_kept(scores: list[float], deviations: float) -> float:
    """Width pruning: the lowest score that stays, this many standard deviations below the mean."""
    middle = mean(scores)
    deviation = math.sqrt(mean([(s - middle) ** 2 for s in scores]))
    return middle - deviations * deviation - 1e-9  # equal scores all stay, however the mean is rounded


def tf_idf(texts: list[list[int]]) -> torch.Tensor:
    """Bags of tokens as unit vectors [N, terms]: counts times ln((1 + N) / (1 + texts with it)) + 1."""
    held = Counter(token for text in texts for token in set(text))
    at = {token: i for i, token in enumerate(sorted(held))}
    rows = torch.zeros(len(texts), max(1, len(at)), dtype=torch.float64)
    for row, text in zip(rows, texts, strict=True):
        for token, count in Counter(text).items():
            row[at[token]] = count * (math.log((1 + len(texts)) / (1 + held[token])) + 1)
    return rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)


def clusters(texts: list[list[int]], max_clusters: int) -> list[int]:
    """k-means on the texts' TF-IDF vectors: the number of each text's cluster, at most `max_clusters` of
    them, in the order in which they first occur. The first centres are the first text and, one after another,
    the text farthest from all centres so far, so nothing is drawn; equal texts are never separated.
    """
    rows = tf_idf(texts)
    centres = rows[:1]
    while len(centres) < max_clusters:
        far = torch.cdist(rows, centres).amin(1)  # [N]
        if float(far.max()) < 1e-9:
            break
        centres = torch.cat([centres, rows[far.argmax()][None]])
    labels = torch.cdist(rows, centres).argmin(1)
    for _ in range(100):
        for k in range(len(centres)):
            if (labels == k).any():
                centres[k] = rows[labels == k].mean(0)
        again = torch.cdist(rows, centres).argmin(1)
        if torch.equal(again, labels):
            break
        labels = again
    order = list(dict.fromkeys(labels.tolist()))
    return [order.index(label) for label in labels.tolist()]


def shares(labels: list[int]) -> list[float]:
    """The share of all texts that are in each one's cluster."""
    sizes = Counter(labels)
    return [sizes[label] / len(labels) for label in labels]


def values(advantages: list[float], alike: list[float], tau_1: float, tau_2: float) -> list[float]:
    """R of each candidate: softmax(A / tau_1) + softmax(C / tau_2). They sum to 2."""
    pairs = zip(softmax(advantages, tau_1), softmax(alike, tau_2), strict=True)
    return [a + c for a, c in pairs]


def probabilities(
    advantages: list[float], alike: list[float], tau_1: float, tau_2: float, tau: float
) -> list[float]:
    """The paper's distribution over the candidates: exp(R / tau), normalised."""
    return softmax(values(advantages, alike, tau_1, tau_2), tau)


def probabilities_of_code(advantages: list[float], alike: list[float]) -> list[float]:
    """The distribution of the paper's code: half of softmax(A / 0.1), half of softmax(C)."""
    pairs = zip(softmax(advantages, SHARP), softmax(alike), strict=True)
    return [(a + c) / 2 for a, c in pairs]
