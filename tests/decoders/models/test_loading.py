"""Loading: shipped models, folders, Hub ids with a revision; safetensors only; the fallback for models
without tree masks.
"""

import json

import pytest
import torch
import transformers

from decoders.engine.fitting_engine import engine_of
from decoders.engine.sequence_engine import SequenceEngine
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models import catalog, loading
from decoders.models.architectures import architectures
from decoders.models.loaded_model import LoadedModel
from decoders.models.lora import is_adapter
from decoders.models.memory_estimate import footprint
from decoders.models.rounded_change import is_change
from decoders.refusal import Refusal
from tests.helpers import tiny_models

SMALL = dict(vocab_size=200, hidden_size=32, num_hidden_layers=2)


def whole(name: str) -> bool:
    """Whether a shipped model has all of its weights in its own folder, and its class in transformers."""
    folder = catalog.SHIPPED / name
    own = json.loads((folder / "config.json").read_text("utf-8"))["model_type"] in architectures()
    return not own and not is_adapter(folder) and not is_change(folder)


@pytest.mark.parametrize("name", filter(whole, catalog.shipped()))
def test_shipped_models_load_with_transformers_alone(name):
    folder = catalog.SHIPPED / name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("Once upon a time", return_tensors="pt")["input_ids"]
    assert model(ids).logits.shape == (1, ids.shape[1], len(tokenizer))
    assert list(folder.glob("*.safetensors")) and not list(folder.glob("*.bin"))


def test_shipped_pair_fits():
    target, draft = loading.load("llama-tiny"), loading.load("llama-tiny-draft")
    loading.check_pair(target, draft)
    assert target.facts()["parameters"] > 3 * draft.facts()["parameters"]
    assert target.bytes_of(target.encode("the")[0]) == b"the"


def test_a_folder_with_pickled_weights_only_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), "utf-8")
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="only safetensors"):
        loading.load(str(tmp_path))


@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_memory_is_known_before_the_weights_are_read(tmp_path, dtype, monkeypatch):
    """What the headers say is what the loaded model takes: parameters, bytes, bytes of a KV slot."""
    name = tiny_models.save(tmp_path, kind="qwen2")
    said = footprint(name, dtype, "cpu")
    model = loading.load(name, "cpu", dtype)
    weights = list(model.model.parameters())
    assert said.parameters == sum(p.numel() for p in weights) and said.copies == 1
    assert said.weights == sum(p.numel() * p.element_size() for p in weights)
    Lane("greedy", [5, 6, 7], {"target": model}, limits=Limits(2)).run()
    pool = model.engine.cache.pool
    assert said.per_token == pool.numel() * pool.element_size() // pool.shape[3]
    assert model.bytes == said.weights + pool.numel() * pool.element_size()
    assert f"{said.parameters:,} parameters × {weights[0].element_size()} bytes" in said.sentence()


def test_small_llamas_are_laid_out_up_to_three_times_and_the_sentence_says_so():
    said, model = footprint("llama-tiny-draft", "auto", "cpu"), loading.load("llama-tiny-draft", "cpu")
    assert said.copies == 3 and "up to 3 times for speed" in said.sentence()
    matrices = [m for layer in model.engine.fast_llama.layers for m in layer] + [model.engine.fast_llama.head]
    held = {t.data_ptr(): t.numel() * t.element_size() for m in matrices for t in (m.weight, m.turned)}
    held |= {p.data_ptr(): p.numel() * p.element_size() for p in model.model.parameters()}
    assert 2 * said.weights / 3 < sum(held.values()) <= said.weights
    assert said.parameters == model.facts()["parameters"]


