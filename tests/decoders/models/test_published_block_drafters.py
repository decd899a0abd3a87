"""DFlash and P-EAGLE in the formats of z-lab, vLLM and speculators, and all kinds of that library: files of
random weights with their names and shapes, and equality with the authors' forward, written again with plain
tensors.
"""

import json
import re

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from decoders.heads import Target, take_taps
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.models.published import find_format, read_heads, read_multi_token
from decoders.refusal import Refusal
from tests.helpers import published_heads as files
from tests.helpers import tiny_models
from tests.helpers.published_heads import Tensors

D, V, INNER, MASK, BLOCK, DEPTH = 32, 259, 40, 258, 5, 4
QWEN3 = {
    "model_type": "qwen3",
    "hidden_size": D,
    "intermediate_size": INNER,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": V,
    "hidden_act": "silu",
    "rope_theta": 500.0,
    "max_position_embeddings": 512,
}
ZLAB = QWEN3 | {
    "architectures": ["DFlashDraftModel"],
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "block_size": BLOCK,
    "dflash_config": {"mask_token_id": MASK, "target_layer_ids": [0, 0]},
    "num_target_layers": 2,
    "layer_types": ["full_attention"] * 2,
    "num_hidden_layers": 2,
    "use_sliding_window": False,
}
SPECULATORS = {
    "architectures": ["DFlashSpeculator"],
    "speculators_model_type": "dflash",
    "aux_hidden_state_layer_ids": [0, 1],
    "block_size": BLOCK,
    "draft_vocab_size": 64,
    "mask_token_id": MASK,
    "sample_from_anchor": False,
    "sliding_window_non_causal": False,
    "transformer_layer_config": QWEN3,
    "speculators_config": {"algorithm": "dflash", "verifier": {"name_or_path": "tiny"}},
}
FORM = dict(heads=4, kv=2, turns=files.llama3_turns(16, 500.0, None), eps=1e-5)


@pytest.fixture(scope="module")
def model():
    return tiny_models.make("llama", seed=3).model


@pytest.fixture(scope="module")
def taps(model):
    tokens = torch.randint(0, 250, (1, 14), generator=torch.Generator().manual_seed(5))
    return take_taps(model, tokens, (0, 1))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def dflash_tensors(layers: int = 2, words: int | None = None) -> Tensors:
    shapes = {"fc.weight": (D, 2 * D), "hidden_norm.weight": (D,), "norm.weight": (D,)}
    for at in range(layers):
        own = f"layers.{at}."
        shapes |= files.llama_layer(own, D, 4, 2, 16, INNER, D)
        shapes |= {f"{own}input_layernorm.weight": (D,)}
        shapes |= {f"{own}self_attn.{kind}_norm.weight": (16,) for kind in "qk"}
    return files.drawn(shapes) | small_vocabulary(words)


def small_vocabulary(words: int | None) -> Tensors:
    """The tensors of speculators that z-lab's files lack."""
    if words is None:
        return {}
    kept = torch.randperm(V, generator=torch.Generator().manual_seed(1))[:words].sort().values
    return files.drawn({"embed_tokens.weight": (V, D), "lm_head.weight": (words, D)}, seed=2) | {
        "d2t": kept - torch.arange(words),
        "t2d": torch.zeros(V, dtype=torch.bool).index_fill(0, kept, True),
    }


def read(folder, config: dict, tensors: Tensors, target: Target, kind: str):
    name = files.write(folder / "heads", config, tensors)
    assert find_format(folder / "heads") == kind
    return read_heads(name, folder / "heads", target)[kind]


def check_dflash(module, tensors, target, taps, reads, embed, head, **form) -> None:
    """Every row of `along`, and the rounds of a lane, against a block of its own after each text."""
    said = module.along(taps, module.depth)
    memory, known = module.memory(), 0
    for n in (0, 2, 3, 7):
        states = torch.cat([taps.states[layer][0, : n + 1] for layer in reads], -1)
        root = int(taps.tokens[0, n + 1])
        out = files.dflash_forward(tensors, embed, states, root, MASK, module.block, **FORM, **form)
        own = out[: module.depth] if module.published.from_anchor else out[1:]
        expected = own @ head.T
        new = {layer: taps.states[layer][0, known : n + 1] for layer in reads}
        begun = module.begin(memory, taps.hidden[0, known : n + 1], taps.tokens[0, known + 1 : n + 2], new)
        known = n + 1
        kept = torch.arange(len(head)) + tensors.get("d2t", torch.zeros(len(head), dtype=torch.long))
        for k in range(module.depth):
            close(said[k][0, n][kept], expected[k])
            close(begun[k][kept], expected[k])


