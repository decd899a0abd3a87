"""Loading: shipped models, folders, Hub ids with a revision; safetensors only; the fallback for models
without tree masks.
"""

import json

import pytest
import torch
import transformers

from decoders import models, names
from decoders.lane import Lane, Limits
from decoders.sequences import SequenceEngine, engine_for
from decoders.tree import Tree

SMALL = dict(vocab_size=200, hidden_size=32, num_hidden_layers=2)


@pytest.mark.parametrize("name", ["llama-tiny", "llama-tiny-draft"])
def test_shipped_models_load_with_transformers_alone(name):
    folder = names.SHIPPED / name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("Once upon a time", return_tensors="pt")["input_ids"]
    assert model(ids).logits.shape == (1, ids.shape[1], len(tokenizer))
    assert list(folder.glob("*.safetensors")) and not list(folder.glob("*.bin"))


def test_shipped_pair_fits():
    target, draft = models.load("llama-tiny"), models.load("llama-tiny-draft")
    models.check_pair(target, draft)
    assert target.facts()["parameters"] > 3 * draft.facts()["parameters"]
    assert target.bytes_of(target.encode("the")[0]) == b"the"


def test_names_are_told_apart(tmp_path):
    assert names.locate("llama-tiny") == (str(names.SHIPPED / "llama-tiny"), None)
    assert names.locate("owner/model@v1.0") == ("owner/model", "v1.0")
    assert names.locate("owner/model") == ("owner/model", None)
    for wrong in ("nosuch", "./nosuch", "/nosuch", "a/b/c"):
        with pytest.raises(ValueError, match="no model"):
            names.locate(wrong)


def test_revisions_reach_the_hub(monkeypatch):
    asked = []

    def fake(where, **options):
        asked.append((where, options.get("revision")))
        raise OSError("offline")

    monkeypatch.setattr(models.AutoConfig, "from_pretrained", fake)
    with pytest.raises(ValueError, match="could not be loaded: offline"):
        models.load("owner/model@abc")
    assert asked == [("owner/model", "abc")]


def test_a_folder_with_pickled_weights_only_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="only safetensors"):
        models.load(str(tmp_path))


@pytest.mark.parametrize(
    "config",
    [
        transformers.BloomConfig(vocab_size=200, hidden_size=32, n_layer=2, n_head=4),
        transformers.MambaConfig(**SMALL),
        transformers.FalconConfig(**SMALL, num_attention_heads=4, alibi=True),
    ],
    ids=lambda c: c.model_type,
)
def test_models_without_tree_masks_fall_back_and_say_so(config):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    engine = engine_for(model)
    assert isinstance(engine, SequenceEngine) and "tree mask" in engine.note
    tree = Tree([5, 6, 7])
    a, b = tree.add(2, 8), tree.add(2, 9)
    deep = tree.add(a, 10)
    rows = engine.attach(tree).score([b, deep])
    with torch.inference_mode():
        for node, row in zip((b, deep), rows, strict=True):
            assert (model(torch.tensor([tree.text(node)])).logits[0, -1] - row).abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["gemma3", "mistral"])
def test_sliding_windows_shorter_than_the_text_are_kept(kind):
    """Mixed and pure sliding attention: tokens beyond the window are masked as the model itself would mask
    them.
    """
    torch.manual_seed(0)
    shape = dict(
        **SMALL, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2, sliding_window=6
    )
    if kind == "gemma3":
        layers = ["sliding_attention", "full_attention"]
        config = transformers.Gemma3TextConfig(**shape, head_dim=8, layer_types=layers)
    else:
        config = transformers.MistralConfig(**shape)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    engine = engine_for(model)
    assert not isinstance(engine, SequenceEngine)
    tree = Tree(list(range(5, 14)))
    scorer, node = engine.attach(tree), 8
    for i in range(10):
        pair = [tree.add(node, 20 + i), tree.add(node, 60 + i)]
        rows = scorer.score(pair)
        node = pair[0]
        with torch.inference_mode():
            for n, row in zip(pair, rows, strict=True):
                assert (model(torch.tensor([tree.text(n)])).logits[0, -1] - row).abs().max() < 1e-5


def test_the_fallback_decodes_and_leaves_a_note(tiny_model):
    model = tiny_model("llama")
    slow = models.LoadedModel("slow", model.model, model.tokenizer)
    slow.__dict__["engine"] = SequenceEngine(model.model)
    prompt = [5, 6, 7, 8]
    fast = Lane("beam", prompt, {"target": model}, limits=Limits(8)).run()
    trace = Lane("beam", prompt, {"target": slow}, limits=Limits(8)).run()
    assert trace.output() == fast.output()
    assert any("tree mask" in getattr(e, "text", "") for e in trace.steps[0].events)
