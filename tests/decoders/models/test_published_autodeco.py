"""AutoDeco's heads in the format of their authors, against their formula written again."""

import math

import pytest
import torch

from decoders.heads import AutoDeco, Target
from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.model_heads import add_heads
from decoders.models.published import find_format, read_heads
from decoders.refusal import Refusal
from decoders.trace.scores import Measure
from tests.helpers import published_heads as files

D, V, WIDTH = 32, 259, 16


def tensors(inputs: int = D + 5) -> files.Tensors:
    shapes = {}
    for head, read in (("temp_head", D), ("top_p_head", inputs)):
        shapes |= {f"{head}.mlp.0.weight": (WIDTH, read), f"{head}.mlp.0.bias": (WIDTH,)}
        shapes |= {f"{head}.mlp.2.weight": (1, WIDTH), f"{head}.mlp.2.bias": (1,)}
    return files.drawn(shapes)


def config(**changes) -> dict:
    """The model's own keys with those of the authors."""
    own = {"hidden_size": D, "vocab_size": V, "num_hidden_layers": 2, "base_model_name_or_path": "x"}
    flags = {"enable_temperature_head": True, "enable_top_p_head": True, "use_enhanced_features": True}
    return {"model_type": "autodeco", **own, **flags, **changes}


def head(t: files.Tensors, name: str, x: list[float]) -> float:
    """One head's sigmoid output, number by number."""
    w, b = t[f"{name}.mlp.0.weight"].tolist(), t[f"{name}.mlp.0.bias"].tolist()
    inner = [
        max(0.0, sum(a * c for a, c in zip(row, x, strict=True)) + d) for row, d in zip(w, b, strict=True)
    ]
    out = sum(a * c for a, c in zip(t[f"{name}.mlp.2.weight"][0].tolist(), inner, strict=True))
    return 1 / (1 + math.exp(-out - float(t[f"{name}.mlp.2.bias"])))


def authors(t: files.Tensors, state: list[float], row: list[float], enhanced: bool) -> tuple[float, float]:
    """(T, P) as the authors' code computes them (templlm_auto.py)."""
    temperature = 2 * head(t, "temp_head", state)
    scaled = [z / (temperature + 1e-8) for z in row]
    total = sum(math.exp(z - max(scaled)) for z in scaled)
    p = [math.exp(z - max(scaled)) / total for z in scaled]
    entropy = -sum(q * math.log(q + 1e-8) for q in p)
    variance = sum((q - 1 / len(p)) ** 2 for q in p) / (len(p) - 1)
    more = [max(p), entropy, variance, sum(sorted(p)[-5:])] if enhanced else []
    return temperature, head(t, "top_p_head", [*state, temperature, *more])


@pytest.mark.parametrize("enhanced", [True, False])
@pytest.mark.parametrize("merged", [False, True])
def test_they_say_what_their_authors_code_says(tiny_model, tmp_path, enhanced, merged):
    """merged: beside the model's own tensors, which are not read."""
    written = tensors(D + (5 if enhanced else 1))
    more = {"llm.lm_head.weight": torch.zeros(V, D)} if merged else {}
    name = files.write(tmp_path / "heads", config(use_enhanced_features=enhanced), written | more)
    assert find_format(tmp_path / "heads") == "autodeco"
    heads = read_heads(name, tmp_path / "heads", Target.of(tiny_model("llama").model))["autodeco"]
    draw = torch.Generator().manual_seed(1)
    state, row = torch.randn(D, generator=draw), 3 * torch.randn(V, generator=draw)
    want = authors(written, state.tolist(), row.tolist(), enhanced)
    assert heads.scores(state, row) == pytest.approx(want, abs=1e-5)


def test_a_lane_draws_with_what_they_say(tiny_model, tmp_path):
    plain, limits = tiny_model("llama"), Limits(3)
    model = LoadedModel(plain.name, plain.model, plain.tokenizer)
    name = files.write(tmp_path / "heads", config(enable_top_p_head=False), tensors())
    add_heads({"target": model}, [name])
    assert model.own_heads == {name: ("autodeco",)} and isinstance(model.heads["autodeco"], AutoDeco)
    trace = Lane("autodeco", [40, 41], {"target": model}, {"top_p": 0.5}, 0, limits).run()
    told = [s.total for step in trace.steps for s in step.of(Measure) if s.scale is not None]
    assert len(set(told[::2])) == 3 and set(told[1::2]) == {0.5}  # the second head was not trained


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": 64}, "their hidden size is 64"),
        ({"vocab_size": 300}, "their vocabulary is 300"),
        ({"use_enhanced_features": False}, r"top_p_head.mlp.0.weight has the shape \(16, 37\)"),
        ({"enable_temperature_head": False, "enable_top_p_head": False}, "saved with both heads off"),
    ],
)
def test_heads_that_do_not_fit_are_refused(tiny_model, tmp_path, changes, words):
    name = files.write(tmp_path / "heads", config(**changes), tensors())
    with pytest.raises(Refusal, match=words):
        read_heads(name, tmp_path / "heads", Target.of(tiny_model("llama").model))
