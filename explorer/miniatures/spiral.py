"""The data of the miniatures: points on a spiral, from a mixture of Gaussians with exact formulas.

x_t = (1 - t) x_0 + t x_1 with Gaussian noise x_0 and data x_1 (Lipman et al., 2023, Flow Matching, without
noise at t = 1). `velocity` is the exact E[x_1 - x_0 | x_t = x], so it can be followed without training.
"""

import numpy as np
from scipy.special import erf, softmax

CENTRES, WIDTH = 40, 0.06  # components of the mixture, and the standard deviation of each
BINS, EDGE = 64, 2.4  # tokens per coordinate; coordinates range from -EDGE to EDGE
FINE = 64  # steps by which the exact flow is integrated


def centres() -> np.ndarray:
    """The means [K, 2] of the mixture, equally likely, along one and a half turns of a spiral."""
    share = np.linspace(0, 1, CENTRES)
    angle, radius = 3 * np.pi * np.sqrt(0.05 + 0.95 * share), 0.35 + 1.55 * share
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)


def noise(count: int, seed: int = 0) -> np.ndarray:
    """Standard Gaussian points [N, 2]."""
    return np.random.default_rng(seed).standard_normal((count, 2))


def data(count: int, seed: int = 1) -> np.ndarray:
    """Points [N, 2] of the mixture."""
    random = np.random.default_rng(seed)
    return centres()[random.integers(CENTRES, size=count)] + WIDTH * random.standard_normal((count, 2))


def velocity(x: np.ndarray, t: float, width: float = WIDTH) -> np.ndarray:
    """E[x_1 - x_0 | x_t = x] [N, 2] at points x [N, 2], exactly: the components' means weighted by their
    posterior probabilities.
    """
    means = centres()
    spread = (1 - t) ** 2 + (t * width) ** 2  # variance of x_t in a component
    apart = x[:, None] - t * means  # [N, K, 2]
    posterior = softmax(-(apart**2).sum(-1) / (2 * spread), axis=1)
    each = means + (t * width**2 - (1 - t)) / spread * apart
    return np.einsum("nk,nkd->nd", posterior, each)


def flow(x: np.ndarray, begin: float, end: float, steps: int = FINE) -> np.ndarray:
    """Where the exact flow takes points x [N, 2] from time `begin` to `end` (Runge-Kutta of order four)."""
    h = (end - begin) / steps
    for t in begin + h * np.arange(steps):
        a = velocity(x, t)
        b = velocity(x + h / 2 * a, t + h / 2)
        c = velocity(x + h / 2 * b, t + h / 2)
        d = velocity(x + h * c, t + h)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
    return x


def euler(x: np.ndarray, steps: int, field=velocity) -> list[np.ndarray]:
    """The points [N, 2] before and after each of `steps` equal steps along `field(x, t)`."""
    frames = [x]
    for k in range(steps):
        frames.append(frames[-1] + field(frames[-1], k / steps) / steps)
    return frames


def error(x: np.ndarray, exact: np.ndarray) -> float:
    """The root mean square distance between points [N, 2] and the exact ones [N, 2]."""
    return float(np.sqrt(((x - exact) ** 2).sum(1).mean()))


def token_by_token(count: int, seed: int = 2) -> list[np.ndarray]:
    """Samples points [N, 2] of the data autoregressively: the first token is a column of the plane, the
    second a row given the column. Frames: zeros, columns, points (at the centres of their cells).
    """
    borders = np.linspace(-EDGE, EDGE, BINS + 1)
    middles = (borders[1:] + borders[:-1]) / 2
    below = 0.5 * (1 + erf((borders[:, None, None] - centres()) / (WIDTH * np.sqrt(2))))  # [BINS + 1, K, 2]
    mass = np.diff(below, axis=0)  # of each component in each column and in each row
    random = np.random.default_rng(seed)
    columns = drawn(np.tile(mass[:, :, 0].mean(1), (count, 1)), random)
    rows = drawn(mass[columns, :, 0] @ mass[:, :, 1].T, random)
    x, y = middles[columns], middles[rows]
    zero = np.zeros(count)
    return [np.stack(pair, 1) for pair in ((zero, zero), (x, zero), (x, y))]


def drawn(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One sampled index [N] per row of weights [N, B]."""
    summed = weights.cumsum(1)
    return (summed > random.random((len(weights), 1)) * summed[:, -1:]).argmax(1)


class Fit:
    """Ridge regression on `features` random cosines of the inputs, in place of a small network."""

    def __init__(self, inputs: np.ndarray, outputs: np.ndarray, features: int, seed: int = 3):
        random = np.random.default_rng(seed)
        self.scale = random.standard_normal((inputs.shape[1], features)) * 2.5
        self.phase = random.uniform(0, 2 * np.pi, features)
        read = self.read(inputs)
        ridge = 3e-3 * len(inputs) * np.eye(read.shape[1])
        self.weights = np.linalg.solve(read.T @ read + ridge, read.T @ outputs)

    def read(self, inputs: np.ndarray) -> np.ndarray:
        """The features [N, F + D + 1] of inputs [N, D]."""
        return np.concatenate(
            [np.cos(inputs @ self.scale + self.phase), inputs, np.ones((len(inputs), 1))], 1
        )

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs [N, E] of inputs [N, D]."""
        return self.read(inputs) @ self.weights


def at(x: np.ndarray, *times: float | np.ndarray) -> np.ndarray:
    """Points [N, 2] and times as inputs [N, 2 + times] of a `Fit`."""
    return np.concatenate([x, *(np.broadcast_to(t, len(x))[:, None] for t in times)], 1)
