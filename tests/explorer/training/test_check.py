"""The shipped weights are those that were trained: plain transformers gives the losses of their facts."""

import json
from pathlib import Path

import pytest

from decoders.models.architectures import architectures
from decoders.models.catalog import of_small_architectures
from explorer.training.check import TEXTS, check_losses

ASSETS = Path(__file__).resolve().parents[3] / "assets"

SHIPPED = sorted(path.parent for path in (ASSETS / "models").glob("*/facts.json"))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_the_losses_are_those_of_the_day_it_was_shipped(folder):
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    assert len(facts["check_losses"]) % len(TEXTS) == 0  # heads have one for each module and text
    assert check_losses(folder) == pytest.approx(facts["check_losses"], abs=1e-3)


def test_all_models_together_stay_small_to_clone():
    """The family of llama-tiny, and beside it the small architectures of papers."""
    small = of_small_architectures(architectures())
    sizes = {True: 0, False: 0}
    for path in filter(Path.is_file, (ASSETS / "models").rglob("*")):
        assert path.suffix != ".bin"  # weights are safetensors only
        sizes[path.parent.name in small] += path.stat().st_size
    assert sizes[False] < 95e6 and sizes[True] < 60e6
