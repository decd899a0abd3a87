"""What tokens filled together cost, on tables whose joint is known."""

import math
from itertools import product

import pytest

from decoders.diffusion.canvas_conflicts import COST
from decoders.lane import Lane, Limits
from decoders.models.tabular_denoiser import TabularDenoiser
from decoders.trace.events import Depend
from decoders.trace.scores import Score
from visualizers.registry import deltas
from visualizers.scene.view import Header

JOINT = {answer: float(1 + n * n % 7) for n, answer in enumerate(product((0, 1), repeat=3))}


def run(seed=0, **parameters):
    target, given = TabularDenoiser(JOINT, 2), {"conflicts": True} | parameters
    return Lane("masked_diffusion", [0], {"target": target}, given, seed, Limits(3)).run()


def costs(trace):
    return [score.total for step in trace.steps for score in step.of(Score) if score.name == COST]


@pytest.mark.parametrize("seed", range(6))
def test_the_cost_is_exact_on_the_oracle(seed):
    """The log of the product of marginals over the joint probability of what was drawn."""
    trace = run(seed, tokens_per_forward=3, temperature=1.0)
    drawn, total = tuple(trace.output()), sum(JOINT.values())
    marginals = [sum(w for a, w in JOINT.items() if a[i] == drawn[i]) / total for i in range(3)]
    expected = math.log(math.prod(marginals) / (JOINT[drawn] / total))
    assert costs(trace) == [pytest.approx(expected, abs=1e-6)]
    assert trace.costs.target_forwards == 1 and trace.costs.lens_forwards == 1


def test_the_mean_cost_of_draws_is_the_total_correlation_of_the_product():
    """Of draws that the joint allows the log ratio is what ParallelBench's theory sums: here over a table
    of two coins that agree three times of four.
    """
    coins = {(0, 0): 3.0, (1, 1): 3.0, (0, 1): 1.0, (1, 0): 1.0}
    mean, count = 0.0, 400
    for seed in range(count):
        target, given = TabularDenoiser(coins, 2), {"conflicts": True, "tokens_per_forward": 2}
        given |= {"temperature": 1.0}
        trace = Lane("masked_diffusion", [0], {"target": target}, given, seed, Limits(2)).run()
        mean += costs(trace)[0] / count
    divergence = sum(
        0.25 * math.log(0.25 / (weight / 8)) for weight in coins.values()
    )  # KL(product || joint)
    assert mean == pytest.approx(divergence, abs=0.06)


def test_one_token_per_forward_costs_nothing():
    trace = run()
    assert costs(trace) == [0.0, 0.0, 0.0] and trace.costs.lens_forwards == 0
    assert not [link for step in trace.steps for link in step.of(Depend)]


def test_the_grid_joins_the_pair_and_says_the_cost():
    coins = {(0, 1): 4.0, (1, 0): 4.0, (0, 0): 1.0}
    given = {"conflicts": True, "tokens_per_forward": 2}
    trace = Lane("masked_diffusion", [0], {"target": TabularDenoiser(coins, 2)}, given, 0, Limits(2)).run()
    (link,) = [link for step in trace.steps for link in step.of(Depend)]
    assert (link.kind, link.source, link.target) == ("conflict", 1, 2)
    assert link.weight == pytest.approx(math.log(9 / 25))
    head, steps = deltas("canvas_grid", Header.of(trace), trace.steps)
    ops = {op["id"]: op for delta in steps for op in delta["ops"] if "kind" in op}
    assert head["first"] == 0 and ops["k1"]["text"] == "1.5"  # log2(25/81 : 1/9)
    assert ops["c1-2"]["kind"] == "path" and "2.8 times less likely" in ops["c1-2"]["hover"][1]
