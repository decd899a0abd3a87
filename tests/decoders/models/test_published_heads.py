"""Heads in the formats that others publish: files of random weights with their names and shapes, and equality
with their authors' forward, written again from its equations.
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from decoders.heads import Eagle, Eagle3, Medusa, Target, take_taps
from decoders.heads.feature_drafters.eagle3 import OUTSIDE
from decoders.models.published import find_format, read_heads
from decoders.models.published.tensors import convert
from decoders.models.published.writing import write_heads
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

D, V, INNER = 32, 259, 40
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": D,
    "intermediate_size": INNER,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 1,
    "rms_norm_eps": 1e-5,
    "vocab_size": V,
    "hidden_act": "silu",
    "rope_theta": 500.0,
    "max_position_embeddings": 512,
}
FORM = dict(heads=4, kv=2, eps=1e-5)


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3).model


@pytest.fixture(scope="module")
def taps(model):
    tokens = torch.randint(0, 250, (1, 14), generator=torch.Generator().manual_seed(5))
    return take_taps(model, tokens, (0, 1))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def eagle_tensors(prefix: str = "", bias: bool = False, qkv_bias: bool = False) -> files.Tensors:
    shapes = {f"{prefix}fc.weight": (D, 2 * D)} | ({f"{prefix}fc.bias": (D,)} if bias else {})
    shapes |= files.llama_layer(f"{prefix}layers.0.", D, 4, 2, 8, INNER, D, qkv_bias)
    return files.drawn(shapes)


@pytest.mark.parametrize(
    ("prefix", "bias", "qkv_bias", "scaling"),
    [("", True, False, None), ("", False, False, LLAMA3), ("model.", False, True, None)],
    ids=["llama 2", "llama 3", "qwen 2 of vLLM"],
)
@pytest.mark.parametrize("embedding", ["none", "the target's", "its own"])
def test_eagle_says_what_its_authors_code_says(
    model, taps, tmp_path, prefix, bias, qkv_bias, scaling, embedding
):
    target, tensors = Target.of(model), eagle_tensors(prefix, bias, qkv_bias)
    embed = target.embed
    if embedding != "none":
        embed = embed if embedding == "the target's" else torch.randn_like(embed)
        tensors[f"{prefix}embed_tokens.weight"] = embed
    config = CONFIG | ({"rope_scaling": scaling} if scaling else {}) | {"bias": bias}
    name = files.write(tmp_path / "eagle", config, tensors)
    module = read_heads(name, tmp_path / "eagle", target)["eagle"]
    form = FORM | {"turns": files.llama3_turns(8, 500.0, scaling)}
    expected = files.eagle_forward(tensors, prefix, embed, taps.hidden[0, :-1], taps.tokens[0, 1:], **form)
    close(module.along(taps, 1)[0][0], (expected @ target.head.T)[:-1])
    assert (module.own_embedding is not None) == (embedding == "its own")


def eagle3_tensors(layer: str, words: int, **extra: tuple[int, ...]) -> files.Tensors:
    shapes = {
        "fc.weight": (D, 3 * D),
        f"{layer}hidden_norm.weight": (D,),
        f"{layer}input_layernorm.weight": (D,),
        "norm.weight": (D,),
        "lm_head.weight": (words, D),
        **extra,
    }
    tensors = files.drawn(shapes | files.llama_layer(layer, D, 4, 2, 8, INNER, 2 * D))
    if words < V:
        kept = torch.randperm(V, generator=torch.Generator().manual_seed(1))[:words].sort().values
        tensors["d2t"] = kept - torch.arange(words)
        tensors["t2d"] = torch.zeros(V, dtype=torch.bool).index_fill(0, kept, True)
    return tensors


SPECULATORS = {
    "plain": ({}, {}),
    "norm before the residual": ({"norm_before_residual": True}, {}),
    "one norm before fc": ({"norm_before_fc": True}, {"input_norm.weight": (3 * D,)}),
    "a norm each": ({"fc_norm": True}, {f"fc_norm.{at}.weight": (D,) for at in range(3)}),
    "normed output": ({"norm_output": True, "norm_before_residual": True}, {}),
}


def check_eagle3(module, tensors, target, taps, layer, reads, **form) -> None:
    states = torch.cat([taps.states[at][0] for at in reads], -1)
    form = FORM | {"turns": files.llama3_turns(8, 500.0, form.pop("scaling", None))} | form
    embed = tensors.get("embed_tokens.weight", target.embed)
    said, own = files.eagle3_forward(tensors, layer, embed, states[:-1], taps.tokens[0, 1:], **form)
    words = len(own[0])
    kept = torch.arange(words) + tensors["d2t"] if "d2t" in tensors else torch.arange(words)
    found = module.along(taps, 1)[0][0]
    close(found[:, kept], own[:-1])
    outside = torch.ones(V, dtype=torch.bool).index_fill(0, kept, False)
    assert (found[:, outside] == OUTSIDE).all()
    close(module.unrolled(taps, 1)[0][0], said[:-1])


@pytest.mark.parametrize("words", [V, 64])
@pytest.mark.parametrize("scaling", [None, LLAMA3], ids=["plain rope", "llama 3 rope"])
def test_eagle3_of_its_authors(model, taps, tmp_path, words, scaling):
    """`midlayer`, the draft's vocabulary by d2t and t2d, and states that enter layers 2, L / 2 and L - 3."""
    target, tensors = Target.of(model), eagle3_tensors("midlayer.", words)
    config = CONFIG | {"draft_vocab_size": words} | ({"rope_scaling": scaling} if scaling else {})
    name = files.write(tmp_path / "eagle3", config, tensors)
    module = read_heads(name, tmp_path / "eagle3", target)["eagle3"]
    assert module.reads == (1, 1, 1)  # a target of two layers
    check_eagle3(module, tensors, target, taps, "midlayer.", (1, 1, 1), scaling=scaling)


