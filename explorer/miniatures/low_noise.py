"""The velocity becomes steep as the noise vanishes

A nearly noise-free point lies close to the data, and the velocity pulls it the rest of the way. The smaller
the noise, the more a small displacement changes the exact velocity: the regression that learns it is badly
conditioned. At dark points the velocity is steep. The paper trains with a contrastive loss in this range,
which is left out here.
"""

import numpy as np

from explorer.experiments.pictures import Chart, Line
from explorer.miniatures import Panel, Story
from explorer.miniatures.spiral import data, noise, velocity

PAPER = "flow-matching-in-the-low-noise-regime"
POINTS = 240
LEVELS = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025, 0.0125)  # share of noise, 1 - t
WIDTHS = (0.06, 0.02, 0.005)  # standard deviations of the data around their centres


def story() -> Story:
    """The steepness of the exact velocity at each noise level, for ever thinner data on the spiral."""
    clean, wild = data(POINTS), noise(POINTS)
    frames = [(1 - level) * clean + level * wild for level in LEVELS]
    steep = {
        width: [steepness(x, 1 - level, width) for x, level in zip(frames, LEVELS, strict=True)]
        for width in WIDTHS
    }
    medians = {width: [float(np.median(of)) for of in per_level] for width, per_level in steep.items()}
    shown = steep[WIDTHS[-1]]
    largest = np.log(np.percentile(shown[-1], 90))
    panel = Panel(
        "Data and noise; dark where the velocity is steep",
        frames,
        [f"noise {level:g}" for level in LEVELS],
        shades=[np.clip(np.log(np.maximum(of, 1)) / largest, 0, 1) for of in shown],
    )
    lines = [
        Line(f"data of width {width:g}", [[level, m] for level, m in zip(LEVELS, per_level, strict=True)])
        for width, per_level in medians.items()
    ]
    narrow, wide = medians[WIDTHS[-1]], medians[WIDTHS[0]]
    return Story(
        [panel],
        [
            f"For data of width {WIDTHS[-1]:g}, a displacement changes the velocity by {narrow[1]:.1f} times "
            f"its own length at noise {LEVELS[1]:g} (median), and by {narrow[-1]:.0f} times at noise "
            f"{LEVELS[-1]:g}.",
            f"For data of width {WIDTHS[0]:g} it is at most {max(wide):.0f} times, and {wide[-1]:.0f} "
            f"times at noise {LEVELS[-1]:g}: the width of the data limits the growth.",
        ],
        Chart("Steepness of the exact velocity by noise", "noise", "steepness", lines, log=True),
    )


def steepness(x: np.ndarray, t: float, width: float) -> np.ndarray:
    """The largest singular value [N] of the velocity's Jacobian at points x [N, 2], by finite differences."""
    h = 1e-5
    columns = [(velocity(x + h * e, t, width) - velocity(x - h * e, t, width)) / (2 * h) for e in np.eye(2)]
    return np.linalg.svd(np.stack(columns, -1), compute_uv=False)[:, 0]
