"""Neurons that are special for a domain: the ranking by hand, and what is held stays held."""

import pytest
import torch

from explorer.experiments import find_stored
from explorer.experiments.neuron_bricks import (
    AT_RANDOM,
    SHARES,
    activations,
    average_precision,
    held,
    loss,
    neurons,
)
from explorer.experiments.reading import rows_of


def test_average_precision_by_hand():
    values = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    right = torch.tensor([True, False, True, False])
    found = average_precision(values, right)  # ranks 1 and 3 of the first, 2 and 4 of the second
    assert found.tolist() == pytest.approx([(1 / 1 + 2 / 3) / 2, (1 / 2 + 2 / 4) / 2])


@torch.inference_mode()
def test_chosen_neurons_are_held_and_all_others_left_alone(tiny_model):
    model, text = tiny_model().model, [3, 9, 4, 7, 1, 5]
    plain = activations(model, text)
    mean = plain.mean(0)
    nothing = torch.full_like(mean, float("nan"))
    assert loss(model, [text], nothing) == pytest.approx(loss(model, [text]))
    layers, width = mean.shape
    last = (layers - 1) * width  # the first neuron of the last layer: no other layer can see it
    with neurons(model, held(mean, torch.tensor([last]))) as seen:
        model(torch.tensor([text]))
    assert torch.allclose(seen[-1][:, 0], mean[-1, 0].expand(len(text)))
    assert torch.equal(torch.stack(seen, 1).flatten(1)[:, :last], plain.flatten(1)[:, :last])
    assert torch.equal(seen[-1][:, 1:], plain[:, -1, 1:])
    assert loss(model, [text], held(mean, torch.arange(mean.numel()))) != pytest.approx(loss(model, [text]))


def test_the_own_domain_loses_most_in_three_of_four_rows_and_more_than_by_chance():
    rows = rows_of(find_stored("neuron-bricks"))
    for share in SHARES[1:]:
        own = {row["neurons held"]: row for row in rows if row["share"] == share}
        chance = own.pop(AT_RANDOM)
        assert len(own) == 4
        assert sum(row[name] == max(row[domain] for domain in own) for name, row in own.items()) >= 3
        assert sum(row[name] for name, row in own.items()) > 2 * abs(sum(chance[name] for name in own))
