"""Models shipped as a rounded change of another one: merged, every weight is within half a step of what was
trained, and they load, count and are loaded beside other models as whole ones are.
"""

import json

import pytest
import torch
from safetensors.torch import load_file

from decoders.models import companions, rounded_change
from decoders.models.loading import load
from decoders.models.memory_estimate import footprint
from tests.helpers import tiny_models


@pytest.fixture
def pair(tmp_path):
    """A folder that holds the change of a model with a further token, and that model's tensors."""
    tiny_models.save(tmp_path / "base")
    folder = tmp_path / "changed"
    tiny_models.save(folder, kind="wedlm", seed=1)
    weights = load_file(folder / "model.safetensors")
    rounded_change.write(folder, "base")
    return folder, weights


def test_every_number_is_within_half_a_step_of_the_trained_one(pair):
    folder, weights = pair
    assert rounded_change.is_change(folder) and not (folder / "model.safetensors").exists()
    base, model = load(str(folder.parent / "base"), "cpu"), load(str(folder), "cpu")
    old, merged = base.model.state_dict(), model.model.state_dict()
    for name, value in weights.items():
        if value.ndim == 2:
            change = value - rounded_change.grown(old[name], len(value))
            step = change.abs().amax(1, keepdim=True) / 127
            assert ((merged[name] - value).abs() <= step * 0.501 + 1e-7).all()
            assert step.max() > 0  # there is something to round
        else:
            torch.testing.assert_close(merged[name], value)


def test_the_change_of_a_model_itself_is_exact(tmp_path):
    for name in ("base", "same"):
        tiny_models.save(tmp_path / name)
    rounded_change.write(tmp_path / "same", "base")
    base, same = (load(str(tmp_path / name), "cpu").model.state_dict() for name in ("base", "same"))
    assert all(torch.equal(base[name], same[name]) for name in base)


def test_a_tokenizer_that_lies_beside_it_is_left_out(tmp_path):
    """Only if it is the same, byte for byte; the loaded model cuts texts as before."""
    for name in ("base", "twin", "other"):
        tiny_models.save(tmp_path / name)
    words = tmp_path / "other" / "tokenizer_config.json"
    words.write_text(words.read_text("utf-8") + "\n", "utf-8")
    for name in ("other", "twin"):
        rounded_change.write(tmp_path / name, "base")
    kept = {name: (tmp_path / name / "tokenizer.json").exists() for name in ("other", "twin")}
    assert kept == {"other": True, "twin": False}
    base, twin = (load(str(tmp_path / name), "cpu") for name in ("base", "twin"))
    assert twin.encode("the cat sat") == base.encode("the cat sat") and twin.token_key == base.token_key


def test_a_matrix_takes_one_byte_per_number(pair):
    folder, weights = pair
    stored = load_file(folder / rounded_change.WEIGHTS)
    matrices = [name for name, value in weights.items() if value.ndim == 2]
    assert matrices and all(stored[name].dtype is torch.int8 for name in matrices)


def test_it_is_a_plain_model_once_it_is_loaded(pair):
    folder, weights = pair
    model = load(str(folder), "cpu")
    assert model.model.config.denoiser == json.loads((folder / "config.json").read_text("utf-8"))["denoiser"]
    assert model.engine.mask == model.engine.vocabulary  # after the vocabulary of the base
    count = sum(p.numel() for p in model.model.parameters())
    assert footprint(str(folder)).parameters == count
    half = companions.loaded(folder, torch.bfloat16)
    assert half.dtype is torch.bfloat16 and sum(p.numel() for p in half.parameters()) == count