def test_dflash_of_its_authors(model, taps, tmp_path):
    """z-lab's folders: the target's embedding and head, and layers by index: the output of layer 0."""
    target, tensors = Target.of(model), dflash_tensors()
    module = read(tmp_path, ZLAB, tensors, target, "dflash")
    assert module.reads == (1, 1) and (module.block, module.depth) == (BLOCK, BLOCK - 1)
    assert module.head is None and module.own_embedding is None
    check_dflash(module, tensors, target, taps, (1, 1), target.embed, target.head)


OPTIONS = {
    "plain": ({}, {}, {}),
    "a guess at the anchor": ({"sample_from_anchor": True}, {}, {}),
    "a window": (
        {},
        {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 3},
        {"windows": (None, 3)},
    ),
    "a window that looks both ways": (
        {"sliding_window_non_causal": True},
        {"layer_types": ["sliding_attention", "sliding_attention"], "sliding_window": 2},
        {"windows": (2, 2), "causal": False},
    ),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_dflash_of_speculators(model, taps, tmp_path, option):
    """A vocabulary and an embedding of its own; layers by how many have run."""
    flags, layer, form = OPTIONS[option]
    target, tensors = Target.of(model), dflash_tensors(words=64)
    config = SPECULATORS | flags | {"transformer_layer_config": QWEN3 | layer}
    module = read(tmp_path, config, tensors, target, "dflash")
    assert module.reads == (0, 1) and module.depth == BLOCK - (option != "a guess at the anchor")
    check_dflash(
        module,
        tensors,
        target,
        taps,
        (0, 1),
        tensors["embed_tokens.weight"],
        tensors["lm_head.weight"],
        **form,
    )


def test_a_dflash_that_repeats_the_targets_matrices_shares_them(model, taps, tmp_path):
    """As speculators saves it where the vocabulary is whole."""
    target = Target.of(model)
    tensors = dflash_tensors() | {"embed_tokens.weight": target.embed, "lm_head.weight": target.head}
    module = read(tmp_path, SPECULATORS | {"draft_vocab_size": V}, tensors, target, "dflash")
    assert module.head is None and module.own_embedding is None


def peagle_tensors(layer: str = "layers.0.", words: int = 64) -> Tensors:
    shapes = {
        "fc.weight": (D, 2 * D),
        f"{layer}hidden_norm.weight": (D,),
        f"{layer}input_layernorm.weight": (D,),
        "norm.weight": (D,),
        "mask_hidden": (1, 1, 2 * D),
    }
    shapes |= files.llama_layer(layer, D, 4, 2, 16, INNER, 2 * D)
    for at in (1, 2):
        shapes |= files.llama_layer(f"layers.{at}.", D, 4, 2, 16, INNER, D)
        shapes[f"layers.{at}.input_layernorm.weight"] = (D,)
    return files.drawn(shapes) | small_vocabulary(words)


LLAMA = QWEN3 | {"model_type": "llama"}
VLLM = LLAMA | {  # as the folders of Amazon for vLLM
    "architectures": ["LlamaForCausalLMEagle3"],
    "eagle_aux_hidden_state_layer_ids": [0, 1],
    "draft_vocab_size": 64,
    "num_hidden_layers": 3,
    "ptd_token_id": MASK,
}
PEAGLE = {
    "architectures": ["PEagleSpeculator"],
    "speculators_model_type": "peagle",
    "eagle_aux_hidden_state_layer_ids": [0, 1],
    "draft_vocab_size": 64,
    "mask_token_id": MASK,
    "norm_output": True,  # which its forward never uses
    "norm_before_residual": True,
    "transformer_layer_config": LLAMA,
    "speculators_config": {
        "algorithm": "peagle",
        "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": DEPTH}],
    },
}


@pytest.mark.parametrize("form", ["vLLM", "speculators"])
def test_peagle(model, taps, tmp_path, form):
    """Three layers, of which the first has EAGLE-3's form, and masks with the learned vector."""
    layer, config = ("midlayer.", VLLM) if form == "vLLM" else ("layers.0.", PEAGLE)
    target, tensors = Target.of(model), peagle_tensors(layer)
    module = read(tmp_path, config, tensors, target, "peagle")
    assert module.depth == (8 if form == "vLLM" else DEPTH) and module.mask_token == MASK
    said = module.along(taps, DEPTH)
    kept = torch.arange(64) + tensors["d2t"]
    for n in (0, 3, 8):
        states = torch.cat([taps.states[at][0, : n + 1] for at in (0, 1)], -1)
        expected = files.peagle_forward(
            tensors,
            layer,
            tensors["embed_tokens.weight"],
            states,
            taps.tokens[0, 1 : n + 2],
            MASK,
            DEPTH,
            **FORM,
            norm_before_residual=form == "speculators",
        )
        for k in range(DEPTH):
            close(said[k][0, n][kept], expected[k])


