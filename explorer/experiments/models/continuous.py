"""Speculative decoding of numbers instead of tokens: accept, reject and residual hold for densities too.

Wang et al. (2024), Continuous Speculative Decoding, on two processes x_t ~ N(a x_{t-1} + b, sigma^2), target
and draft, in place of image models with a diffusion head. Text tokens are discrete, so no lane runs this; an
experiment draws it.
"""

import math
from dataclasses import dataclass

import torch

TRIES = (
    100  # maximum proposals per draw from the residual; then the last one is used, as in the authors' code
)


@dataclass(frozen=True)
class Process:
    """x_t ~ N(a x_{t-1} + b, sigma^2)."""

    a: float
    b: float
    sigma: float

    def density(self, x: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        """p(x | before), elementwise over any shape."""
        far = (x - self.a * before - self.b) / self.sigma
        return torch.exp(-far * far / 2) / (self.sigma * math.sqrt(2 * math.pi))

    def draw(self, before: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """One value after each of `before`, in its shape."""
        noise = torch.randn(before.shape, generator=generator, dtype=before.dtype)
        return self.a * before + self.b + self.sigma * noise


def ratio(
    x: torch.Tensor, before: torch.Tensor, target: Process, draft: Process, inner_temperature: float = 1.0
) -> torch.Tensor:
    """p(x) / q(x), elementwise. An inner temperature above 1 divides the exponent, as the authors' code does
    with 42: the ratio tends to sigma_q / sigma_p, whatever x is, and the target's distribution is lost.
    """
    scale = draft.sigma / target.sigma
    plain = target.density(x, before) / draft.density(x, before)
    return scale * (plain / scale) ** (1.0 / inner_temperature)


def overlap(target: Process, draft: Process, before: float) -> float:
    """The integral of min(p, q): how often a drafted value is accepted."""
    middle = [process.a * before + process.b for process in (target, draft)]
    wide = 10 * max(target.sigma, draft.sigma)
    x = torch.linspace(min(middle) - wide, max(middle) + wide, 200_001, dtype=torch.float64)
    at = torch.tensor(before, dtype=torch.float64)
    return float(torch.trapezoid(torch.minimum(target.density(x, at), draft.density(x, at)), x))


def residual(
    before: torch.Tensor, target: Process, draft: Process, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(draws [N] from norm(max(p - q, 0)), proposals [N] that each took): y ~ p is kept with probability
    max(0, 1 - q(y) / p(y)), which takes 1 / (1 - overlap) proposals on average.
    """
    kept, proposals = torch.empty_like(before), torch.zeros(len(before), dtype=torch.int64)
    open_ = torch.arange(len(before))
    for _ in range(TRIES):
        if not len(open_):
            break
        y = target.draw(before[open_], generator)
        keep = 1.0 - 1.0 / ratio(y, before[open_], target, draft)
        u = torch.rand(len(open_), generator=generator, dtype=torch.float64)
        kept[open_] = y
        proposals[open_] += 1
        open_ = open_[u >= keep]
    return kept, proposals


@dataclass
class Written:
    """The result of `decode` and its cost: values, evaluations of the target (one per round, and one per
    value of the beginning), drafted values that were tested and accepted, and proposals for each residual
    draw.
    """

    values: list[float]
    evaluations: int
    tested: int
    accepted: int
    proposals: list[int]


def decode(
    target: Process,
    draft: Process,
    length: int,
    drafted: int,
    generator: torch.Generator,
    prefilled: float = 0.0,
    inner_temperature: float = 1.0,
    first: float = 0.0,
) -> Written:
    """`length` values after `first`, `drafted` of them guessed in a round; the share `prefilled` of them, at
    the beginning, by the target alone.

    1. The draft writes a few values, each drawn from q.
    2. One evaluation of the target gives p at all of them.
    3. From left to right x passes if u < p(x) / q(x).
    4. In place of the first that fails comes a draw from norm(max(p - q, 0)); if all pass, one more from p.
    """
    written = Written([], 0, 0, 0, [])

    def last(value: float) -> torch.Tensor:
        return torch.tensor([value], dtype=torch.float64)

    while len(written.values) < length:
        tip = written.values[-1] if written.values else first
        written.evaluations += 1
        if len(written.values) < prefilled * length:
            written.values.append(float(target.draw(last(tip), generator)))
            continue
        guesses, at = [], tip
        for _ in range(min(drafted, length - len(written.values))):
            at = float(draft.draw(last(at), generator))
            guesses.append(at)
        for x in guesses:
            u = float(torch.rand(1, generator=generator, dtype=torch.float64))
            written.tested += 1
            if u >= float(ratio(last(x), last(tip), target, draft, inner_temperature)):
                y, proposals = residual(last(tip), target, draft, generator)
                written.values.append(float(y))
                written.proposals.append(int(proposals))
                break
            written.accepted += 1
            written.values.append(x)
            tip = x
        else:
            if len(written.values) < length:
                written.values.append(float(target.draw(last(tip), generator)))
    return written
