"""Routes through big and small blocks: what the oracle of them computes is what one token alone does, and
what Duo-LLM's section promises holds.
"""

import pytest
import torch
from transformers import LlamaForCausalLM

from explorer.experiments.models.duo import Duo, Router, at_random, bits
from explorer.experiments.small_trainings import routes_per_token
from explorer.experiments.small_trainings.routes_per_token import (
    cost,
    judged,
    losses,
    picked,
    routed,
    widened,
)


@pytest.fixture(scope="module")
def duo(tiny_model):
    """Two layers whose small blocks do something too."""
    torch.manual_seed(1)
    made = Duo(tiny_model("llama").model, layers=2, smaller=4)
    for block in made.small:
        torch.nn.init.normal_(block.down_proj.weight, std=0.3)
    return made.requires_grad_(False)


@pytest.fixture
def rows():
    return torch.randint(259, (3, 9), generator=torch.Generator().manual_seed(0))


def test_all_big_is_the_dense_model(tiny_model, rows):
    """Of all layers, and of the first one alone."""
    model: LlamaForCausalLM = tiny_model("llama").model
    assert torch.allclose(Duo(model, 2, 4)(rows), model(rows).logits, atol=1e-5)
    entered = model(rows, output_hidden_states=True).hidden_states[1]
    assert torch.allclose(Duo(model, 1, 4)(rows), model.lm_head(model.model.norm(entered)), atol=1e-5)


def test_every_route_of_a_token_is_what_it_does_alone_behind_big_ones(duo, rows):
    """One text at a time, in which only the last token leaves the reference route."""
    row, routes = rows[0], bits(2)
    assert routes.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    fast = duo.logits(duo.every(row))
    for route, taken in enumerate(routes):
        for at in range(len(row)):

            def choose(layer, state, taken=taken):
                share = torch.ones_like(state[..., :1])
                share[:, -1] = taken[layer]
                return share

            alone = duo(row[None, : at + 1], choose)[0, -1]
            assert torch.allclose(fast[route, at], alone, atol=1e-4)
    assert not torch.allclose(fast[0], fast[3], atol=1e-2)


def test_a_route_over_the_history_is_that_of_every(duo, rows):
    """The way routers are judged, for a whole batch."""
    logits = duo(
        rows, lambda layer, state: torch.full_like(state[..., :1], float(layer)), duo.reference(rows)
    )
    for row, said in zip(rows, logits, strict=True):
        assert torch.allclose(said, duo.logits(duo.every(row))[2], atol=1e-4)


def test_a_small_block_adds_nothing_until_it_has_learned(tiny_model, rows):
    fresh = Duo(tiny_model("llama").model, 2, 4)
    without = fresh(rows, lambda layer, state: torch.zeros_like(state[..., :1]))
    for layer in fresh.inner.layers:
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    assert torch.allclose(fresh(rows), without, atol=1e-5)
    shares = at_random(0, torch.zeros(50, 40, 3))
    assert shares.shape == (50, 40, 1) and set(shares.unique().tolist()) == {0.0, 1.0}
    assert abs(float(shares.mean()) - 0.5) < 0.05


def test_the_losses_are_those_of_the_wanted_tokens(duo, rows):
    wanted = torch.stack([rows[:, 1:], rows.flip(0)[:, 1:]])
    found = losses(duo, rows, wanted)
    assert found.shape == (2, 4, 3, 8)
    for route, states in enumerate(duo.every(rows[1][:-1])):
        logprobs = duo.logits(states).log_softmax(-1)
        for kind in range(2):
            want = -logprobs.gather(-1, wanted[kind, 1][:, None])[:, 0]
            assert torch.allclose(found[kind, route, 1], want, atol=1e-4)


def test_more_routes_never_cost_the_oracle_more(duo, rows):
    found = losses(duo, rows, rows[None, :, 1:])[0]
    counts, costs = zip(*widened(found), strict=True)
    assert counts == (1, 2, 4) and list(costs) == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(float(found.amin(0)[:, 1:].mean()))


def test_the_choices_by_hand():
    """Two routes, one text of three tokens."""
    true = torch.tensor([[[1.0, 5.0, 2.0]], [[3.0, 1.0, 4.0]]])
    seen = torch.tensor([[[0.0, 1.0, 9.0]], [[9.0, 3.0, 1.0]]])
    routes = picked(true, seen)
    assert {name: route.tolist() for name, route in routes.items()} == {
        "oracle": [[1, 0]],
        "one route": [[1, 1]],
        "by a wrong token": [[0, 1]],
        "by the token before": [[0, 1]],
    }
    assert [cost(true, route) for route in routes.values()] == [1.5, 2.5, 4.5, 4.5]
    assert cost(seen, routes["by a wrong token"]) == 1.0


def test_losses_that_are_noise_make_an_oracle_and_no_control():
    """The caution: where routes differ by luck, only who has seen the answer wins."""
    true, seen = torch.randn(2, 20, 30, 100, generator=torch.Generator().manual_seed(0))
    costs = {name: cost(true, route) for name, route in picked(true, seen).items()}
    assert costs.pop("oracle") < -1.5 and all(abs(loss) < 0.1 for loss in costs.values())


def test_a_router_keeps_to_its_budget(duo, monkeypatch):
    """Within 0.02 of it, at a toy's scale."""
    rows = torch.randint(259, (24, 33), generator=torch.Generator().manual_seed(2))
    for name, value in dict(ROUTER_STEPS=200, BATCH=16).items():
        monkeypatch.setattr(routes_per_token, name, value)
    for budget in (0.25, 0.5):
        loss, share = judged(duo, routed(duo, rows, budget), rows)
        assert share == pytest.approx(budget, abs=0.02) and loss > 0


def test_a_router_that_knows_nothing_takes_either_block_equally():
    assert torch.equal(Router(2, 4)(1, torch.randn(2, 3, 4), 7.0), torch.full((2, 3, 1), 0.5))


def test_only_llamas_are_taken_apart(tiny_model):
    with pytest.raises(ValueError, match="takes a Llama apart; choose one"):
        Duo(tiny_model("gpt2").model, 2, 4)
