"""A loss curve as a small SVG for the model's card, readable on light and dark pages."""

import json
import math
from collections.abc import Sequence

from decoders.packages import assets

PALETTE = json.loads((assets() / "palette.json").read_text("utf-8"))
WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 44, 110, 30, 40  # room for the numbers, the names of the lines, title, axis
NAMES = ("training", "held out")
APART = 16  # least distance of the two names
STEPS = tuple(k * 10.0**e for e in range(-3, 4) for k in (1, 2, 5))  # between two ticks


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`: about this many, at least two."""
    step = next((s for s in STEPS if (high - low) / s <= about), STEPS[-1])
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [round(step * i, 6) for i in range(first, last + 1)]


def colours(theme: str) -> str:
    """The CSS rules of one theme."""
    surface = PALETTE["surface"][theme]
    return (
        f".back{{fill:{surface['panel']}}}text{{fill:{surface['soft']}}}.strong{{fill:{surface['text']}}}"
        f".grid{{stroke:{surface['grid']}}}.held{{stroke:{surface['text']}}}.read{{stroke:{surface['soft']}}}"
    )


def loss_picture(curve: Sequence[tuple[float, float, float]], title: str) -> str:
    """The SVG of (million tokens, training loss, held-out loss) points; the last values are printed beside
    the ends of the lines. title: plain ASCII words without markup.
    """
    last = max(point[0] for point in curve)
    losses = [value for point in curve for value in point[1:]]
    up = ticks(min(losses), max(losses))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(tokens: float) -> float:
        return LEFT + wide * tokens / last

    def y(loss: float) -> float:
        return TOP + high * (up[-1] - loss) / (up[-1] - up[0])

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="{title}">',
        "<style>text{font:11px system-ui,sans-serif}.strong{font-weight:600}"
        ".held,.read{fill:none;stroke-width:2.2}.read{stroke-width:1.6;stroke-dasharray:5 3}"
        f"{colours('light')}@media(prefers-color-scheme:dark){{{colours('dark')}}}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="strong" x="{LEFT}" y="19">{title}</text>',
    ]
    for value in up:
        line = f'<path class="grid" d="M{LEFT} {y(value):.1f}H{LEFT + wide}"/>'
        parts.append(f'{line}<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in (tick for tick in ticks(0.0, last) if tick <= last):
        at = f'x="{x(value):.1f}" y="{TOP + high + 17}"'
        parts.append(f'<text {at} text-anchor="middle">{value:g}</text>')
    middle = LEFT + wide / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 7}" text-anchor="middle">million tokens read</text>')
    ends = [y(value) for value in curve[-1][1:]]
    if abs(ends[0] - ends[1]) < APART:
        centre, below = sum(ends) / 2, 1 if ends[0] >= ends[1] else -1
        ends = [centre + below * APART / 2, centre - below * APART / 2]
    for which, (kind, name) in enumerate(zip(("read", "held"), NAMES, strict=True), 1):
        points = " ".join(f"{x(point[0]):.1f},{y(point[which]):.1f}" for point in curve)
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
        at = f'x="{x(curve[-1][0]) + 8:.1f}" y="{ends[which - 1] + 4:.1f}"'
        strong = ' class="strong"' if kind == "held" else ""
        parts.append(f"<text{strong} {at}>{name} {curve[-1][which]:.2f}</text>")
    return "\n".join([*parts, "</svg>", ""])
