"""SCMoE: other routings of the same weights, and their contrast, against naive loops over transformers."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.expert_routing import Routing, can_be_rerouted, rerouted, routers, watched
from decoders.models.table_model import TableModel
from decoders.sampling.contrastive.contrast_algebra import amplified
from decoders.trace.scores import Measure, Table
from tests.helpers.deep_models import Endless, deep

PROMPT = [40, 41, 42, 40, 41]
TOKENS = 6


@pytest.fixture(scope="module")
def mixture(tiny_model):
    """Four experts a layer, two of them active; texts stop at limits only."""
    found = tiny_model("mixtral")
    return Endless(found.name, found.model, found.tokenizer)


def trace(target, strategy="scmoe", tokens=TOKENS, **parameters):
    return Lane(strategy, list(PROMPT), {"target": target}, parameters, limits=Limits(tokens)).run()


def naive_layer(layer, x, choose):
    """A sparse MLP by hand: every expert that `choose` names for a token, weighed and added."""
    block, out = layer.mlp, torch.zeros_like(x)
    law = (x @ block.gate.weight.t()).softmax(-1)
    for row, one in enumerate(law):
        chosen = choose(one)
        for expert in chosen:
            gate, up = (block.experts.gate_up_proj[expert] @ x[row]).chunk(2)
            read = block.experts.down_proj[expert] @ (block.experts.act_fn(gate) * up)
            out[row] += read * one[expert] / sum(one[e] for e in chosen)
    return out


@pytest.mark.parametrize("ranks", [(0, 1), (2,), (1, 3), (0, 1, 2, 3)])
def test_a_routing_is_what_its_experts_say_by_hand(mixture, ranks):
    twin, x = rerouted(mixture.model, Routing(ranks)), torch.linspace(-2, 2, 160).reshape(5, 32)
    for layer, other in zip(mixture.model.model.layers, twin.model.layers, strict=True):
        wanted = naive_layer(layer, x, lambda law: [law.argsort(descending=True)[r] for r in ranks])
        torch.testing.assert_close(other.mlp(x[None])[0], wanted)


def test_a_routing_by_mass_takes_the_fewest_likeliest_that_hold_it():
    law = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.0, 0.0, 0.9, 0.1]])
    weights, experts = Routing((), 0.6).choose(law)
    assert weights.tolist() == [
        [pytest.approx(0.4), pytest.approx(0.3), 0.0, 0.0],
        [pytest.approx(0.9), 0, 0, 0],
    ]
    assert experts[0].tolist() == [1, 3, 2, 0]


def test_a_twin_has_the_very_same_weights_and_leaves_the_model_alone(mixture):
    ids = torch.tensor([PROMPT])
    before = mixture.model(ids).logits
    twin = rerouted(mixture.model, Routing((2,)))
    theirs = {id(p) for p in twin.parameters()}
    assert theirs == {id(p) for p in mixture.model.parameters()}
    assert not torch.allclose(twin(ids).logits, before)
    assert torch.equal(mixture.model(ids).logits, before)
    assert torch.equal(rerouted(mixture.model, Routing((0, 1)))(ids).logits, before)


def test_what_is_watched_are_the_experts_of_the_last_token(mixture):
    with watched(routers(mixture.model)) as seen:
        mixture.model(torch.tensor([PROMPT]))
    assert len(seen) == 2
    for one in seen:
        best = one.probs.argsort(descending=True)[:2].tolist()
        assert list(one.weights) == best and sum(one.weights.values()) == pytest.approx(1.0)
        assert one.probs.sum() == pytest.approx(1.0)


def naive(mixture, beta, alpha, ranks):
    """New tokens of both models run on the whole text each time."""
    twin, text = rerouted(mixture.model, Routing(ranks)), list(PROMPT)
    for _ in range(TOKENS):
        strong, weak = (m(torch.tensor([text])).logits[0, -1] for m in (mixture.model, twin))
        scores = (1 + beta) * strong - beta * weak
        out = strong.softmax(-1) < alpha * strong.softmax(-1).max()
        text.append(int(scores.masked_fill(out, float("-inf")).argmax()))
    return text[len(PROMPT) :]


@pytest.mark.parametrize("beta, alpha, ranks", [(0.5, 0.1, [2]), (2.0, 0.0, [3]), (1.0, 0.3, [1, 2])])
def test_it_is_a_naive_loop(mixture, beta, alpha, ranks):
    found = trace(mixture, beta=beta, alpha=alpha, ranks=ranks)
    assert found.output() == naive(mixture, beta, alpha, ranks)
    assert found.output() != trace(mixture, "greedy").output()


def test_its_extremes_are_greedy(mixture):
    greedy = trace(mixture, "greedy").output()
    assert trace(mixture, beta=0.0).output() == greedy
    assert trace(mixture, alpha=1.0).output() == greedy
    assert trace(mixture, beta=9.0, ranks=[0, 1]).output() == greedy  # the strong view against itself


def test_the_hand_example():
    """Threshold 3 + ln .1; token 1 wins, though the strong view alone takes token 0."""
    strong, weak = torch.tensor([[3.0, 2.5, 0.2, -2.0]]), torch.tensor([[3.0, 1.0, 1.0, -4.0]])
    combined = amplified(0.5, 0.1).combine([strong, weak])[0]
    assert (combined[1] - combined[0]).item() == pytest.approx(0.25)  # 3.25 and 3.0
    assert combined.isfinite().tolist() == [True, True, False, False]
    free = amplified(0.5).combine([strong, weak])  # without the mask: guidance of scale 1.5
    torch.testing.assert_close(free.softmax(-1), (weak + 1.5 * (strong - weak)).softmax(-1))


def test_both_views_run_once_a_token_and_are_told(mixture):
    found = trace(mixture)
    totals = found.costs.totals()
    assert (totals["target_forwards"], totals["draft_forwards"]) == (2 * TOKENS, 0)
    assert trace(mixture, beta=0.0).costs.totals()["target_forwards"] == TOKENS
    for step in found.steps:
        scores = step.of(Table)
        for name, count in (("strong experts", 2), ("weak experts", 1)):
            mine = [e for e in scores if e.name == name]
            assert [e.level for e in mine] == ["layer 1", "layer 2"]
            assert all(e.parts["of"] == 4 and len(e.rows) == count for e in mine)
        (apart,) = [e.total for e in step.of(Measure) if e.name == "divergence"]
        assert apart > 0.0


def test_a_lane_beside_another_one_tells_its_experts_all_the_same(mixture):
    """The other lane has read the prompt, and nobody watched."""
    other = Lane("greedy", list(PROMPT), {"target": mixture}, limits=Limits(4))
    other.advance()
    beside = trace(mixture)
    other.close()
    assert beside.output() == trace(mixture).output()
    assert [e.name for e in beside.steps[0].of(Table)].count("strong experts") == 2


def test_models_without_experts_are_refused_with_what_to_choose(mixture, tiny_model):
    assert not can_be_rerouted(tiny_model("llama").model)
    for target in (tiny_model("llama"), deep(layers=1)):
        with pytest.raises(
            ValueError, match="has no experts to choose from; choose llama-tiny-moe as target"
        ):
            Lane("scmoe", [0], {"target": target})
    with pytest.raises(ValueError, match="reads the weights of the target, which a table does not give"):
        Lane("scmoe", [0], {"target": TableModel(lambda past: (0.5, 0.5), 2)})
    for ranks in ([4], [1, 1]):
        with pytest.raises(ValueError, match="ranks must be different whole numbers below 4"):
            trace(mixture, ranks=ranks)


def test_routers_that_choose_by_another_rule_are_not_rerouted(mixture):
    twin = rerouted(mixture.model, Routing((2,)))  # its own answer is not that of its ranks
    assert len(routers(twin)) == 2 and not can_be_rerouted(twin)