@pytest.mark.parametrize(("kind", "config"), [("dflash", ZLAB), ("peagle", VLLM)])
def test_published_block_drafters_leave_greedys_text(tmp_path, kind, config):
    target = tiny_models.make("llama", seed=2)
    tensors = dflash_tensors() if kind == "dflash" else peagle_tensors("midlayer.")
    target.heads = {kind: read(tmp_path, config, tensors, Target.of(target.model), kind)}
    prompt = target.encode("the cat sat")
    trace = Lane(kind, prompt, {"target": target}, {"temperature": 0.0}, limits=Limits(20)).run()
    assert trace.output() == tiny_models.generate(target, prompt, max_new_tokens=20)


def without(config: dict, *keys: str) -> dict:
    return {key: value for key, value in config.items() if key not in keys}


OWN = ZLAB["dflash_config"]
REFUSED = [
    ("dflash", ZLAB | {"hidden_size": 64}, "their hidden size is 64, that of the target is 32"),
    ("dflash", ZLAB | {"num_target_layers": 36}, "num_target_layers is 36, and the target says 2"),
    ("dflash", ZLAB | {"dflash_config": OWN | {"target_layer_ids": [0]}}, "states times their width is 64"),
    ("dflash", ZLAB | {"dflash_config": OWN | {"target_layer_ids": [0, 1]}}, "read layer 2"),
    ("dflash", ZLAB | {"dflash_config": {"mask_token_id": 5}}, "do not say which layers of the target"),
    ("dflash", ZLAB | {"dflash_config": {"target_layer_ids": [0, 0]}}, "which token stands for an unknown"),
    ("dflash", ZLAB | {"dflash_config": OWN | {"mask_token_id": V}}, "name 259 as the token for an unknown"),
    ("dflash", ZLAB | {"dflash_config": OWN | {"causal": True}}, "dflash_config.causal to True; only False"),
    ("dflash", ZLAB | {"dflash_config": OWN | {"more": 1}}, "sets 'dflash_config.more', which is not known"),
    ("dflash", ZLAB | {"logit_scale": 2.0}, "sets 'logit_scale'"),
    ("dflash", without(ZLAB, "block_size"), "do not specify block_size"),
    (
        "dflash",
        ZLAB | {"layer_types": ["sliding_attention"] * 2, "sliding_window": 4},
        "sliding window, which are known here in the format of speculators alone",
    ),
    ("peagle", without(PEAGLE, "mask_token_id"), "which token stands for an unknown one"),
    ("peagle", PEAGLE | {"mask_token_id": -1}, "name -1 as the token for an unknown one"),
]


@pytest.mark.parametrize(("kind", "config", "words"), REFUSED)
def test_what_does_not_fit_is_refused_with_what_differs(model, tmp_path, kind, config, words):
    tensors = dflash_tensors() if kind == "dflash" else peagle_tensors()
    with pytest.raises(Refusal, match=words) as refused:
        read(tmp_path, config, tensors, Target.of(model), kind)
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


@pytest.mark.parametrize("lost", ["mask_hidden", "layers.2.mlp.up_proj.weight"])
def test_a_peagle_without_one_of_its_tensors_is_refused(model, tmp_path, lost):
    tensors = peagle_tensors()
    del tensors[lost]
    with pytest.raises(Refusal, match=f"lack the tensor '{re.escape(lost)}'"):
        read(tmp_path, PEAGLE, tensors, Target.of(model), "peagle")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"speculators_model_type": "dspark"}, "DFlash with a Markov head.* and a head of confidence"),
        ({"speculators_model_type": "mlp"}, "only ever a config: no forward was published"),
        ({"speculators_config": {"algorithm": "ngram"}}, "no weights: choose the strategy prompt_lookup"),
        ({"speculators_config": {"algorithm": "suffix"}}, "drafts from suffixes, which have no weights"),
    ],
)
def test_other_kinds_of_speculators_are_refused_with_what_is_missing(tmp_path, config, words):
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(Refusal, match=words):
        find_format(tmp_path)


def test_a_whole_model_with_a_pard_token_is_no_head(tmp_path):
    """As PARD's drafts are: ordinary models that read masks."""
    tiny_models.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8")) | {"pard_token": 5}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert find_format(tmp_path) is None


