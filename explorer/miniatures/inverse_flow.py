"""A flow to noise and back: exactly and one by one, or approximately and at once

A normalizing flow maps data to noise invertibly. This one is autoregressive and exact: each coordinate goes
through its distribution function given the ones before it. Its inverse has to find the first coordinate
before it can compute the second. The paper learns the inverse as a separate network that gives all
coordinates in one pass; here a small regression does.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from explorer.miniatures import Panel, Story
from explorer.miniatures.spiral import EDGE, WIDTH, Fit, centres, data, error, noise

PAPER = "bidirectional-normalizing-flow"
POINTS, SAMPLES, FEATURES = 240, 4000, 256
HALVINGS = 50  # steps of the bisection that inverts a distribution function


def story() -> Story:
    """Fresh noise to data by both inverses, and the error of a round trip."""
    known = data(SAMPLES, 6)
    at_once = Fit(to_noise(known), known, FEATURES)
    start = noise(POINTS)
    x1 = first(start[:, 0])
    back = np.stack([x1, second(start[:, 1], x1)], 1)
    held_out = data(1000, 8)
    z = to_noise(held_out)
    y1 = first(z[:, 0])
    exact = error(np.stack([y1, second(z[:, 1], y1)], 1), held_out)
    learned = error(at_once(z), held_out)
    halfway = np.stack([x1, start[:, 1]], 1)
    return Story(
        [
            Panel(
                "Exact: one coordinate, then the other",
                [start, halfway, back],
                ["noise", "the first", "both"],
                behind=held_out,
            ),
            Panel("Learned: both in one pass", [start, at_once(start)], ["noise", "both"], behind=held_out),
        ],
        [
            f"Mapped to noise and back by the exact inverse, held-out points return to within {exact:.0e}; "
            f"by the learned one they end {learned:.2f} from where they were (root mean square).",
            "The exact inverse takes as many passes as there are coordinates, the learned one a single pass.",
        ],
    )


def to_noise(x: np.ndarray) -> np.ndarray:
    """Maps points [N, 2] of the data to standard Gaussian ones, one coordinate after the other."""
    return np.stack([ndtri(inside(of_first(x[:, 0]))), ndtri(inside(of_second(x[:, 1], x[:, 0])))], 1)


def of_first(value: np.ndarray) -> np.ndarray:
    """The distribution function [N] of the first coordinate."""
    return ndtr((value[:, None] - centres()[:, 0]) / WIDTH).mean(1)


def of_second(value: np.ndarray, x1: np.ndarray) -> np.ndarray:
    """The distribution function [N] of the second coordinate, given the first."""
    far = ((x1[:, None] - centres()[:, 0]) / WIDTH) ** 2 / 2
    weights = np.exp(far.min(1, keepdims=True) - far)
    below = ndtr((value[:, None] - centres()[:, 1]) / WIDTH)
    return (weights * below).sum(1) / weights.sum(1)


def first(z: np.ndarray) -> np.ndarray:
    """The first coordinates [N] of the points that map to z [N]."""
    return bisected(of_first, ndtr(z))


def second(z: np.ndarray, x1: np.ndarray) -> np.ndarray:
    """The second coordinates [N] of the points with first coordinates x1 [N] that map to z [N]."""
    return bisected(lambda value: of_second(value, x1), ndtr(z))


def bisected(increasing, wanted: np.ndarray) -> np.ndarray:
    """The arguments at which an increasing function has the values `wanted` [N], by bisection."""
    low, high = np.full(len(wanted), -2 * EDGE), np.full(len(wanted), 2 * EDGE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = increasing(middle) < wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2


def inside(share: np.ndarray) -> np.ndarray:
    """Probabilities [N] clipped away from 0 and 1, whose quantiles are infinite."""
    return np.clip(share, 1e-12, 1 - 1e-12)
