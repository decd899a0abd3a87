"""Models that are a small change of another one: merged, they compute what base and change do together."""

import json

import pytest
import torch
from safetensors.torch import save_file

from decoders.models import lora
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from tests.helpers import tiny_models

RANK, TOKENS = 2, ["<PRE>", "<t0>"]
MATRIX = "model.layers.1.mlp.up_proj"


@pytest.fixture
def changed(tmp_path):
    """A folder with an adapter of one matrix and two further tokens, beside its base; the tensors."""
    tiny_models.save(tmp_path / "base")
    folder, chance = tmp_path / "changed", torch.Generator().manual_seed(0)
    folder.mkdir()
    base = load(str(tmp_path / "base"))
    width, inner = base.model.config.hidden_size, base.model.config.intermediate_size
    tensors = {
        f"{MATRIX}.lora_A.weight": torch.randn(RANK, width, generator=chance),
        f"{MATRIX}.lora_B.weight": torch.randn(inner, RANK, generator=chance),
        f"{lora.ROWS}.{lora.DELTA}": torch.randn(len(TOKENS), width, generator=chance),
    }
    save_file({lora.PREFIX + name: t for name, t in tensors.items()}, folder / lora.WEIGHTS)
    given = {"base_model_name_or_path": "base", "r": RANK, "lora_alpha": 6}
    (folder / lora.CONFIG).write_text(json.dumps(given), "utf-8")
    first = base.model.config.vocab_size
    (folder / lora.TOKENS).write_text(
        json.dumps({t: first + at for at, t in enumerate(TOKENS)}), encoding="utf-8"
    )
    base.model.config.vocab_size += len(TOKENS)
    base.model.config.save_pretrained(folder)
    return folder, tensors


def test_a_merged_model_has_the_change_of_its_matrix_and_the_rows_of_its_tokens(changed):
    folder, tensors = changed
    base, merged = load(str(folder.parent / "base"), "cpu"), load(str(folder), "cpu")
    step = tensors[f"{MATRIX}.lora_B.weight"] @ tensors[f"{MATRIX}.lora_A.weight"]
    wanted = base.model.get_submodule(MATRIX).weight + 6 / RANK * step
    torch.testing.assert_close(merged.model.get_submodule(MATRIX).weight, wanted)
    rows = merged.model.get_input_embeddings().weight
    torch.testing.assert_close(rows[-2:], tensors[f"{lora.ROWS}.{lora.DELTA}"])
    torch.testing.assert_close(rows[:-2], base.model.get_input_embeddings().weight)
    assert merged.engine.vocabulary == len(merged.tokenizer) == len(base.tokenizer) + 2


def test_added_tokens_are_cut_whole_and_shown_by_their_names(changed):
    merged = load(str(changed[0]), "cpu")
    ids = merged.cut("ab<t0>c")
    assert [merged.bytes_of(token) for token in ids] == [b"a", b"b", b"<t0>", b"c"]
    assert merged.tokenizer.decode(ids, skip_special_tokens=True) == "abc"


def test_its_footprint_is_that_of_the_merged_model(changed):
    folder, _ = changed
    rows = len(TOKENS) * load(str(folder)).model.config.hidden_size
    assert footprint(str(folder)).parameters == footprint(str(folder.parent / "base")).parameters + rows
