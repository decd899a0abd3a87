"""BlockFFN: the numbers of the paper's definitions by hand, and which experts a tree of tokens needs."""

import pytest
import torch

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Propose
from explorer.experiments.block_ffn import (
    BlockFFN,
    Steered,
    block_reader,
    chunk_loss,
    locality_loss,
    mixtral_reader,
    mixture,
    unused,
)
from explorer.experiments.experts_of_neighbours import Verified, needed, skipped, verified


def test_the_router_decides_which_by_relu_and_how_much_by_a_norm():
    layer = BlockFFN(8, 4, 2)
    found = layer.weights(torch.tensor([[1.0, -2.0, 3.0, 0.0], [-1.0, -1.0, -1.0, -1.0]]))
    torch.testing.assert_close(found[0], torch.tensor([0.6325, 0, 1.8974, 0]), atol=1e-4, rtol=0)
    assert not found[1].any()


def test_the_chunk_loss_is_that_of_two_tokens_by_hand():
    said = torch.tensor([[[0.25, -1.0, 0.75, -3.0], [2.0, 2.0, -1.0, -1.0]]])
    assert float(chunk_loss(said, 2)) == pytest.approx(0.46875, abs=1e-5)
    alone = torch.tensor([[[-1.0, 1.0, -1.0, -1.0]] * 2])
    assert float(chunk_loss(alone, 2)) == pytest.approx(0.25, abs=1e-5)


def test_the_locality_loss_is_nothing_where_neighbours_choose_alike():
    same = torch.tensor([[[1.0, -1.0], [3.0, -0.5], [0.5, -2.0]]])
    other = torch.tensor([[[1.0, -1.0], [-1.0, 1.0]]])
    assert float(locality_loss(same)) < 1e-6 and float(locality_loss(other)) == pytest.approx(100.0)


def test_the_weight_follows_the_loss_and_has_a_ceiling():
    weight = Steered(0.1, stable=4, every=2)
    for loss in (1.0, 1.0, 1.0):
        weight.update(loss)
        assert weight.weight == 0.1
    weight.update(1.02)  # the mean rises by 1%: by 2.5% at least
    assert weight.weight == pytest.approx(0.1025)
    for loss in (0.505, 0.505):
        weight.update(loss)
    assert weight.weight == pytest.approx(0.05125)
    for loss in (50.0, 50.0):
        weight.update(loss)
    assert weight.weight == pytest.approx(0.4)


def test_unused_experts_by_hand_and_never_more_in_a_longer_stretch():
    masks = torch.tensor([[1, 0, 1, 0], [1, 1, 0, 0]], dtype=torch.bool)
    assert unused(masks, 1) == 0.5 and unused(masks, 2) == 0.25
    torch.manual_seed(0)
    some = torch.rand(3, 2, 40, 6) < 0.2
    shares = [unused(some, count) for count in range(1, 17)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(1 - float(some.float().mean()))


def test_not_computing_inactive_experts_changes_nothing():
    torch.manual_seed(0)
    layer, states = BlockFFN(8, 6, 4).double(), torch.randn(2, 5, 8, dtype=torch.double)
    torch.testing.assert_close(layer.skipping(states), layer(states))
    model, rows = mixture(50, 16, 2, 4, 8), torch.randint(50, (2, 9))
    before = model(rows).logits
    assert skipped(model, rows) < 1e-5
    assert torch.equal(model(rows).logits, before)  # and it computes all again


def test_a_reader_says_what_the_routers_chose(tiny_model):
    ids = torch.tensor([[40, 41, 42, 43], [50, 51, 52, 53]])
    model = tiny_model("mixtral").model
    active = mixtral_reader(model)(ids)
    assert active.shape == (2, 2, 4, 4) and (active.sum(-1) == 2).all()
    assert torch.equal(mixtral_reader(model)(ids[:1]), active[:, :1])
    own = mixture(60, 16, 2, 4, 8)
    layer = own.model.layers[0].mlp
    read = block_reader(own)(ids)
    assert read.shape == (2, 2, 4, 4) and torch.equal(read[0], layer.scores > 0)


def test_what_was_verified_is_the_text_s_last_token_and_the_drafts_under_it():
    """The draft always says 1, which the target says after an even number of tokens."""
    target = TableModel(lambda tokens: [0, 1, 0] if len(tokens) % 2 else [0, 0, 1], 3)
    draft = TableModel(lambda tokens: [0, 1, 0], 3)
    settings = {"num_assistant_tokens": 2, "temperature": 0.0}
    trace = Lane("speculative", [0], {"target": target, "draft": draft}, settings, limits=Limits(6)).run()
    found = verified(trace)
    assert [(one.first, one.leaves) for one in found[:2]] == [(0, [[0, 1, 1]]), (2, [[0, 1, 2, 1, 1]])]
    assert found[0].count == 3


def test_a_verified_tree_has_all_that_was_drafted(tiny_model):
    """Two models that agree always, so that paths are accepted to their ends; and two that hardly agree."""
    prompt = [40, 41, 42, 40]
    for draft in (tiny_model("llama"), tiny_model("llama", 1)):
        models = {"target": tiny_model("llama"), "draft": draft}
        trace = Lane("sequoia", prompt, models, {"budget": 7, "temperature": 0.0}, limits=Limits(12)).run()
        text = [*prompt, *trace.output()]
        found = verified(trace)
        assert len(found) == len(trace.steps)
        for one, step in zip(found, trace.steps, strict=True):
            drafted = [p for p in step.of(Propose) if p.node in trace.costs.drafted_nodes]
            assert one.count == 1 + len(drafted)
            assert all(leaf[: one.first + 1] == text[: one.first + 1] for leaf in one.leaves)


def test_the_experts_of_a_tree_are_those_of_its_tokens_alone():
    """An expert a token: neither the text before the tree nor what fills up a row counts."""

    def read(ids):
        return torch.nn.functional.one_hot(ids, 10).bool()[None]

    found = needed(read, Verified(1, [[5, 6, 7], [5, 6, 8, 9]]))
    assert found.shape == (1, 10) and found[0].nonzero().flatten().tolist() == [6, 7, 8, 9]
