"""The key-value bottleneck: what was learned shows only where its keys are hit."""

import pytest
import torch

from explorer.experiments.models.key_value_bottleneck import bottleneck, learn, placed_keys
from explorer.experiments.small_trainings.bottleneck import Dense, seen

WORDS = torch.arange(10, 60)


@pytest.fixture
def read(tiny_model):
    """read(rows): logits, states and next tokens of a tiny model."""
    models = {"target": tiny_model()}
    return lambda rows: seen(models, rows)


def test_other_places_are_the_same_to_the_last_bit_unless_they_hit_the_same_keys(read):
    draw = torch.Generator().manual_seed(0)
    _, states, _ = read(torch.randint(256, (20, 20), generator=draw))
    model = bottleneck(states, WORDS, books=8, keys=64)
    phrase = read(torch.tensor([[70, 20, 30, 40, 50]]))
    other = read(torch.randint(256, (30, 20), generator=draw))
    assert torch.equal(model.process(other[0], other[1]), other[0])  # nothing is learned yet
    losses = learn(model, *phrase, steps=30, rate=1.0)
    assert losses[-1] < 0.2 < losses[0]
    hits = model.hit(phrase[1])
    shared = torch.stack([torch.isin(model.hit(other[1])[:, c], hits[:, c]) for c in range(8)], 1).any(1)
    changed = (model.process(other[0], other[1]) != other[0]).any(-1)
    assert torch.equal(changed, shared) and 0 < int(shared.sum()) < len(shared)
    assert model.values.ne(0).any(-1).sum() == sum(len(hits[:, c].unique()) for c in range(8))
    beside = torch.ones(other[0].shape[-1], dtype=torch.bool)
    beside[WORDS] = False
    assert torch.equal(model.process(other[0], other[1])[:, beside], other[0][:, beside])


def test_a_full_matrix_changes_every_place(read):
    phrase, other = read(torch.tensor([[70, 20, 30, 40, 50]])), read(torch.tensor([[90, 91, 92, 93]]))
    dense = Dense(phrase[1], WORDS)
    assert torch.equal(dense.process(other[0], other[1]), other[0])
    dense.learn(*phrase)
    assert (dense.process(other[0], other[1]) != other[0]).any(-1).all()


def test_keys_move_to_the_middle_of_what_is_nearest():
    draw = torch.Generator().manual_seed(0)
    two = torch.cat([torch.full((50, 2), 0.0), torch.full((50, 2), 8.0)])
    states = two + 0.1 * torch.randn(100, 2, generator=draw)
    keys = placed_keys(states, 1, 2, passes=60, draw=torch.Generator().manual_seed(1))
    assert sorted(keys[0].mean(-1).tolist()) == pytest.approx([0.0, 8.0], abs=0.5)
    with pytest.raises(ValueError, match="cannot make 3 codebooks of 2 keys; take fewer"):
        placed_keys(states, 3, 2, 1, draw)


def test_the_change_is_the_mean_of_the_values_that_were_hit():
    model = bottleneck(torch.tensor([[0.0, 0.0], [1.0, 5.0]]), torch.tensor([3]), books=2, keys=2, passes=0)
    near = model.hit(torch.tensor([[0.9, 0.2]]))[0].tolist()
    model.values[0, near[0], 0], model.values[1, near[1], 0] = 4.0, 2.0
    assert model.added(torch.tensor([[0.9, 0.2]])).tolist() == [[3.0]]
    assert model.process(torch.zeros(1, 5), torch.tensor([[0.9, 0.2]])).tolist() == [[0, 0, 0, 3.0, 0]]
