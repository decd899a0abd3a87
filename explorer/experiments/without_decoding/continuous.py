"""Does speculative sampling work for numbers, too?

Is the accept-or-reject argument tied to tokens? Two processes draw numbers, each from a normal distribution
around the previous number; no language model is involved. A drafted number is accepted with probability
min(1, p(x)/q(x)), the ratio of the two densities, and the resulting distribution is compared with the
target's by the largest difference of the distribution functions (Kolmogorov-Smirnov). The authors' image
models divide the exponent of p/q by an inner temperature: what does that cost?
"""

import math

import torch

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.continuous import Process, decode, overlap, ratio, residual
from explorer.experiments.reading import moved, percent, rows_with

PAPERS = ("continuous-speculative-decoding-for-autoregressive-image-generation",)
DRAWS, LENGTH = 20_000, 400
SHIFTS, TEMPERATURES = (0.0, 0.5, 1.0, 2.0), (1.0, 4.0, 42.0)


def one_step(shift: float, inner: float, seed: int = 100) -> tuple[torch.Tensor, float, float | None]:
    """(outcomes [DRAWS] of one drafted number each, share accepted, proposals per rejection): the target
    draws around `shift`, the draft around 0, both with standard deviation 1.
    """
    target, draft = Process(0.0, shift, 1.0), Process(0.0, 0.0, 1.0)
    generator = torch.Generator().manual_seed(seed)
    before = torch.zeros(DRAWS, dtype=torch.float64)
    x = draft.draw(before, generator)
    u = torch.rand(DRAWS, generator=generator, dtype=torch.float64)
    rejected = u >= ratio(x, before, target, draft, inner)
    if not rejected.any():
        return x, 1.0, None
    x[rejected], proposals = residual(before[rejected], target, draft, generator)
    return x, 1.0 - float(rejected.double().mean()), float(proposals.double().mean())


def distance(values: torch.Tensor, mean: float) -> tuple[float, float]:
    """(largest distance of the values' distribution function from N(mean, 1)'s, probability of such a
    distance if they were drawn from it, by Kolmogorov's limit).
    """
    ordered = values.sort().values
    exact = torch.special.ndtr(ordered - mean)
    count = len(ordered)
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    far = float(torch.maximum((exact - steps[:-1]).abs().max(), (exact - steps[1:]).abs().max()))
    if far * math.sqrt(count) < 0.2:
        return far, 1.0
    tail = sum((-1) ** (k - 1) * math.exp(-2 * k * k * count * far * far) for k in range(1, 101))
    return far, min(1.0, max(0.0, 2 * tail))


def bell(x: float) -> float:
    """The density of N(0, 1) at x."""
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def density(values: torch.Tensor, places: list[float], width: float) -> list[list[float]]:
    """[position, share of the values around it / width]."""
    return [[at, float(((values - at).abs() < width / 2).double().mean()) / width] for at in places]


def run(models: Models) -> Result:
    """One row per shift of the draft and inner temperature; the densities for a shift of 1."""
    rows, drawn = [], {}
    for shift in progress.each(SHIFTS, until=0.8):
        for inner in TEMPERATURES:
            values, accepted, proposals = one_step(shift, inner)
            drawn[shift, inner] = values
            common = overlap(Process(0.0, shift, 1.0), Process(0.0, 0.0, 1.0), 0.0)
            formula = 1 / (1 - common) if common < 1 - 1e-6 else None
            rows.append([shift, inner, accepted, common, proposals, formula, *distance(values, shift)])
    generator = torch.Generator().manual_seed(0)
    target, draft = Process(0.8, 0.1, 1.0), Process(0.7, 0.0, 1.1)
    says = []
    for drafted in progress.each((4, 8)):
        wrote = decode(target, draft, LENGTH, drafted, generator, prefilled=0.05)
        says.append(
            f"A process of {LENGTH} numbers, {drafted} drafted per round, the first 5% by the target alone: "
            f"{wrote.accepted / wrote.tested:.0%} of the tested numbers were accepted, and an "
            f"evaluation of the target yielded {len(wrote.values) / wrote.evaluations:.2f} numbers."
        )
    exact, loose = distance(drawn[1.0, 1.0], 1.0), distance(drawn[1.0, 42.0], 1.0)
    says.append(
        f"With a draft that is off by 1 the outcome is {exact[0]:.3f} away from the target's distribution "
        f"(p {exact[1]:.2f}); with inner temperature 42 it is {loose[0]:.3f} away."
    )
    places = [round(-3 + 0.25 * i, 2) for i in range(29)]
    lines = [
        Line("target p", [[x, bell(x - 1.0)] for x in places]),
        Line("draft q", [[x, bell(x)] for x in places]),
    ]
    for inner, name in {1.0: "outcome", 42.0: "outcome, inner temperature 42"}.items():
        lines.append(Line(name, density(drawn[1.0, inner], places, 0.25)))
    columns = [
        "shift",
        "inner temperature",
        "accepted",
        "overlap of p and q",
        "proposals per rejection",
        "by the formula",
        "distance",
        "p",
    ]
    return Result(columns, rows, says, Chart("A draft that is off by 1", "x", "density", lines))


def finding(answer: dict) -> str:
    """What an inner temperature gains and costs when the draft is off by 1."""
    off = rows_with(answer, "shift", 1.0)
    plain, tempered = off[0], off[-1]
    return (
        f"With an inner temperature of {tempered['inner temperature']:g}, acceptance "
        f"{moved(plain['accepted'], tempered['accepted'], percent)}, and the distance of the outcome from "
        f"the target's distribution {moved(plain['distance'], tempered['distance'])}."
    )


def stands(answer: dict) -> Basis:
    """Draws from known distributions."""
    off = rows_with(answer, "shift", 1.0)
    shares = off[-1]["accepted"], off[0]["accepted"]
    compared = by_shares("accepted, highest inner temperature against 1", *shares, DRAWS)
    return Basis({"draws": DRAWS}, compared=[compared])