@pytest.mark.parametrize("options", SPECULATORS)
def test_eagle3_of_speculators(model, taps, tmp_path, options):
    """The layer's config is a part of its own, the layers to read are named, and norms stand in several
    places. It may bring an embedding.
    """
    flags, extra = SPECULATORS[options]
    target, tensors = Target.of(model), eagle3_tensors("layers.0.", 64, **extra)
    tensors["embed_tokens.weight"] = torch.randn(V, D)
    config = {
        "speculators_model_type": "eagle3",
        "architectures": ["Eagle3Speculator"],
        "draft_vocab_size": 64,
        "eagle_aux_hidden_state_layer_ids": [0, 1, 1],
        "transformer_layer_config": CONFIG,
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": "tiny"}},
        **flags,
    }
    name = files.write(tmp_path / "eagle3", config, tensors)
    module = read_heads(name, tmp_path / "eagle3", target)["eagle3"]
    form = {key: True for key in flags if key in ("norm_before_residual", "norm_output")}
    check_eagle3(module, tensors, target, taps, "layers.0.", (0, 1, 1), **form)


def test_eagle3_in_half_precision_keeps_its_map_of_tokens(model, tmp_path):
    target, tensors = Target.of(model), eagle3_tensors("midlayer.", 64)
    halves = {name: t.bfloat16() if t.is_floating_point() else t for name, t in tensors.items()}
    name = files.write(tmp_path / "eagle3", CONFIG, halves)
    module = read_heads(name, tmp_path / "eagle3", target)["eagle3"]
    assert module.head.weight.dtype == torch.float32 and torch.equal(module.d2t, tensors["d2t"])


def medusa_tensors(heads: int = 3, blocks: int = 2) -> files.Tensors:
    shapes = {}
    for head in range(heads):
        for at in range(blocks):
            shapes |= {f"{head}.{at}.linear.weight": (D, D), f"{head}.{at}.linear.bias": (D,)}
        shapes[f"{head}.{blocks}.weight"] = (V, D)
    return files.drawn(shapes)


