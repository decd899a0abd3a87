"""What the recipes' tests share: a toy corpus."""

import pytest
import torch

from explorer.corpus import END, STORY_MIX, prepare


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
    monkeypatch.setattr(torch, "compile", lambda model, **options: model)
    return prepare(toy_corpus, tmp_path / "work")
