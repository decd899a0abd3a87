"""LLaDA and Dream by their file formats, at a tiny size: the numbers of the Llama and the Qwen2 inside."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

from decoders.lane import Lane, Limits
from decoders.models import loading
from decoders.models.published_denoisers import LLADA_FIELDS
from tests.helpers import tiny_models

LLADA_NAMES = [  # the reverse of what is read: Llama's names as LLaDA writes them
    (r"^model\.embed_tokens\.", "model.transformer.wte."),
    (r"^model\.norm\.", "model.transformer.ln_f."),
    (r"^lm_head\.", "model.transformer.ff_out."),
    (r"^model\.layers\.(\d+)\.input_layernorm\.", r"model.transformer.blocks.\1.attn_norm."),
    (r"^model\.layers\.(\d+)\.post_attention_layernorm\.", r"model.transformer.blocks.\1.ff_norm."),
    (r"^model\.layers\.(\d+)\.self_attn\.([qkv]_proj)\.", r"model.transformer.blocks.\1.\2."),
    (r"^model\.layers\.(\d+)\.self_attn\.o_proj\.", r"model.transformer.blocks.\1.attn_out."),
    (r"^model\.layers\.(\d+)\.mlp\.gate_proj\.", r"model.transformer.blocks.\1.ff_proj."),
    (r"^model\.layers\.(\d+)\.mlp\.up_proj\.", r"model.transformer.blocks.\1.up_proj."),
    (r"^model\.layers\.(\d+)\.mlp\.down_proj\.", r"model.transformer.blocks.\1.ff_out."),
]


def renamed(name):
    for expression, other in LLADA_NAMES:
        name, changed = re.subn(expression, other, name)
        if changed:
            return name
    return name


@pytest.fixture(scope="module")
def llada(tmp_path_factory):
    """A folder as LLaDA's are, and the model it was made from."""
    folder = tmp_path_factory.mktemp("llada")
    made = tiny_models.make("masked")
    config = made.model.config.to_dict()
    fields = {theirs: config.get(ours) for ours, theirs in LLADA_FIELDS.items()}
    size = {"vocab_size": config["vocab_size"], "embedding_size": config["vocab_size"]}
    more = {
        "model_type": "llada",
        "block_type": "llama",
        "rope_theta": 10000.0,
        "auto_map": {"AutoConfig": "x.Y"},
    }
    (folder / "config.json").write_text(
        json.dumps({k: v for k, v in (fields | size | more).items() if v is not None}), encoding="utf-8"
    )
    weights = {renamed(k): v.contiguous().clone() for k, v in made.model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    made.tokenizer.save_pretrained(folder)
    return folder, made


@pytest.fixture(scope="module")
def dream(tmp_path_factory):
    """A folder as Dream's are, and the model it was made from."""
    folder = tmp_path_factory.mktemp("dream")
    made = tiny_models.make("qwen2")
    made.model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    mask = made.engine.vocabulary - 2
    names = {"model_type": "Dream", "architectures": ["DreamModel"], "auto_map": {"AutoConfig": "x.Y"}}
    (folder / "config.json").write_text(
        json.dumps(config | names | {"mask_token_id": mask}), encoding="utf-8"
    )
    made.tokenizer.save_pretrained(folder)
    return folder, made


def logits_of(made, canvas):
    everywhere = torch.zeros(1, 1, len(canvas), len(canvas))
    return made.model(torch.tensor([canvas]), attention_mask=everywhere).logits[0]


def test_llada_gives_the_numbers_of_the_llama_inside(llada):
    folder, made = llada
    model = loading.load(str(folder))
    assert model.model_kind == "diffusion" and not model.engine.shift
    canvas = [40, 41, *[model.engine.mask] * 5]
    ours = model.engine.attach(None).denoise([canvas], 2, 7)[0]
    assert torch.allclose(ours, logits_of(made, canvas)[2:, : model.engine.vocabulary], atol=1e-5)
    found = Lane("masked_diffusion", [40, 41], {"target": model}, limits=Limits(6)).run()
    assert 1 <= len(found.output()) <= 6


def test_dream_predicts_one_row_early_and_never_writes_its_mask(dream):
    folder, made = dream
    model = loading.load(str(folder))
    mask = model.engine.mask
    assert model.model_kind == "diffusion" and model.engine.shift and mask < model.engine.vocabulary
    canvas = [40, 41, *[mask] * 5]
    ours = model.engine.attach(None).denoise([canvas], 2, 7)[0]
    want = logits_of(made, canvas)[1:6].clone()
    want[:, mask] = -torch.inf
    assert torch.allclose(ours, want, atol=1e-5)
    found = Lane("masked_diffusion", [40, 41], {"target": model}, limits=Limits(6)).run()
    assert mask not in found.output()


def test_another_kind_of_llada_is_refused_with_a_sentence(llada, tmp_path):
    folder, _ = llada
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"block_type": "sequential"}), "utf-8")
    with pytest.raises(ValueError, match="only LLaDA models whose block_type is llama"):
        loading.load(str(tmp_path))
