"""The memory wall's experiment: a machine that is made up is found again, and the shape is the model's."""

from dataclasses import astuple

import pytest

from explorer.experiments import find_stored
from explorer.experiments.reading import rows_of
from explorer.experiments.without_decoding.memory_wall import Machine, fitted, forward, shape_of
from visualizers.analysis.cost_model import Shape, layer_weights, step
from visualizers.analysis.roofline import Device


def test_the_figures_of_a_machine_come_back_from_its_forwards():
    large, small, machine = (
        Shape(12, 192, 6, 6, 32, 512, 4096),
        Shape(2, 128, 4, 4, 32, 352, 4096),
        Machine(2e-5, 1e-10, 3e-10, 1e-11),
    )
    shapes = [large] * 6 + [small] * 6
    new = [(n, m) for n in (64, 512) for m in (1, 8, 32)] * 2
    costs = [
        step(shape, Device(1, 1, 0, 0, 0), n, 1, m, 4, 4) for shape, (n, m) in zip(shapes, new, strict=True)
    ]
    seconds = [machine.seconds(shape, cost) for shape, cost in zip(shapes, costs, strict=True)]
    found = fitted(shapes, costs, seconds)
    assert astuple(found) == pytest.approx(astuple(machine), rel=1e-3)


def test_stored_forwards_that_were_not_fitted_are_predicted_within_a_quarter():
    rows = rows_of(find_stored("memory-wall"))
    told = [row for row in rows if not row["fitted"]]
    assert {row["context"] for row in told} == {64, 128, 256, 512} and len(told) > len(rows) / 2
    assert all(abs(row["ms predicted"] / row["ms measured"] - 1) < 0.25 for row in told)


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
