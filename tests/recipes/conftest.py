"""What the recipes' tests share: the recipes on the path, and a toy corpus."""

import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "assets" / "recipes"
sys.path.insert(0, str(RECIPES))

import training  # noqa: E402
from corpus import END, STORY_MIX, prepare  # noqa: E402


@pytest.fixture
def corpus(tmp_path):
    """A folder with a few made stories in every file that the recipes read."""
    (tmp_path / "corpus" / "stories").mkdir(parents=True)
    for name in STORY_MIX:
        told = [
            f"Tom had {n} cats. He was happy. They all sat on a {name}. Then they slept." for n in range(40)
        ]
        (tmp_path / "corpus" / "stories" / f"{name}.txt").write_text(f"\n{END}\n".join(told), "utf-8")
    return tmp_path / "corpus"


@pytest.fixture
def texts(corpus, tmp_path, monkeypatch):
    """What the recipes make of the toy corpus; nothing is compiled."""
    monkeypatch.setattr(training, "compiled", lambda model: model)
    return prepare(corpus, tmp_path / "work")
