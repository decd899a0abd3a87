"""Hydra heads and the MLP speculator as they are published: files of random weights with their names and
shapes, and equality with their authors' forward, written again from its equations.
"""

import pytest
import torch

from decoders.heads import Target, take_taps
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.published import find_format, read_heads
from decoders.models.published.tensors import convert
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

D, V, INNER = 32, 259, 40
HYDRA = {"hydra_num_heads": 3, "hydra_num_layers": 2, "grounded_heads": True, "hydra_head_arch": "mlp"}
SPECULATOR = {"model_type": "mlp_speculator", "emb_dim": D, "vocab_size": V, "n_predict": 3}


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3).model


@pytest.fixture(scope="module")
def taps(model):
    tokens = torch.randint(0, 250, (1, 14), generator=torch.Generator().manual_seed(5))
    return take_taps(model, tokens)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def hydra_tensors(blocks: list[int], matrix: str = "") -> files.Tensors:
    """blocks: their numbers in a head; the deeper ones are one instance, as in the authors' code."""
    shapes = {}
    for head in range(3):
        for at, block in enumerate(blocks):
            reads = (head + 2) * D if at == 0 else D
            shapes |= {
                f"hydra_mlp.{head}.{block}.linear.weight": (D, reads),
                f"hydra_mlp.{head}.{block}.linear.bias": (D,),
            }
        own = f"hydra_mlp.{head}.{blocks[0]}.res_connection."
        shapes |= {f"{own}weight": (D, (head + 2) * D), f"{own}bias": (D,)}
        own = f"hydra_lm_head.{head}.{matrix}"
        shapes |= {f"{own}weight": (V, D), f"{own}bias": (V,)}
    tensors = files.drawn(shapes)
    for head in range(3):
        for block in blocks[2:]:
            for kind in ("weight", "bias"):
                first = tensors[f"hydra_mlp.{head}.{blocks[1]}.linear.{kind}"]
                tensors[f"hydra_mlp.{head}.{block}.linear.{kind}"] = first.clone()
    return tensors


def prefix_tensors() -> files.Tensors:
    own = "prefix_embeding_layer."
    shapes = files.llama_layer(f"{own}layers.0.", D, 4, 2, 8, INNER, D)
    shapes |= {f"{own}layers.0.input_layernorm.weight": (D,), f"{own}norm.weight": (D,)}
    return files.drawn(shapes | {f"{own}embed_tokens.weight": (V, D)}, seed=1)


@pytest.mark.parametrize("blocks", [[0], [0, 1, 2]], ids=["one block", "three blocks"])
def test_hydra_says_what_its_authors_code_says(model, taps, tmp_path, blocks):
    """`hydra_lm_head`, a pickle until it is converted by command."""
    tensors, target = hydra_tensors(blocks), Target.of(model)
    (tmp_path / "config.json").write_text("{}", "utf-8")
    torch.save(tensors, tmp_path / "hydra_lm_head.pt")
    with pytest.raises(ValueError, match="convert-heads"):
        read_heads("hydra", tmp_path, target)
    convert(tmp_path)
    module = read_heads("hydra", tmp_path, target)["hydra"]
    assert find_format(tmp_path) == "hydra" and module.depth == 3
    for head, said in enumerate(module.along(taps, 3)):
        states = taps.hidden[0, : said.shape[1]]
        expected = files.hydra_forward(tensors, blocks, target.embed, states, taps.tokens[0, 1:], head)
        close(said[0], expected)


def test_hydra_plus_says_what_its_authors_code_says(model, taps, tmp_path):
    """Dropout layers count, the deeper blocks are repeated, and a layer looks back."""
    blocks = [1, 3, 5, 7]
    tensors, target = hydra_tensors(blocks, "1.") | prefix_tensors(), Target.of(model)
    name = files.write(tmp_path / "plus", HYDRA | {"hydra_head_arch": "prefix-mlp"}, tensors)
    module = read_heads(name, tmp_path / "plus", target)["hydra"]
    turns = files.llama3_turns(8, target.theta, None)
    read = files.hydra_prefix(tensors, taps.hidden[0], target.eps, heads=4, kv=2, turns=turns)
    for head, said in enumerate(module.along(taps, 3)):
        states = read[: said.shape[1]]
        close(said[0], files.hydra_forward(tensors, blocks, target.embed, states, taps.tokens[0, 1:], head))
    memory = module.memory()  # and as it drafts
    close(module.begin(memory, taps.hidden[0, :5], taps.tokens[0, 1:6]), module.along(taps, 1)[0][0, 4])