def test_an_independent_draft_of_speculators_is_an_ordinary_model(tmp_path):
    tiny_models.save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    part = {"algorithm": "draft_model", "verifier": {"name_or_path": "tiny"}}
    config |= {"speculators_model_type": "independent", "speculators_config": part}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert find_format(tmp_path) is None
    assert load(str(tmp_path)).model.config.model_type == "llama"


def test_the_first_eagle_of_speculators(model, taps, tmp_path):
    """`fusion_fc` and `transformer` in place of `fc` and the layer's number; with norms it is refused."""
    target = Target.of(model)
    shapes = {"fusion_fc.weight": (D, 2 * D), "fusion_fc.bias": (D,)}
    tensors = files.drawn(shapes | files.llama_layer("transformer.", D, 4, 2, 16, INNER, D))
    config = {
        "architectures": ["EagleSpeculator", "LlamaDecoderLayer"],
        "speculators_model_type": "eagle",
        "transformer_layer_architecture": "LlamaDecoderLayer",
        "transformer_layer_config": LLAMA,
        "fusion_bias": True,
        "layernorms": False,
        "speculators_config": {"algorithm": "eagle"},
    }
    module = read(tmp_path, config, tensors, target, "eagle")
    plain = {
        name.replace("fusion_fc", "fc").replace("transformer.", "layers.0."): t for name, t in tensors.items()
    }
    expected = files.eagle_forward(plain, "", target.embed, taps.hidden[0, :-1], taps.tokens[0, 1:], **FORM)
    close(module.along(taps, 1)[0][0], (expected @ target.head.T)[:-1])
    with pytest.raises(Refusal, match="norms before fc, in the layer and before the target's head"):
        read(tmp_path / "normed", config | {"layernorms": True}, tensors, target, "eagle")


def test_a_multi_token_layer_of_speculators_is_that_of_the_checkpoint(tmp_path):
    """The same tensors under the names of Qwen's checkpoints, in the target's folder, guess the same."""
    torch.manual_seed(0)
    shape = without(QWEN3, "model_type", "rope_theta")
    model = Qwen3ForCausalLM(Qwen3Config(**shape, num_hidden_layers=2, tie_word_embeddings=False)).eval()
    target = Target.of(model)
    layer = files.llama_layer("mtp_layers.0.", D, 4, 2, 16, INNER, D)
    layer |= {f"mtp_layers.0.self_attn.{kind}_norm.weight": (16,) for kind in "qk"}
    layer["mtp_layers.0.input_layernorm.weight"] = (D,)
    rest = {"token_layernorm": (D,), "hidden_layernorm": (D,), "input_proj": (D, 2 * D)}
    rest |= {"final_layernorm": (D,)}
    tensors = files.drawn(layer | {f"mtp_layers.0.{name}.weight": size for name, size in rest.items()})
    config = {
        "architectures": ["MTPDraftModel"],
        "speculators_model_type": "mtp",
        "num_nextn_predict_layers": 1,
        "transformer_layer_config": QWEN3,
        "speculators_config": {"algorithm": "mtp"},
    }
    name = files.write(tmp_path / "heads", config, tensors)
    assert find_format(tmp_path / "heads") == "mtp"
    theirs = read_heads(name, tmp_path / "heads", target)["eagle"]
    names = {
        "mtp_layers.0.token_layernorm": "mtp.pre_fc_norm_embedding",
        "mtp_layers.0.hidden_layernorm": "mtp.pre_fc_norm_hidden",
        "mtp_layers.0.input_proj": "mtp.fc",
        "mtp_layers.0.final_layernorm": "mtp.norm",
    }
    native = {}
    for key, value in tensors.items():
        stem = key.removesuffix(".weight")
        native[names.get(stem, stem.replace("mtp_layers.0.", "mtp.layers.0.")) + ".weight"] = value
    files.write(tmp_path / "target", {}, native)
    own = read_multi_token("own", tmp_path / "target", target)
    tokens = torch.randint(0, 250, (1, 10), generator=torch.Generator().manual_seed(5))
    taps = take_taps(model, tokens)
    for one, two in zip(theirs.along(taps, 2), own.along(taps, 2), strict=True):
        close(one, two)
    with pytest.raises(Refusal, match="hold a layer of 'qwen3_next', and the target is of 'qwen3'"):
        config["transformer_layer_config"] = QWEN3 | {"model_type": "qwen3_next"}
        read_heads(files.write(tmp_path / "other", config, tensors), tmp_path / "other", target)
