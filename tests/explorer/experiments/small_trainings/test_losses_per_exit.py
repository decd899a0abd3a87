"""Exits of small models: the weights of both recipes, the curriculum, and who leaves where."""

import pytest
import torch

from explorer.experiments.models.exits import Exits, joint_weights, rotated, skip_probs, skip_weights
from explorer.experiments.models.small import next_loss
from explorer.experiments.small_trainings import losses_per_exit
from explorer.experiments.small_trainings.losses_per_exit import asked, fitted_heads, left, own_heads, trained


@pytest.fixture(scope="module")
def model():
    return Exits(vocabulary=11, layers=8, width=16, heads=2).requires_grad_(False)


@pytest.fixture
def rows():
    return torch.randint(11, (3, 9), generator=torch.Generator().manual_seed(0))


def test_joint_exits_are_weighted_by_their_depth():
    assert joint_weights(8, (2, 4, 6, 8)) == [0.25, 0.5, 0.75, 1.0]
    published = joint_weights(36, (4, 9, 18, 27, 36))
    assert published == pytest.approx([0.111, 0.25, 0.5, 0.75, 1.0], abs=1e-3)


@pytest.mark.parametrize(
    ("scale", "weights"),
    [
        (1.0, [0, 0.0119, 0.0357, 0.0714, 0.1190, 0.1786, 0.25, 0.3333]),
        (0.2, [0, 0.0089, 0.0268, 0.0536, 0.0893, 0.1339, 0.1875, 0.5]),
    ],
)
def test_layerskip_s_weights_are_the_published_ones(scale, weights):
    assert skip_weights(8, scale) == pytest.approx(weights, abs=1e-4)
    some = skip_weights(8, scale, rotated(8, 4, 1))
    assert [bool(w) for w in some] == [False, True, False, False, False, True, False, True]
    assert sum(some) == pytest.approx(1.0)


def test_every_exit_has_its_turn_and_the_last_one_always():
    on = [rotated(8, 4, step) for step in range(4)]
    assert all(one[-1] for one in on) and all(any(one[layer] for one in on) for layer in range(8))


def test_layers_are_dropped_more_the_deeper_and_the_later():
    ends = skip_probs(8, 0.1, 1.0) / 0.1
    assert ends.tolist() == pytest.approx([0, 0.104, 0.219, 0.346, 0.486, 0.641, 0.811, 1], abs=1e-3)
    assert not skip_probs(8, 0.1, 0.0).any()


def test_the_last_exit_is_the_llama_itself(model, rows):
    """With and without chances of zero; a layer that is always dropped changes nothing."""
    states = model.states(rows)
    assert torch.allclose(model.logits(states, 8), model.head(model.inner(rows).last_hidden_state), atol=1e-5)
    assert torch.equal(states[7], model.states(rows, torch.zeros(8))[7])
    passed = model.states(rows, torch.tensor([0.0, 1, 1, 1, 1, 1, 1, 1]))
    assert torch.equal(passed[0], passed[7]) and torch.equal(passed[0], states[0])


def test_a_threshold_above_one_is_the_full_model(model, rows):
    found = asked(model, own_heads(model), rows)
    layers, same, loss = left(*found, 1.01)
    assert (layers, same) == (8.0, 1.0)
    assert loss == pytest.approx(float(next_loss(model.logits(model.states(rows), 8), rows)), abs=1e-5)
    assert left(*found, 0.0)[0] == 2.0


def test_who_leaves_where_by_hand():
    """Four exits, three tokens: one leaves at once, one at the third exit, one never."""
    sure = torch.tensor([[0.9, 0.1, 0.1], [0.9, 0.2, 0.1], [0.9, 0.8, 0.1], [0.9, 0.9, 0.1]])
    token = torch.tensor([[1, 1, 1], [2, 2, 2], [3, 4, 3], [4, 4, 4]])
    loss = torch.arange(12.0).view(4, 3)
    layers, same, cost = left(loss, token, sure, 0.5)
    assert layers == pytest.approx((2 + 6 + 8) / 3)
    assert same == pytest.approx(2 / 3)
    assert cost == pytest.approx((0 + 7 + 11) / 3)


def test_joint_exits_beat_heads_fitted_to_a_single_exit_model(monkeypatch):
    """A toy language: each token is the sum of the two before it, modulo 7. Shallow exits can know it only if
    the layers below them were trained for it.
    """
    for name, value in dict(LAYERS=4, EXITS=(1, 2, 4), WIDTH=32, STEPS=80, HEAD_STEPS=40).items():
        monkeypatch.setattr(losses_per_exit, name, value)
    rows = torch.randint(7, (64, 2), generator=torch.Generator().manual_seed(0))
    for _ in range(14):
        rows = torch.cat([rows, (rows[:, -1:] + rows[:, -2:-1]) % 7], 1)
    plain, joint = (trained(name, 7, rows) for name in ("single exit", "joint exits"))
    assert joint.vectors.any() and not plain.vectors.any()
    fitted = asked(plain, fitted_heads(plain, rows), rows)[0].mean(1)
    own = asked(joint, own_heads(joint), rows)[0].mean(1)
    assert (own[:2] < fitted[:2] - 0.05).all()  # the third has all that can be known, however it was trained
