"""How weights are lost: each recipe ends with its share, and says how many weights took part on the way."""

from statistics import fmean

import pytest
import torch

from explorer import experiments
from explorer.experiments.models.sparse_training import zeros
from explorer.experiments.reading import rows_of
from explorer.experiments.small_trainings import fading_weights
from explorer.experiments.small_trainings.fading_weights import (
    AFTER,
    DENSE,
    FADING,
    GRADUAL,
    SPARSE,
    STRAIGHT,
    Way,
    at_share,
    change,
    cut,
    dense,
    sparse,
)

ROWS = torch.randint(128, (8, 6), generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, value in dict(STEPS=8, BATCH=2, LAYERS=1).items():
        monkeypatch.setattr(fading_weights, name, value)


@pytest.mark.parametrize("way", SPARSE, ids=lambda way: f"{way.recipe} {way.name}")
def test_a_recipe_ends_with_its_share(way):
    model, active = sparse(way, ROWS, 0)
    assert zeros(model) == pytest.approx(1 - way.left, abs=0.01)
    assert way.left <= active <= 1


@pytest.mark.parametrize(
    "recipe, n, m, shares",
    [
        (STRAIGHT, 1, 8, [0.125] * 8),
        (FADING, 1, 8, [1.0] * 6 + [0.125] * 2),
        (GRADUAL, 4, 8, [1.0] * 3 + [0.875, 0.75, 0.625, 0.5, 0.5]),
    ],
)
def test_the_share_of_the_weights_that_take_part(recipe, n, m, shares):
    way = Way(recipe, n, m)
    assert [change(way, [], step) for step in range(8)] == pytest.approx(shares)
    assert fmean(shares) == pytest.approx(sparse(way, ROWS, 0)[1])


def test_a_cut_removes_the_smallest_weights_of_a_dense_model_and_changes_no_others():
    model = dense(1.0, ROWS, 0, 2)
    end = cut(model, AFTER)
    assert zeros(model) < 0.01 and zeros(end) == pytest.approx(0.875, abs=0.01)
    layers = (one.model.layers[0].mlp.up_proj.weight for one in (model, end))
    whole, left = (weight.view(-1, 8) for weight in layers)
    assert torch.equal(left, torch.where(whole.abs() == whole.abs().amax(-1, keepdim=True), whole, 0.0))


def test_dense_models_have_the_share_of_the_weights_that_they_say():
    def count(part: float) -> int:
        layers = dense(part, ROWS, 0, 1).model.layers
        return sum(p.numel() for p in layers.parameters() if p.dim() == 2)

    assert [count(part) / count(1.0) for part in fading_weights.PARTS] == list(fading_weights.PARTS)


def test_between_two_dense_models_the_loss_follows_the_logarithm():
    curve = {0.25: 4.0, 1.0: 3.0}
    assert at_share(curve, 0.5) == pytest.approx(3.5)
    assert at_share(curve, 0.1) == 4.0


def test_the_stored_answer_has_three_seeds_and_a_dense_model_for_every_part():
    answer = experiments.find_stored("fading-weights")
    assert answer["stands"]["trained"] == 3
    dense_rows = [row for row in rows_of(answer) if row["recipe"] == DENSE]
    losses = [row["loss"] for row in dense_rows]
    assert len(losses) == len(fading_weights.PARTS) and losses == sorted(losses, reverse=True)