def test_medusa_heads_of_their_authors(model, taps, tmp_path):
    """`medusa_lm_head`, a pickle until it is converted by command."""
    tensors, folder = medusa_tensors(), tmp_path / "medusa"
    folder.mkdir()
    (folder / "config.json").write_text(
        json.dumps({"medusa_num_heads": 3, "medusa_num_layers": 2}), encoding="utf-8"
    )
    torch.save(tensors, folder / "medusa_lm_head.pt")
    with pytest.raises(ValueError, match=r"are PyTorch pickles, which are not opened; run .*convert-heads"):
        read_heads(str(folder), folder, Target.of(model))
    assert [path.name for path in convert(folder)] == ["medusa_lm_head.safetensors"]
    module = read_heads(str(folder), folder, Target.of(model))["medusa"]
    said = module.begin(None, taps.hidden[0], taps.tokens[0])
    for head in range(3):
        close(said[head], files.medusa_forward(tensors, head, 2, taps.hidden[0, -1]))
    assert module.depth == 3 and find_format(folder) == "medusa"


@pytest.mark.parametrize("form", ["own matrices", "one matrix", "part of the vocabulary"])
def test_medusa_heads_of_vllm(model, taps, tmp_path, form):
    theirs = medusa_tensors(2, 1)
    tensors = {f"blocks.{k}.layers.0.weight": theirs[f"{k}.0.linear.weight"] for k in range(2)}
    tensors |= {f"lm_heads.{k}.weight": theirs[f"{k}.1.weight"] for k in range(2)}
    kept = torch.arange(V)
    if form == "one matrix":
        tensors = {k: v for k, v in tensors.items() if "lm_heads" not in k}
        tensors["lm_head.weight"] = theirs["1.1.weight"] = theirs["0.1.weight"]
    elif form == "part of the vocabulary":
        kept = tensors["token_map"] = torch.arange(0, V, 5)
    config = {
        "model_type": "medusa",
        "hidden_size": D,
        "num_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": V,
    }
    name = files.write(tmp_path / "medusa", config, tensors)
    module = read_heads(name, tmp_path / "medusa", Target.of(model))["medusa"]
    for k in range(2):
        theirs[f"{k}.0.linear.bias"] = torch.zeros(D)
        expected = files.medusa_forward(theirs, k, 1, taps.hidden[0, 5])
        close(module.head(k + 1, taps.hidden[0, 5])[kept], expected[kept])


def wider(tensors: files.Tensors, name: str) -> None:
    tensors[name] = torch.cat([tensors[name], tensors[name]], -1)


@pytest.mark.parametrize(
    ("spoil", "config", "words"),
    [
        (lambda t: t, {"hidden_size": 64}, r"their hidden size is 64, that of the target is 32"),
        (lambda t: t, {"vocab_size": 300}, r"their vocabulary is 300, that of the target is 259"),
        (lambda t: t.update({"layers.1.mlp.up_proj.weight": torch.ones(2)}), {}, "have 2 layers; only one"),
        (lambda t: t, {"hidden_act": "gelu"}, "use gelu"),
        (lambda t: t, {"num_key_value_heads": 4}, r"k_proj.weight has the shape \(16, 32\), and \(32, 32\)"),
        (lambda t: t.pop("layers.0.mlp.up_proj.weight"), {}, "lack the tensor 'layers.0.mlp.up_proj.weight'"),
        (lambda t: t.update(more=torch.ones(2)), {}, "hold 'more', which this format does not know"),
        (lambda t: wider(t, "fc.weight"), {}, r"fc.weight has the shape \(32, 128\)"),
        (lambda t: t, {"hidden_size": None}, "cannot be read|do not specify|hidden size"),
    ],
)
def test_heads_that_do_not_fit_are_refused_with_what_differs(model, tmp_path, spoil, config, words):
    tensors = eagle_tensors()
    spoil(tensors)
    config = {key: value for key, value in (CONFIG | config).items() if value is not None}
    name = files.write(tmp_path / "eagle", config, tensors)
    with pytest.raises(ValueError, match=words) as refused:
        read_heads(name, tmp_path / "eagle", Target.of(model))
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(t2d=torch.ones(V, dtype=torch.bool)), "d2t and t2d name different tokens"),
        (dict(d2t=torch.zeros(10, dtype=torch.long)), "map 10 tokens and have 64"),
        (dict(t2d=torch.ones(300, dtype=torch.bool)), "their vocabulary is 300"),
        ({"fc.weight": torch.ones(D, 3 * 48)}, "states times their width is 144, that of the target is 96"),
    ],
)
def test_an_eagle3_that_does_not_fit_is_refused_with_what_differs(model, tmp_path, change, words):
    name = files.write(tmp_path / "eagle3", CONFIG, eagle3_tensors("midlayer.", 64) | change)
    with pytest.raises(ValueError, match=words):
        read_heads(name, tmp_path / "eagle3", Target.of(model))