def speculator_tensors(inner: int, tied: bool) -> files.Tensors:
    shapes = {}
    for at in range(3):
        own = "speculator."
        shapes |= {
            f"{own}emb.{at}.weight": (V, inner),
            f"{own}proj.{at}.weight": (inner, D if at == 0 else inner),
            f"{own}ln.{at}.weight": (inner,),
            f"{own}ln.{at}.bias": (inner,),
            f"{own}head.{at}.weight": (V, inner),
        }
    tensors = files.drawn(shapes)
    if tied:
        for part in ("emb.{}.weight", "ln.{}.weight", "ln.{}.bias", "head.{}.weight"):
            for at in (1, 2):
                tensors["speculator." + part.format(at)] = tensors["speculator." + part.format(0)].clone()
        tensors["speculator.proj.2.weight"] = tensors["speculator.proj.1.weight"].clone()
    return tensors


@pytest.mark.parametrize("scale_input", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("copies", [True, False], ids=["all written", "once"])
def test_the_speculator_says_what_its_authors_code_says(model, taps, tmp_path, tied, scale_input, copies):
    tensors, target = speculator_tensors(24, tied), Target.of(model)
    written = dict(tensors)
    if tied and not copies:
        later = ("emb.1", "emb.2", "ln.1", "ln.2", "head.1", "head.2", "proj.2")
        written = {
            k: v for k, v in tensors.items() if not k.startswith(tuple(f"speculator.{p}" for p in later))
        }
    config = SPECULATOR | {"inner_dim": 24, "tie_weights": tied, "scale_input": scale_input}
    name = files.write(tmp_path / "spec", config, written)
    module = read_heads(name, tmp_path / "spec", target)["mlp_speculator"]
    found = module.along(taps, 3)
    count = found[-1].shape[1]
    states = taps.hidden[0, :count]
    expected = files.speculator_forward(tensors, 3, states, taps.tokens[0, 1:], scale_input)
    for said, wanted in zip(found, expected, strict=True):
        close(said[0, :count], wanted)


def test_what_does_not_fit_is_refused_in_one_sentence(model, tmp_path):
    target = Target.of(model)
    config = SPECULATOR | {"inner_dim": 24, "tie_weights": True}
    name = files.write(tmp_path / "untied", config, speculator_tensors(24, False))
    with pytest.raises(ValueError, match=r"contradict themselves: their weights are tied, and emb\.1"):
        read_heads(name, tmp_path / "untied", target)
    wide = speculator_tensors(24, False)
    wide["speculator.proj.0.weight"] = torch.zeros(24, 64)
    name = files.write(tmp_path / "wide", SPECULATOR | {"inner_dim": 24}, wide)
    with pytest.raises(ValueError, match="their hidden size is 64, that of the target is 32"):
        read_heads(name, tmp_path / "wide", target)
    plain = {k: v for k, v in hydra_tensors([0]).items() if "res_connection" not in k}
    name = files.write(tmp_path / "blind", HYDRA, plain)
    with pytest.raises(ValueError, match="read no drafted tokens"):
        read_heads(name, tmp_path / "blind", target)
    lacking = hydra_tensors([0])
    del lacking["hydra_lm_head.1.bias"]
    name = files.write(tmp_path / "lacking", HYDRA, lacking)
    with pytest.raises(ValueError, match=r"do not define matrices\.1\.bias"):
        read_heads(name, tmp_path / "lacking", target)


@pytest.mark.parametrize("strategy", ["hydra", "mlp_speculator"])
def test_lanes_draft_with_them_and_write_greedys_text(tmp_path, strategy):
    target = load(tiny_models.save(tmp_path / "target", seed=3))
    tensors = hydra_tensors([0]) if strategy == "hydra" else speculator_tensors(24, False)
    name = files.write(tmp_path / "heads", HYDRA if strategy == "hydra" else SPECULATOR, tensors)
    target.heads = read_heads(name, tmp_path / "heads", Target.of(target.model))
    trace = Lane(strategy, [5, 6], {"target": target}, limits=Limits(12)).run()
    assert trace.output() == tiny_models.generate(target, [5, 6], max_new_tokens=12)
    assert trace.costs.totals()["proposed"] > 0
