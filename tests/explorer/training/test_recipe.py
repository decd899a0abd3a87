"""Rows of the table are trained twice to the same weights, and say what they are."""

import subprocess
import sys
from argparse import Namespace
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from explorer import shipped
from explorer.corpus import STORY_MIX
from explorer.training import loop, recipe, small
from explorer.training.data.forms import topics_of
from explorer.training.rows.table import ROWS
from tests.helpers.toy_recipes import TOYS

STEPS = 3
TOKENS = {"llama-tiny-fastdraft-pretrained": 16 * 256, "llama-tiny-yoco": 8 * 256}  # of a batch


@pytest.mark.parametrize("name", TOKENS)
def test_a_row_trained_again_gives_the_same_weights(name, toy_corpus, tmp_path, monkeypatch):
    """A few steps of the recipe at toy scale, bitwise, whatever was drawn before; one step less differs."""
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    monkeypatch.setattr(small, "STORIES", tuple(STORY_MIX))
    monkeypatch.setitem(ROWS, name, replace(ROWS[name], **TOYS[name][1]))

    def trained(run: str, steps: int) -> dict[str, torch.Tensor]:
        monkeypatch.setattr(loop, "MODELS", tmp_path / run)
        torch.manual_seed(len(run))
        budget = steps * TOKENS[name] / 1e6
        recipe.run(name, Namespace(corpus=toy_corpus, work=tmp_path / f"work {run}", million_tokens=budget))
        return load_file(tmp_path / run / name / "model.safetensors")

    once, again, shorter = trained("once", STEPS), trained("once more", STEPS), trained("short", STEPS - 1)
    assert once.keys() == again.keys() and all(torch.equal(once[key], again[key]) for key in once)
    assert any(not torch.equal(once[key], shorter[key]) for key in once)


def test_topics_do_not_depend_on_the_order_of_a_set():
    """Of words that are equally frequent, those that come first in the texts are taken."""
    words = "saw amber birch cedar dusty early fresh green happy ivory jolly kites lemon mango north olive"
    told = [f"They {words} here.", "They like quiet evenings.", "They like it."] * 40
    topics = topics_of(told, common=4, frequent=1.0, starts=1)
    assert {word for topic in topics.weights for word in topic} == {"like", "saw", "amber", "birch"}


def test_rows_are_listed_without_torch():
    """`python -m explorer models` reads them."""
    asks = "import sys; from explorer import shipped; assert shipped.recipes() and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", asks], check=True)


def test_every_row_is_a_recipe_with_a_description_and_a_trainer():
    assert ROWS.keys() <= set(shipped.recipes())
    for name, row in ROWS.items():
        assert row.name == name and shipped.about(name) == row.about and row.about.endswith(".")
        assert type(row) in recipe.TRAINERS and shipped.recipe_file(name).is_file()
