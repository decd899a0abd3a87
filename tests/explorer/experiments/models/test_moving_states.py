"""Hidden state optimisation on a tiny model: no step changes nothing, a small one keeps its promise."""

import pytest
import torch

from explorer.experiments.models.moving_states import cache_of, direction, grown, window_losses
from tests.helpers import tiny_models

TEXT = [3, 9, 4, 7, 5, 8, 6, 2, 9, 3, 7, 4, 8, 5, 6, 9, 2]


@pytest.fixture(scope="module")
def model():
    return tiny_models.make().model


def plain(model, tokens) -> list[float]:
    with torch.no_grad():
        rows = model(torch.tensor([tokens])).logits[0, :-1].float()
    return torch.nn.functional.cross_entropy(rows, torch.tensor(tokens[1:]), reduction="none").tolist()


@pytest.mark.parametrize("window", [1, 5, 100])
def test_without_a_step_the_losses_are_the_model_s(model, window):
    assert window_losses(model, TEXT, window, 0.0) == pytest.approx(plain(model, TEXT), abs=1e-5)


def test_the_first_window_and_only_it_is_untouched(model):
    moved = window_losses(model, TEXT, 4, 0.1)
    before = plain(model, TEXT)
    assert moved[:8] == pytest.approx(before[:8], abs=1e-5)  # the second is told before its gradient is used
    assert moved[8:] != pytest.approx(before[8:], abs=1e-4)


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_no_token_s_loss_knows_what_follows(model, rule):
    other = [*TEXT[:11], 1, 1, 2, 1, 2, 1]
    first, second = (window_losses(model, text, 3, 0.05, rule) for text in (TEXT, other))
    assert first[:10] == pytest.approx(second[:10], abs=1e-6)
    assert first[10:] != pytest.approx(second[10:], abs=1e-3)


def test_a_small_step_gains_what_its_gradient_promises(model):
    """The loss of the window whose gradient was taken falls by step * |gradient|^2, to first order."""
    double = tiny_models.make().model.double()
    ids = torch.tensor([TEXT])
    cache = cache_of(double, [])
    with torch.no_grad():
        double(ids[:, :8], past_key_values=cache, use_cache=True)
    states = [[layer.keys, layer.values] for layer in cache.layers]

    def loss(parts):
        rows = double(ids[:, 8:16], past_key_values=cache_of(double, parts), use_cache=True).logits[0]
        return torch.nn.functional.cross_entropy(rows, ids[0, 9:17])

    leaves = [[part.detach().requires_grad_() for part in layer] for layer in states]
    before = loss(leaves)
    gradients = torch.autograd.grad(before, [part for layer in leaves for part in layer])
    step, flat = 1e-4, iter(gradients)
    with torch.no_grad():
        after = loss([[part - step * next(flat) for part in layer] for layer in states])
    promised = step * sum(float((g * g).sum()) for g in gradients)
    assert float(before - after) == pytest.approx(promised, rel=0.02) and promised > 0


def test_adam_keeps_moments_for_each_state():
    """Two steps against torch's own Adam, of states of which one came later."""
    state = torch.nn.Parameter(torch.zeros(1, 1, 2, 1))
    late = torch.nn.Parameter(torch.zeros(1, 1, 1, 1))
    gradients = [torch.tensor([0.3, -2.0]), torch.tensor([0.1, 5.0, 0.7])]
    torchs = [torch.optim.Adam([part], lr=0.01) for part in (state, late)]
    kept, mine = None, torch.zeros(1, 1, 2, 1)
    for at, gradient in enumerate(gradients):
        if at:
            mine = torch.cat([mine, torch.zeros(1, 1, 1, 1)], 2)
        kept = grown(kept, mine)
        mine = mine - 0.01 * direction(gradient[None, None, :, None], kept, "adam")
        state.grad = gradient[None, None, :2, None].clone()
        torchs[0].step()
    late.grad = gradients[1][None, None, 2:, None].clone()
    torchs[1].step()
    assert torch.allclose(mine, torch.cat([state, late], 2), atol=1e-6)


def test_another_rule_is_refused(model):
    with pytest.raises(ValueError, match="rule must be one of sgd, adam"):
        window_losses(model, TEXT, 4, 0.1, "magic")


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_what_has_moved_is_told_by_layer_and_position(model, rule):
    """Nothing without a step; with one all but the last window, which no gradient has reached yet."""
    still, moved = [], []
    window_losses(model, TEXT, 5, 0.0, rule, still)
    window_losses(model, TEXT, 5, 0.1, rule, moved)
    assert len(moved) == model.config.num_hidden_layers and not any(layer.any() for layer in still)
    for layer in moved:
        assert len(layer) == len(TEXT) and bool((layer[:15] > 0).all()) and not layer[15:].any()
