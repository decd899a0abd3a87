"""Attention in parts equals one softmax."""

import math

import torch

from decoders.memory.attention import attention_part, merge_lse
from decoders.memory.rotary import Rotary


def part(logits, values):
    """One head of width 1: a query of 1, keys that are the logits themselves."""
    keys, values = torch.tensor(logits)[None, :, None], torch.tensor(values)[None, :, None]
    return attention_part(torch.ones(1, 1, 1), keys, values, torch.zeros(1, 1, 1), 1.0)


def test_two_parts_are_the_direct_softmax():
    """Logits 0 and ln 3 with values 1 and 2; logit ln 2 with value 5: 17 / 6."""
    prefix, suffix = part([0.0, math.log(3)], [1.0, 2.0]), part([math.log(2)], [5.0])
    assert prefix[0].item() == 1.75 and math.isclose(prefix[1].item(), math.log(4), rel_tol=1e-6)
    assert math.isclose(merge_lse([prefix, suffix]).item(), 17 / 6, rel_tol=1e-6)


def test_a_part_that_nobody_sees_weighs_nothing():
    q, k = torch.randn(4, 3, 8), torch.randn(2, 5, 8)
    hidden = attention_part(q, k, k, torch.full((1, 3, 5), -torch.inf), 1.0)
    seen = attention_part(q, k, k, torch.zeros(1, 3, 5), 1.0)
    assert (hidden[1] == -torch.inf).all() and not hidden[0].any()
    torch.testing.assert_close(merge_lse([hidden, seen]), seen[0])


def test_turning_adds_positions():
    rotary, x = Rotary(torch.tensor([1.0, 0.1])), torch.randn(3, 4, dtype=torch.float64)
    there = rotary.turn(x, torch.tensor([5, 6, 7]))
    torch.testing.assert_close(rotary.turn(there, torch.tensor([-5, -6, -7])), x)
    products = rotary.turn(x, torch.tensor([9, 9, 9])) @ rotary.turn(x, torch.tensor([4, 4, 4])).T
    torch.testing.assert_close(products, rotary.turn(x, torch.tensor([5, 5, 5])) @ x.T)
