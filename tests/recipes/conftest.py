"""What the recipes' tests share: the recipes on the path, and a toy corpus."""

import sys
from pathlib import Path

import pytest

RECIPES = Path(__file__).resolve().parents[2] / "assets" / "recipes"
sys.path.insert(0, str(RECIPES))

import training  # noqa: E402
from corpus import END, STORY_MIX, prepare  # noqa: E402


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory):
    """A folder with a few made stories in every file that the recipes read."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "stories").mkdir()
    for name in STORY_MIX:
        words = [name[:3] + chr(97 + n // 26) + chr(97 + n % 26) for n in range(40)]
        told = [
            f"Tom had {n} cats. He was happy. They all sat on a {word}. Then they slept. The {word} was old."
            for n, word in enumerate(words)
        ]
        (folder / "stories" / f"{name}.txt").write_text(f"\n{END}\n".join(told), "utf-8")
    return folder


@pytest.fixture
def texts(toy_corpus, tmp_path, monkeypatch):
    """What the recipes make of the toy corpus; nothing is compiled."""
    monkeypatch.setattr(training, "compiled", lambda model: model)
    return prepare(toy_corpus, tmp_path / "work")
