"""Adapters as the package peft saves them, on bases that are named in each way that peft may store."""

import json
import shutil

import pytest
import torch
import transformers as T

from decoders.lane import Lane, Limits
from decoders.models import peft_adapter
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from decoders.refusal import Refusal
from tests.helpers import tiny_models

PROMPT = [5, 6, 7]


@pytest.fixture
def base(tmp_path):
    """The folder of a tiny Llama."""
    tiny_models.save(tmp_path / "base")
    return tmp_path / "base"


def adapted(base, folder, kind: str, **settings) -> torch.nn.Module:
    """A model with a random adapter, which peft saves into a folder."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    config = getattr(peft, kind)(task_type="CAUSAL_LM", **settings)
    model = peft.get_peft_model(T.AutoModelForCausalLM.from_pretrained(base), config)
    with torch.no_grad():
        for value in model.parameters():
            if value.requires_grad:
                value.add_(0.2 * torch.randn_like(value))
    model.save_pretrained(folder)
    return model.eval()


def renamed(folder, base: str) -> None:
    """Writes the base's name into an adapter's settings."""
    settings = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    text = json.dumps(settings | {"base_model_name_or_path": base})
    (folder / "adapter_config.json").write_text(text, "utf-8")


ALL = dict(target_modules=["q_proj", "v_proj", "up_proj"])
KINDS = {
    "lora": ("LoraConfig", ALL | dict(r=2, lora_alpha=6)),
    "rslora": ("LoraConfig", ALL | dict(r=4, lora_alpha=6, use_rslora=True, rank_pattern={"v_proj": 2})),
    "dora": ("LoraConfig", ALL | dict(r=2, use_dora=True)),
    "head": ("LoraConfig", ALL | dict(r=2, modules_to_save=["lm_head"])),
    "ia3": ("IA3Config", dict(target_modules=["k_proj", "up_proj"], feedforward_modules=["up_proj"])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_is_merged_into_its_base(kind, base, tmp_path):
    theirs = adapted(base, tmp_path / "own", KINDS[kind][0], **KINDS[kind][1])
    model = load(str(tmp_path / "own"), "cpu")
    ids = torch.tensor([PROMPT])
    with torch.inference_mode():
        torch.testing.assert_close(
            model.model(ids).logits, theirs(input_ids=ids).logits, atol=1e-4, rtol=1e-4
        )
    assert type(model.model).__name__ == "LlamaForCausalLM" and model.engine.note is None
    assert footprint(model.name, "auto", "cpu").parameters == model.facts()["parameters"]
    trace = Lane("greedy", PROMPT, {"target": model}, limits=Limits(8)).run()
    assert trace.output() == tiny_models.generate(model, PROMPT, max_new_tokens=8)


@pytest.mark.parametrize("given", ["base", "../base", "/", "llama-tiny-draft"])
def test_its_base_may_be_a_folder_beside_it_any_folder_or_a_shipped_model(given, base, tmp_path, monkeypatch):
    shipped = load("llama-tiny-draft", "cpu").model
    if given == "llama-tiny-draft":
        shipped.save_pretrained(base)
    adapted(base, tmp_path / "own", *KINDS["lora"][:1], **KINDS["lora"][1])
    renamed(tmp_path / "own", str(base) if given == "/" else given)
    monkeypatch.chdir(tmp_path / "own")
    layers = load(str(tmp_path / "own"), "cpu").facts()["layers"]
    assert layers == (shipped.config.num_hidden_layers if given == "llama-tiny-draft" else 2)


def test_tokens_that_were_added_have_rows(base, tmp_path):
    peft = pytest.importorskip("peft")
    model, words = T.AutoModelForCausalLM.from_pretrained(base), T.AutoTokenizer.from_pretrained(base)
    words.add_tokens(["<one>", "<two>"])
    model.resize_token_embeddings(len(words))
    config = peft.LoraConfig(r=2, target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])
    peft.get_peft_model(model, config).save_pretrained(tmp_path / "own")
    words.save_pretrained(tmp_path / "own")
    own = load(str(tmp_path / "own"), "cpu")
    assert own.engine.vocabulary == len(words) and own.cut("<two>") == [len(words) - 1]


def test_what_does_not_fit_is_a_sentence(base, tmp_path):
    adapted(base, tmp_path / "own", "LoraConfig", **KINDS["lora"][1])
    tiny_models.save(tmp_path / "other", kind="gpt2")
    renamed(tmp_path / "own", "other")
    with pytest.raises(Refusal, match="own' could not be loaded: NoMatchingPeftModuleError: Target"):
        load(str(tmp_path / "own"), "cpu")
    shallow = T.LlamaConfig.from_pretrained(base, num_hidden_layers=1)
    T.LlamaForCausalLM(shallow).save_pretrained(tmp_path / "shallow")
    tiny_models.tokenizer().save_pretrained(tmp_path / "shallow")
    renamed(tmp_path / "own", "shallow")
    with pytest.raises(Refusal, match=r"holds .*layers.1.* which has no place in its base .*shallow'; name"):
        load(str(tmp_path / "own"), "cpu")
    adapted(base, tmp_path / "prompts", "PromptTuningConfig", num_virtual_tokens=2)
    with pytest.raises(Refusal, match="of the kind PROMPT_TUNING, which changes no weights"):
        load(str(tmp_path / "prompts"), "cpu")


@pytest.fixture
def settings_alone(base, tmp_path):
    """An adapter's folder with its settings and any weights."""
    folder = tmp_path / "own"
    folder.mkdir()
    settings = {"peft_type": "LORA", "inference_mode": True, "base_model_name_or_path": "base", "r": 2}
    (folder / "adapter_config.json").write_text(json.dumps(settings), "utf-8")
    shutil.copy(base / "model.safetensors", folder / "adapter_model.safetensors")
    return folder


def test_the_package_that_is_missing_is_named(settings_alone, monkeypatch):
    monkeypatch.setattr(peft_adapter, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match="is an adapter as peft saves it, and needs it: pip install peft"):
        load(str(settings_alone), "cpu")


def test_a_base_that_is_not_there_is_a_sentence(settings_alone):
    for given, says in {"": "names no base", "./none": "is no model './none'"}.items():
        renamed(settings_alone, given)
        with pytest.raises(Refusal, match=says):
            footprint(str(settings_alone), "auto", "cpu")
    (settings_alone / "adapter_model.safetensors").write_bytes(b"")
    with pytest.raises(Refusal, match="the file adapter_model.safetensors is empty"):
        footprint(str(settings_alone), "auto", "cpu")
