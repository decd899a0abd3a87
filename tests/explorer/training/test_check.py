"""The shipped weights are those that were trained: plain transformers gives the losses of their facts."""

import json
from pathlib import Path

import pytest

from explorer.training.check import TEXTS, check_losses

ASSETS = Path(__file__).resolve().parents[4] / "assets"

SHIPPED = sorted(path.parent for path in (ASSETS / "models").glob("*/facts.json"))


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_the_losses_are_those_of_the_day_it_was_shipped(folder):
    facts = json.loads((folder / "facts.json").read_text())
    assert len(facts["check_losses"]) % len(TEXTS) == 0  # heads have one for each module and text
    assert check_losses(folder) == pytest.approx(facts["check_losses"], abs=1e-3)


def test_all_models_together_stay_small_to_clone():
    files = [path for path in (ASSETS / "models").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 90e6
    assert all(path.suffix != ".bin" for path in files)  # weights are safetensors only
