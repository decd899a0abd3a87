"""Steps that know when they end

A velocity says how a point moves now; following it in a few large steps misses the data. A flow map gets the
times at which a step begins and ends and returns the mean velocity in between, so one step may suffice. Both
are learned here from the exact flow by the same small regression. The paper turns a trained image model into
such a map by giving its last blocks the time at which the step ends. For comparison, the same data are
sampled token by token: a column, then a row.
"""

from collections.abc import Callable

import numpy as np

from explorer.experiments.pictures import Chart, Line
from explorer.miniatures import Panel, Story
from explorer.miniatures.spiral import Fit, at, data, error, euler, flow, noise, token_by_token, velocity

PAPER = "decoupled-meanflow"
POINTS, FEATURES, SAMPLES = 240, 256, 4000
KNOTS = 8  # intervals of time; the map learns mean velocities between their ends
STEPS = (1, 2, 4, 8, 16)


def story() -> Story:
    """The velocity and the flow map from the same noise, in one to sixteen steps; and token by token."""
    start = noise(POINTS)
    exact = flow(start, 0, 1)
    speed, mean, where = learned_velocity(), learned_map(), data(4 * POINTS)
    errors = {
        "exact velocity": [error(euler(start, n)[-1], exact) for n in STEPS],
        "learned velocity": [error(euler(start, n, speed)[-1], exact) for n in STEPS],
        "learned flow map": [error(jumps(start, n, mean)[-1], exact) for n in STEPS if n <= KNOTS],
    }
    lines = [Line(name, [[n, e] for n, e in zip(STEPS, at, strict=False)]) for name, at in errors.items()]
    panels = [
        Panel("Four steps along the learned velocity", euler(start, 4, speed), named(4), behind=where),
        Panel("One step of the learned flow map", jumps(start, 1, mean), named(1), behind=where),
        Panel(
            "Token by token",
            token_by_token(POINTS),
            ["nothing yet", "a column each", "a row each"],
            behind=where,
        ),
    ]
    mapped, followed = errors["learned flow map"], errors["learned velocity"]
    return Story(
        panels,
        [
            f"One step of the learned map ends {mapped[0]:.2f} from where the exact flow ends (root mean "
            f"square). One step along the learned velocity ends {followed[0]:.2f} from it, four steps "
            f"{followed[2]:.2f}.",
            f"More steps of the map: four end {mapped[2]:.2f} from it, eight {mapped[3]:.2f}.",
        ],
        Chart("Distance from the exact end by number of steps", "steps", "distance", lines, log=True),
    )


def named(steps: int) -> list[str]:
    """The names of the frames of this many equal steps: their times."""
    return [f"t = {k / steps:.2g}" for k in range(steps + 1)]


def training_points() -> tuple[np.ndarray, np.ndarray]:
    """Points [N, 2] of the path and their times [N]."""
    t = np.random.default_rng(4).random(SAMPLES)
    return (1 - t)[:, None] * noise(SAMPLES, 5) + t[:, None] * data(SAMPLES, 6), t


def learned_velocity() -> Callable[[np.ndarray, float], np.ndarray]:
    """A regression on the exact velocity; `f(x, t)`."""
    x, t = training_points()
    exact = np.concatenate([velocity(x[k : k + 1], t[k]) for k in range(SAMPLES)])
    fit = Fit(at(x, t), exact, FEATURES)
    return lambda x, t: fit(at(x, t))


def learned_map() -> Callable[[np.ndarray, float, float], np.ndarray]:
    """A regression on the exact mean velocity between any two of the knots; `f(x, begin, end)`."""
    times = np.linspace(0, 1, KNOTS + 1)
    path = [noise(SAMPLES // 4, 7)]
    for begin, end in zip(times, times[1:], strict=False):
        path.append(flow(path[-1], begin, end, 4))
    pairs = [(i, j) for i in range(KNOTS) for j in range(i + 1, KNOTS + 1)]
    inputs = np.concatenate([at(path[i], times[i], times[j]) for i, j in pairs])
    means = np.concatenate([(path[j] - path[i]) / (times[j] - times[i]) for i, j in pairs])
    fit = Fit(inputs, means, FEATURES)
    return lambda x, begin, end: fit(at(x, begin, end))


def jumps(x: np.ndarray, steps: int, mean) -> list[np.ndarray]:
    """The points [N, 2] before and after each of `steps` equal steps of a flow map `mean(x, begin, end)`."""
    frames = [x]
    for k in range(steps):
        frames.append(frames[-1] + mean(frames[-1], k / steps, (k + 1) / steps) / steps)
    return frames
