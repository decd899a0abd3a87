"""Orders of shuffled words: the likeliest of all, known places that stay, a pointer that writes each word
once.
"""

from itertools import permutations

import pytest
import torch

from explorer.experiments.models.word_order import (
    HIDDEN,
    Places,
    Pointer,
    alone,
    assigned,
    at_once,
    in_rounds,
    left_to_right,
)

ROWS = torch.randint(20, (3, 5), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def places():
    torch.manual_seed(0)
    return Places(20, 5, 16, 1, 2).eval()


@pytest.fixture
def pointer():
    torch.manual_seed(0)
    return Pointer(20, 5, 16, 2, 2).eval()


def test_the_assignment_is_the_likeliest_of_all_orders():
    torch.manual_seed(1)
    logprobs = torch.randn(4, 4).log_softmax(-1)
    best = max(permutations(range(4)), key=lambda order: sum(logprobs[w, p] for p, w in enumerate(order)))
    assert assigned(logprobs).tolist() == list(best)


def test_places_alone_may_take_a_word_twice():
    assert alone(torch.tensor([[0.0, 0.0], [-1.0, -1.0]])).tolist() == [0, 0]


def test_one_round_is_the_assignment_and_every_order_has_each_word_once(places, pointer):
    once = at_once(places, ROWS)
    assert torch.equal(in_rounds(places, ROWS, 1), once)
    for order in (once, in_rounds(places, ROWS, 5), left_to_right(pointer, ROWS, 3)):
        assert order.sort(1).values.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_without_known_places_the_order_of_the_input_does_not_matter(places):
    turned = ROWS.flip(1)
    hidden = torch.full_like(ROWS, HIDDEN)
    assert torch.allclose(places(ROWS, hidden).flip(1), places(turned, hidden), atol=1e-5)


def test_a_beam_as_wide_as_all_orders_finds_the_likeliest(pointer):
    row = ROWS[:1, :3]

    def score(order):
        bag, total = pointer.encode(row), 0.0
        for at in range(3):
            logits = pointer.point(bag, row[:, list(order[:at])])[0, -1]
            logits[list(order[:at])] = float("-inf")
            total += float(logits.log_softmax(-1)[order[at]])
        return total

    best = max(permutations(range(3)), key=score)
    with torch.no_grad():
        assert left_to_right(pointer, row, 6)[0].tolist() == list(best)


def test_both_learn_an_order(places, pointer):
    rows = torch.arange(20).view(4, 5)
    for model, loss in ((places, lambda: places.loss(rows, 0.5)), (pointer, lambda: pointer.loss(rows))):
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        for _ in range(60):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    turned = rows[:, [3, 1, 0, 4, 2]]
    for order in (at_once(places, turned), left_to_right(pointer, turned)):
        assert torch.equal(turned.gather(1, order), rows)