def test_a_damaged_header_is_a_sentence(tmp_path):
    name = tiny_models.save(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(ValueError, match="model.safetensors is damaged"):
        footprint(name)


def test_progress_is_told_weight_by_weight_and_may_stop_it(tmp_path):
    name, heard = tiny_models.save(tmp_path), []
    loading.load(name, "cpu", progress=lambda *what: heard.append(what))
    totals = {total for _, _, total in heard}
    assert len(totals) == 1 and [done for _, done, _ in heard] == list(range(totals.pop()))

    def stop(words, done, total):
        if done == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        loading.load(name, "cpu", progress=stop)


def test_unknown_dtypes_and_devices_are_sentences(tmp_path):
    with pytest.raises(ValueError, match="no dtype 'int3'"):
        loading.load("llama-tiny-draft", "cpu", "int3")
    with pytest.raises(ValueError, match="no device 'abacus'"):
        loading.load("llama-tiny-draft", "abacus")


def test_a_chat_template_renders_and_its_special_tokens_stay_whole(tmp_path):
    model = loading.load(tiny_models.save(tmp_path, chat=True), "cpu")
    text = model.render("hi", "be brief")
    assert text == "system: be brief<|end|>user: hi<|end|>assistant:"
    ids = model.cut(text)
    assert ids.count(model.tokenizer.eos_token_id) == 2
    assert b"".join(map(model.bytes_of, ids)) == text.encode()
    plain = loading.load("llama-tiny-draft", "cpu")
    assert model.facts()["chat"] and not plain.facts()["chat"]
    with pytest.raises(ValueError, match="has no chat template"):
        plain.render("hi")


TEMPLATES = {
    "it divides by zero": "{{ 1 / 0 }}",
    "it lacks a name": "{{ messages[0].x.y }}",
    "it is no template": "{% for m in %}",
    "it has no end": "{% for i in range(10 ** 9) %}{% endfor %}",
    "there are several": {"tool_use": "a", "rag": "b"},
    "it is a number": 5,
}


@pytest.mark.parametrize("how", TEMPLATES)
def test_a_template_that_fails_in_any_way_is_a_sentence(how, tiny_model):
    plain = tiny_model("llama")
    model = LoadedModel("own", plain.model, tiny_models.tokenizer.__wrapped__())
    model.tokenizer.chat_template = TEMPLATES[how]
    with pytest.raises(Refusal, match="The chat template of 'own' ") as refused:
        model.render("hi")
    assert "\n" not in str(refused.value)


def test_a_template_that_refuses_is_a_sentence(tmp_path):
    model = loading.load(tiny_models.save(tmp_path, chat=True), "cpu")
    model.tokenizer.chat_template = "{{ raise_exception('Roles must alternate.') }}"
    with pytest.raises(ValueError, match="refuses this: Roles must alternate.$"):
        model.render("hi")


@pytest.mark.parametrize(
    "config",
    [
        transformers.BloomConfig(vocab_size=200, hidden_size=32, n_layer=2, n_head=4),
        transformers.FalconConfig(**SMALL, num_attention_heads=4, alibi=True),
    ],
    ids=lambda c: c.model_type,
)
def test_models_without_tree_masks_fall_back_and_say_so(config):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    engine = engine_of(model)
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
    engine = engine_of(model)
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
    slow = LoadedModel("slow", model.model, model.tokenizer)
    slow.__dict__["engine"] = SequenceEngine(model.model)
    prompt = [5, 6, 7, 8]
    fast = Lane("beam", prompt, {"target": model}, limits=Limits(8)).run()
    trace = Lane("beam", prompt, {"target": slow}, limits=Limits(8)).run()
    assert trace.output() == fast.output()
    assert any("tree mask" in getattr(e, "text", "") for e in trace.steps[0].events)


def test_an_encoder_decoder_is_refused_with_a_sentence(tmp_path):
    transformers.T5Config(d_model=8, num_layers=1).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="is an encoder-decoder; choose a causal language model"):
        loading.load(str(tmp_path))


def test_a_diffusion_model_of_another_format_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "diffusion_gemma"}), "utf-8")
    with pytest.raises(Refusal, match="of the kind diffusion_gemma, which is not read"):
        loading.load(str(tmp_path), "cpu")


def test_an_encoder_is_refused_unless_it_says_that_it_decodes(tmp_path):
    config = transformers.BertConfig(
        vocab_size=300, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match='is an encoder.*must say "is_decoder": true'):
        loading.load(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"is_decoder": True}), "utf-8")
    assert loading.load(str(tmp_path)).engine.kind == "BertLMHeadModel"


def test_a_masked_diffusion_model_writes_with_its_own_strategies(tmp_path):
    model = loading.load(tiny_models.save_masked(tmp_path))
    assert model.model_kind == "diffusion" and model.companion("diffusion") is model
    with pytest.raises(ValueError, match="Greedy writes with a causal language model, which"):
        Lane("greedy", [40, 41], {"target": model})
    found = Lane("masked_diffusion", [40, 41], {"target": model}, limits=Limits(max_new_tokens=5)).run()
    assert 1 <= len(found.output()) <= 5