def test_an_eagle3_that_reads_layers_beyond_the_target_is_refused(model, tmp_path):
    config = CONFIG | {"eagle_aux_hidden_state_layer_ids": [1, 1, 7]}
    name = files.write(tmp_path / "eagle3", config, eagle3_tensors("midlayer.", 64))
    with pytest.raises(ValueError, match="read layer 7, and the target has 2 layers"):
        read_heads(name, tmp_path / "eagle3", Target.of(model))


class Harmful:
    """What a pickle must not do."""

    def __reduce__(self):
        return (open, ("harm.txt", "w"))


def test_a_pickle_that_holds_more_than_tensors_is_never_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"0.0.linear.weight": Harmful()}, tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ValueError, match="holds more than tensors, and is not opened"):
        convert(tmp_path)
    torch.save([1, 2], tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ValueError, match="holds no state dict"):
        convert(tmp_path)
    assert not (tmp_path / "harm.txt").exists() and not list(tmp_path.glob("*.safetensors"))


def test_a_whole_model_is_no_head(tmp_path):
    tiny_models.save(tmp_path / "model")
    assert find_format(tmp_path / "model") is None
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "config.json").write_text(
        json.dumps({"speculators_model_type": "eagle4"}), encoding="utf-8"
    )
    save_file({"speculator.emb.0.weight": torch.ones(2, 2)}, tmp_path / "spec" / "model.safetensors")
    with pytest.raises(ValueError, match="have the format 'eagle4', which is not known here"):
        find_format(tmp_path / "spec")


@pytest.mark.parametrize("kind", ["eagle", "eagle3"])
def test_our_own_drafters_are_written_as_vllm_reads_them(model, taps, tmp_path, kind):
    """And read back they guess the same; vLLM's EAGLE has no bias, so ours lies in the embeddings."""
    torch.manual_seed(4)
    target = Target.of(model)
    module = Eagle(target) if kind == "eagle" else Eagle3(target, 100, (0, 1))
    if kind == "eagle3":
        module.keep(torch.arange(0, 200, 2))
    module = module.eval()
    write_heads(tmp_path, module, "a target")
    assert find_format(tmp_path) == kind
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert config.get("speculators_model_type") == (None if kind == "eagle" else "eagle3")
    assert not any(name.endswith("bias") for name in load_file(tmp_path / "model.safetensors"))
    back = read_heads("ours", tmp_path, target)[kind]
    for found, expected in zip(back.along(taps, 2), module.along(taps, 2), strict=True):
        close(found, expected)


def test_other_heads_are_not_written_for_vllm(model, tmp_path):
    with pytest.raises(ValueError, match="EAGLE and EAGLE-3 can"):
        write_heads(tmp_path, Medusa(Target.of(model)), "a target")
