"""Forwards of few shapes give the numbers of forwards as they are, and only few shapes are compiled."""

import pytest
import torch

from decoders.engine import static_shapes
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Engine
from decoders.engine.static_shapes import bucket
from decoders.lane import Lane, Limits
from decoders.refusal import Refusal
from tests.decoders.engine.test_engine import assert_close, check, grow
from tests.helpers import tiny_models

CAPTURE = {"backend": "eager", "fullgraph": True}  # traced as for a GPU; an error if it falls into pieces


@pytest.fixture(autouse=True)
def _nothing_compiled_before():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


def captured(model, slots: int = 512) -> Engine:
    """A fresh engine of a model, whose forwards are captured."""
    engine = Engine(model, limit=slots)
    engine.capture(**CAPTURE)
    return engine


def test_buckets_are_powers_of_two():
    assert [bucket(n) for n in (1, 2, 3, 5, 64, 65)] == [1, 2, 4, 8, 64, 128]
    assert bucket(3, 256) == 256


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma3"])
def test_a_captured_tree_scores_like_separate_forwards(kind, tiny_model):
    model, tree = tiny_model(kind), grow()
    scorer = captured(model.model).attach(tree)
    for nodes in ([4], [14, 9, 12]):  # the prompt, then the tree in one forward
        for node, row in zip(nodes, scorer.score(nodes), strict=True):
            check(model, tree, node, row)


def test_states_are_those_of_the_model(tiny_model):
    model, tree = tiny_model("gpt2"), grow()
    scorer = captured(model.model).attach(tree)
    scorer.score([14, 9], hidden=True)
    for node, state in zip([14, 9], scorer.hidden_rows([14, 9]), strict=True):
        output = model.model(torch.tensor([tree.text(node)]), output_hidden_states=True, use_cache=False)
        assert_close(state, output.hidden_states[-1][0, -1])


def test_a_text_of_any_length_needs_few_shapes(tiny_model):
    """A text grows token by token: one shape for the prompt and one for all that follow."""
    model = tiny_model("llama")
    alone = Lane("greedy", [5, 6, 7], {"target": model}, limits=Limits(40)).run()
    plain, model.engine = model.engine, captured(model.model)
    try:
        trace = Lane("greedy", [5, 6, 7], {"target": model}, limits=Limits(40)).run()
    finally:
        model.engine = plain
    assert trace.output() == alone.output()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 2
    assert not trace.lacks  # the fast forward gives queries too


def test_a_model_of_transformers_gives_no_attention_while_it_is_captured(tiny_model):
    model = tiny_model("gpt2").model
    engine = Engine(model, limit=512)
    assert engine.gives(Capability.ATTENTION)
    assert not captured(model).gives(Capability.ATTENTION)


def test_long_forwards_run_as_they_are(tiny_model, monkeypatch):
    monkeypatch.setattr(static_shapes, "ROWS", 4)
    model, tree = tiny_model("llama"), grow()
    scorer, counts = captured(model.model).attach(tree), torch._dynamo.utils.counters["stats"]
    before = counts["unique_graphs"]
    check(model, tree, 4, scorer.score([4])[0])  # a prompt of five
    assert counts["unique_graphs"] == before


def test_a_model_that_cannot_be_recorded_is_refused_and_decodes_as_before(tiny_model, monkeypatch):
    model, tree = tiny_model("llama"), grow()
    engine = Engine(model.model, limit=64)

    def reads_back(*_: object) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(engine, "_step", reads_back)
    with pytest.raises(Refusal, match="LlamaForCausalLM cannot .* when stream is capturing$"):
        engine.capture()
    assert engine.cache.used == 0
    check(model, tree, 4, engine.attach(tree).score([4])[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("compiler", [{}, {"mode": "default"}], ids=["as it is", "compiled"])
@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "gemma3"])
def test_graphs_on_a_gpu_decode_as_the_model_does(kind, compiler):
    model = tiny_models.make(kind, dtype=torch.float64, device="cuda")
    names = ("greedy", "beam", "prompt_lookup")
    alone = [Lane(name, [5, 6, 7], {"target": model}, limits=Limits(24)).run().output() for name in names]
    model.engine.capture(**compiler)
    for name, plain in zip(names, alone, strict=True):
        assert Lane(name, [5, 6, 7], {"target": model}, limits=Limits(24)).run().output() == plain
    assert model.engine.captured.graphs.recorded


def test_a_model_on_the_cpu_stays_as_it_is():
    model = tiny_models.make()
    model.capture()
    assert model.engine.captured is None
