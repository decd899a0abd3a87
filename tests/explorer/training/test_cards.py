"""The committed cards are those that the code makes from what lies beside the weights."""

from pathlib import Path

import pytest

from decoders import files
from explorer.training import cards

MODELS = Path(__file__).resolve().parents[3] / "assets" / "models"
FOLDERS = sorted(path.parent for path in MODELS.glob("*/facts.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_committed_card_is_the_one_that_is_made(folder, monkeypatch):
    written = {}
    monkeypatch.setattr(files, "write", written.__setitem__)
    cards.write(folder)
    assert written == {folder / "README.md": (folder / "README.md").read_text("utf-8")}


def test_a_table_has_a_column_for_all_that_some_row_has():
    """In percent, or in the format of the table or of a column."""
    rows = {"copy": {"greedy": 0.5}, "sum": {"greedy": 0.25, "best": 1.0}}
    assert cards.table(rows).splitlines()[0] == "| | greedy | best |"
    assert cards.table(rows).splitlines()[2:] == ["| copy | 50 |  |", "| sum | 25 | 100 |"]
    assert cards.table(rows, ".1f", {"best": ""}).splitlines()[3] == "| sum | 0.2 | 100 |"
