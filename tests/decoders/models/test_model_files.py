"""Weights that a folder lacks, or has in another shape, are refused with their names; those without a place
are noted; tied ones may be missing.
"""

import shutil

import pytest
import torch
import transformers as T
from safetensors.torch import load_file, save_file

from decoders.lane import Lane, Limits
from decoders.models.catalog import SHIPPED
from decoders.models.loading import load
from decoders.refusal import Refusal
from tests.helpers import published_heads as files
from tests.helpers import tiny_models

SIZE = dict(vocab_size=259, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
ROPE = dict(**SIZE, intermediate_size=16, num_key_value_heads=1)
TIED = {  # families whose files lack a head, or other weights that are made anew from the config
    "llama": T.LlamaConfig(**ROPE, tie_word_embeddings=True),
    "qwen2": T.Qwen2Config(**ROPE, tie_word_embeddings=True),
    "qwen3_moe": T.Qwen3MoeConfig(
        **ROPE, head_dim=8, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=8
    ),
    "gemma3": T.Gemma3TextConfig(**ROPE, head_dim=8),
    "gpt2": T.GPT2Config(vocab_size=259, n_embd=16, n_layer=1, n_head=2),
    "gpt_neox": T.GPTNeoXConfig(**SIZE, intermediate_size=16),
    "gptj": T.GPTJConfig(vocab_size=259, n_embd=16, n_layer=1, n_head=2, rotary_dim=4),
    "opt": T.OPTConfig(**SIZE, ffn_dim=16, word_embed_proj_dim=16),
    "bloom": T.BloomConfig(vocab_size=259, hidden_size=16, n_layer=1, n_head=2),
    "falcon": T.FalconConfig(**SIZE),
    "mamba": T.MambaConfig(vocab_size=259, hidden_size=16, num_hidden_layers=1),
    "cohere": T.CohereConfig(**ROPE),
    "granite": T.GraniteConfig(**ROPE, tie_word_embeddings=True),
    "olmo2": T.Olmo2Config(**ROPE),
    "stablelm": T.StableLmConfig(**ROPE),
}


@pytest.mark.parametrize("family", TIED)
def test_weights_that_are_tied_or_not_stored_are_no_loss(family, tmp_path):
    torch.manual_seed(0)
    config = TIED[family]
    config.pad_token_id = config.eos_token_id = config.bos_token_id = None
    made = T.AutoModelForCausalLM.from_config(config).eval()
    made.save_pretrained(tmp_path)
    tiny_models.tokenizer().save_pretrained(tmp_path)
    model = load(str(tmp_path), "cpu")
    assert not model.unused_weights
    ids = torch.tensor([[5, 6, 7]])
    assert torch.allclose(made(ids).logits, model.model(ids).logits, atol=1e-5)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_every_kind_of_tiny_model_is_read_whole(kind, tmp_path):
    made = tiny_models.make(kind)
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    assert not load(str(tmp_path), "cpu").unused_weights


def changed(folder, change) -> str:
    """A tiny Llama whose tensors `change` has put in another form; its name."""
    name = tiny_models.save(folder)
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})
    return name


CHANGES = {
    "another prefix": (
        lambda t: {f"decoder.{key}": value for key, value in t.items()},
        r"its files lack lm_head.weight and 20 more of LlamaForCausalLM, and hold decoder.lm_head.weight and "
        "20 more, which it has no place for; use",
    ),
    "no head": (
        lambda t: {key: value for key, value in t.items() if key != "lm_head.weight"},
        "its files lack lm_head.weight of LlamaForCausalLM; use",
    ),
    "a layer less": (
        lambda t: {key: value for key, value in t.items() if ".1." not in key},
        r"its files lack model.layers.1.input_layernorm.weight and 8 more of",
    ),
    "another shape": (
        lambda t: t | {"model.norm.weight": torch.ones(7)},
        r"its files hold model.norm.weight with the shape \[7\] where its config.json asks for \[32\]; use",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_are_missing_or_of_another_shape_are_named(change, tmp_path, capfd):
    alter, says = CHANGES[change]
    name = changed(tmp_path, alter)
    capfd.readouterr()
    with pytest.raises(Refusal, match=f"could not be loaded: {says}"):
        load(name, "cpu")
    assert "REPORT" not in capfd.readouterr().err


def test_weights_without_a_place_are_noted_and_no_warning_is_printed(tmp_path, capfd):
    name = changed(tmp_path, lambda t: t | {"model.extra.weight": torch.ones(2)})
    capfd.readouterr()
    model = load(name, "cpu")
    assert "[transformers]" not in capfd.readouterr().err
    assert model.unused_weights == ["model.extra.weight"]
    trace = Lane("greedy", [5, 6], {"target": model}, limits=Limits(2)).run()
    (note,) = (e.text for e in trace.steps[0].events if getattr(e, "text", "").startswith("Files of"))
    assert "1 weight has no place in the model: model.extra.weight" in note


def test_draft_heads_are_no_model(tmp_path):
    own = str(shutil.copytree(SHIPPED / "llama-tiny-heads", tmp_path / "own"))
    config = T.LlamaConfig(**ROPE).to_dict()
    shapes = {"fc.weight": (16, 32), **files.llama_layer("layers.0.", 16, 2, 1, 8, 16, 16)}
    published = files.write(tmp_path / "eagle", config, files.drawn(shapes))
    tiny_models.tokenizer().save_pretrained(tmp_path / "eagle")
    for name in ("llama-tiny-heads", own, published):
        with pytest.raises(Refusal, match="holds draft heads and no model; name it as the draft"):
            load(name, "cpu")
