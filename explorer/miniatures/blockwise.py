"""A specialist for every interval of time

Early in a flow all points move alike; late, each goes to its own place. Three models of the velocity are
compared: one small regression for all times; six of the same size, each for one sixth of the time, so that a
step costs the same; and one of six times the size. The paper does this with networks for images and adds
semantic features, which are left out here.
"""

import numpy as np

from explorer.experiments.pictures import Chart, Line
from explorer.miniatures import Panel, Story
from explorer.miniatures.flow_map import named, training_points
from explorer.miniatures.spiral import Fit, at, data, error, euler, flow, noise, velocity

PAPER = "blockwise-flow-matching"
POINTS, SMALL, SEGMENTS = 240, 32, 6
STEPS = (6, 12, 24, 48)


def story() -> Story:
    """Three models of the velocity, each followed from the same noise."""
    x, t = training_points()
    exact_velocity = np.concatenate([velocity(x[k : k + 1], t[k]) for k in range(len(x))])
    start, where = noise(POINTS), data(4 * POINTS)
    exact = flow(start, 0, 1)
    one = Fit(at(x, t), exact_velocity, SMALL)
    large = Fit(at(x, t), exact_velocity, SMALL * SEGMENTS)
    of = np.minimum((t * SEGMENTS).astype(int), SEGMENTS - 1)
    each = [Fit(at(x[of == s], t[of == s]), exact_velocity[of == s], SMALL) for s in range(SEGMENTS)]
    models = {
        "one small model": lambda x, t: one(at(x, t)),
        "six small models, one per sixth": lambda x, t: each[min(int(t * SEGMENTS), SEGMENTS - 1)](at(x, t)),
        "one model six times as large": lambda x, t: large(at(x, t)),
    }
    errors = {name: [error(euler(start, n, f)[-1], exact) for n in STEPS] for name, f in models.items()}
    at_24 = {name: curve[STEPS.index(24)] for name, curve in errors.items()}
    small, blocks, big = at_24.values()
    lines = [
        Line(name, [[n, e] for n, e in zip(STEPS, curve, strict=True)]) for name, curve in errors.items()
    ]
    return Story(
        [Panel(sentence(name), euler(start, 12, f), named(12), behind=where) for name, f in models.items()],
        [
            f"After 24 steps the six small models end {blocks:.2f} from the exact end, the one small model "
            f"{small:.2f}, at the same cost per step.",
            f"The large model, whose steps cost six times as much, ends {big:.2f} from it.",
        ],
        Chart("Distance from the exact end by number of steps", "steps", "distance", lines, log=True),
    )


def sentence(name: str) -> str:
    """The name with a capital first letter."""
    return name[0].upper() + name[1:]
