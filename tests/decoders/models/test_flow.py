"""The discrete flow model: what it looks at, and that it is saved and loaded as any other; its engine."""

import pytest
import torch

from decoders.engine.flow_engine import FlowEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models.flow import FlowModel
from decoders.models.loading import load
from tests.helpers.tiny_models import flow_model, save


@pytest.fixture(scope="module")
def model() -> FlowModel:
    return flow_model(vocab_size=40)


def logits(model, source, canvas, t=0.5):
    ids = torch.tensor([source])
    seen = torch.ones_like(ids, dtype=torch.bool)
    memory = model.read(ids, seen)
    return model.write(torch.tensor([canvas]), torch.tensor([t]), memory, seen)[0]


def test_every_position_sees_all_others_the_source_and_the_time(model):
    before = logits(model, [1, 2, 3], [4, 5, 6])
    for changed in ([1, 2, 9], [4, 5, 6], 0.5), ([1, 2, 3], [4, 5, 9], 0.5), ([1, 2, 3], [4, 5, 6], 0.9):
        assert not torch.allclose(before[0], logits(model, *changed)[0], atol=1e-4)


def test_padding_changes_nothing(model):
    source, seen = torch.tensor([[1, 2, 3, 0]]), torch.tensor([[True, True, True, False]])
    memory = model.read(source, seen)
    padded = model.write(torch.tensor([[4, 5, 6]]), torch.tensor([0.5]), memory, seen)[0]
    torch.testing.assert_close(padded, logits(model, [1, 2, 3], [4, 5, 6]), atol=1e-5, rtol=1e-5)


def test_what_was_saved_computes_the_same(model, tmp_path):
    model.save_pretrained(tmp_path)
    again = FlowModel.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(again, [1, 2], [3]), logits(model, [1, 2], [3]))


def test_a_folder_with_one_is_loaded_as_a_target(tmp_path):
    """Its strategy writes with it, and one for a causal model refuses it."""
    name = save(tmp_path, kind="flow")
    target = load(name, "cpu")
    assert isinstance(target.model, FlowModel) and target.model_kind == "flow"
    found = Lane("drax", [40, 41], {"target": target}, {"num_steps": 2}, limits=Limits(4)).run()
    assert 1 <= len(found.output()) <= 4
    with pytest.raises(ValueError, match="which .* is not; choose another target, or Drax"):
        Lane("greedy", [40, 41], {"target": target})


def test_the_engine_scores_all_canvases_in_one_forward(model):
    scorer = FlowEngine(model).attach(Tree([1, 2, 3]))
    scorer.read([1, 2, 3])
    assert (scorer.work.tokens, scorer.work.rows) == (3, 1)
    rows = scorer.flow([[4, 5, 6], [7, 8, 9]], 0.5)
    assert (scorer.work.tokens, scorer.work.rows) == (6, 2) and rows.shape == (2, 3, 40)
    torch.testing.assert_close(rows[1], logits(model, [1, 2, 3], [7, 8, 9]), atol=1e-5, rtol=1e-5)


def test_the_engine_says_what_it_reads(model):
    assert "at most 16 tokens" in FlowEngine(model).note and "correct:" in FlowEngine(model).note
