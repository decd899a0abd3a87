"""The memory wall's experiment: a machine that is made up is found again, and the shape is the model's."""

import pytest

from explorer.experiments.memory_wall import fitted, forward, predicted, shape_of
from visualizers.analysis.cost_model import layer_weights, step
from visualizers.analysis.roofline import Device


def test_the_figures_of_a_machine_come_back_from_its_forwards(tiny_model):
    shape, machine = shape_of(tiny_model().model), Device(12, 0.05, 40, 0, 0)
    costs = [step(shape, machine, n, 1, m, 4, 4) for n in (64, 512) for m in (1, 8, 32)]
    found = fitted(costs, [predicted(machine, cost) for cost in costs])
    assert (found.bandwidth, found.compute, found.launch) == pytest.approx((12, 0.05, 40), rel=1e-3)


def test_the_weights_of_a_layer_are_those_of_the_model(tiny_model):
    model = tiny_model().model
    matrices = [p.numel() for p in model.model.layers[0].parameters() if p.dim() == 2]
    assert layer_weights(shape_of(model)) == sum(matrices)


def test_a_forward_may_be_repeated_and_leaves_no_slot(tiny_model):
    model = tiny_model()
    before = model.engine.cache.used
    with forward(model, 12, 4) as call:
        used = model.engine.cache.used
        call(), call()
        assert model.engine.cache.used == used > before
    assert model.engine.cache.used == before
