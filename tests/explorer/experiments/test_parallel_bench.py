"""ParallelBench: the closed forms against joints and against lanes on the oracle; a conflict by hand."""

import math
from itertools import product

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.registry import strategies
from explorer.experiments import parallel_bench
from explorer.experiments import parallel_rules as rules
from explorer.experiments import parallel_theory as theory
from explorer.experiments.parallel_conflict import conflict

RULES = {rule.label: rule for rule in rules.RULES}
FREE = [label for label, rule in RULES.items() if rule.training_free]


def written(joint, n, seed=0, strategy="masked_diffusion", **parameters):
    """The trace of a lane on the oracle."""
    target = theory.oracle(joint)
    return Lane(strategy, [0], {"target": target}, parameters, seed, Limits(n)).run()


@pytest.mark.parametrize(
    "n, k, shuffle, replace", [
        (4, 1, 1, 1), (4, 2, 0.375, 0.65625), (4, 4, 0.09375, 0.421875),
        (6, 1, 1, 1), (6, 2, 0.3125, 0.733507), (6, 6, 0.015432, 0.401878),
    ],
)  # fmt: skip
def test_the_table_of_the_paper(n, k, shuffle, replace):
    assert theory.shuffle_accuracy(n, k) == pytest.approx(shuffle, abs=1e-6)
    assert theory.replacement_accuracy(n, k) == pytest.approx(replace, abs=1e-6)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("task", parallel_bench.JOINTS)
def test_closed_forms_are_those_of_the_joint_for_every_number_of_tokens_per_forward(task, n):
    joint, closed = parallel_bench.JOINTS[task]
    for k in range(1, n + 2):
        assert theory.accuracy(joint(n), k) == pytest.approx(closed(n, k), abs=1e-12)


def total_correlation(joint):
    """The sum of the entropies of all positions minus the joint entropy, in nats."""
    model = theory.oracle(joint)
    marginals = model.marginals([model.mask] * model.answers.shape[1])
    return float(torch.special.entr(marginals).sum() - torch.special.entr(model.weights).sum())


@pytest.mark.parametrize("n", [2, 4, 6])
def test_one_forward_is_right_with_the_exponential_of_its_price(n):
    for joint, right in parallel_bench.JOINTS.values():
        assert math.exp(-total_correlation(joint(n))) == pytest.approx(right(n, n), abs=1e-12)
    assert total_correlation(theory.shuffled(n)) == pytest.approx(theory.shuffle_correlation(n), abs=1e-12)


@pytest.mark.parametrize("k, want, slack", [(1, 1.0, 0.0), (2, 0.375, 0.08), (4, 0.09375, 0.05)])
def test_lanes_draw_right_lists_as_often_as_the_theory_says(k, want, slack):
    """400 seeds; that the shares are exact is tests/decoders/diffusion/test_masked_diffusion.py's."""
    joint, options = theory.shuffled(4), {"tokens_per_forward": k, "temperature": 1.0}
    options["order"] = "left to right"
    right = [len({*written(joint, 4, seed, **options).output()}) == 4 for seed in range(400)]
    assert sum(right) / 400 == pytest.approx(want, abs=slack)


@pytest.mark.parametrize("n", range(2, 17))
def test_the_confidence_of_a_threshold_is_not_independence(n):
    """1 - 1/n is below .9 up to 9 items and above it from 11 on; 10 stands on it, and is no promise."""
    _, _, _, right, _, forwards, _ = parallel_bench.greedily(RULES["threshold 0.9"], n)
    if n != 10:
        assert (right, forwards) == ((1.0, n) if n < 10 else (0.0, 1))


@pytest.mark.parametrize("rule", [label for label in RULES if label in ("factor 0.7", "entropy bound 0.1")])
def test_rules_that_count_what_they_fill_find_the_replaced_item(rule):
    assert all(parallel_bench.greedily(RULES[rule], n)[3] == 1.0 for n in parallel_bench.LENGTHS)


@pytest.mark.parametrize("rule", FREE)
@pytest.mark.parametrize("n", [4, 6])
def test_a_copy_is_right_with_every_rule(rule, n):
    joint, one = theory.copied(n), RULES[rule]
    assert written(joint, n, strategy=one.strategy, **one.parameters).output() == list(range(n))


def test_every_rule_is_one_of_a_strategy_that_exists():
    for rule in (*rules.RULES, *rules.VARIANTS):
        strategies()[rule.strategy].check(rule.parameters)


def test_the_rows_of_the_oracle_agree_with_the_theory():
    for *_, right, _, _, ideal in parallel_bench.drawn():
        assert right == pytest.approx(ideal, abs=1e-9)


def test_a_verdict_names_the_rules_that_miss_it_late():
    rows = [parallel_bench.greedily(RULES[r], n) for r in ("quota 1", "threshold 0.9") for n in (4, 9, 11)]
    said = parallel_bench.verdict(rows)
    assert "always found with quota 1. " in said and "threshold 0.9 from 11 items on" in said


def test_two_tokens_that_exclude_each_other_are_a_conflict():
    """Both places take item 0, with probability 5/9 each; given one of them, the other has it with 1/5."""
    joint = theory.oracle({(0, 1): 4.0, (1, 0): 4.0, (0, 0): 1.0}).joint
    found = conflict(written(joint, 2, tokens_per_forward=2, conflicts=True))
    assert (found.iteration, found.positions, found.tokens) == (1, (1, 2), (0, 0))
    assert found.pmi == pytest.approx(math.log(9 / 25))
    assert conflict(written(joint, 2, conflicts=True)) is None


def test_rules_are_left_out_where_something_was_trained_for_them():
    families = {rule.family for rule in rules.RULES if not rule.training_free}
    assert families == {rule.family for rule in (*rules.LEARNED, *rules.OTHER_MODELS)}
    assert len(families) == 4


@pytest.mark.parametrize("rule", ["FreeDave 4", "SSD 8"])
@pytest.mark.parametrize("n", parallel_bench.LENGTHS[:3])
def test_lossless_rules_find_what_one_mask_per_forward_finds(rule, n):
    one, fast = (parallel_bench.greedily(RULES[label], n) for label in ("quota 1", rule))
    assert fast[3] == one[3] == 1.0 and fast[4] >= one[4] and fast[5] <= one[5]


@pytest.mark.parametrize("rule", FREE)
def test_masks_are_counted_once_however_many_canvases_are_tried(rule):
    one = RULES[rule]
    trace = written(theory.one_replaced(5), 5, strategy=one.strategy, **one.parameters)
    assert parallel_bench.filled(trace) == 5


@pytest.mark.parametrize("total", range(5))
def test_a_total_is_reached_as_often_as_the_joint_of_all_digits_says(total):
    joint = {digits: 1.0 for digits in product(range(3), repeat=3) if sum(digits) == total}
    for k in (1, 2, 3):
        assert theory.total_accuracy(3, total, 2, k) == pytest.approx(theory.accuracy(joint, k), abs=1e-12)


def test_digits_drawn_one_by_one_always_have_their_total():
    shares = [parallel_bench.drawn_totals(k) for k in (1, 2, 4, 8)]
    assert shares[0] == pytest.approx(1.0) and shares == sorted(shares, reverse=True) and shares[-1] > 2 / 17
