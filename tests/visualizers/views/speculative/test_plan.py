"""The plan view: the table that was filled, and what was taken of it."""

from decoders.trace.events import Note
from decoders.trace.scores import Measure, Table
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.plan import Plan


def row(name: str, unit: str, level: str, values: dict[int, float], chosen: int | None = None) -> Table:
    rows = [[float(number), value] for number, value in values.items()]
    return Table(3, name, max(values.values()), level=level, unit=unit, rows=rows, chosen=chosen)


def test_rows_and_columns_are_those_of_the_scores_and_what_was_taken_is_outlined():
    table = [
        row("cosine", "skipped", "layer 1", {0: 1.0, 1: -0.1}, chosen=0),
        row("cosine", "skipped", "layer 2", {0: 1.0, 1: 0.97}, chosen=1),
        Measure(3, "cosine", 0.97, level="adopted"),
    ]
    marks, ops = fold(Plan, [[Note("nothing yet")], table, table], [0, 1], ["Once", " upon"])
    assert ops[0] == []
    first = {key: mark for key, mark in marks.items() if key.startswith("c1")}
    cells = {key: (mark["text"], mark["x"], mark["fill"]) for key, mark in first.items()}
    assert cells == {
        "c1.0.0": ("1.00", 1, "outline"),
        "c1.0.1": ("−.10", 2, "amount"),
        "c1.1.0": ("1.00", 1, "amount"),
        "c1.1.1": (".97", 2, "outline"),
    }
    assert [mark["text"] for mark in of_kind(marks, "row") if mark["text"]] == ["layer 1", "layer 2"] * 2
    assert marks["c2.0.0"]["y"] > marks["c1.1.0"]["y"]
    assert marks["heading"]["lead"] == "Table 2: cosine, by skipped"
    assert marks["heading"]["heading"] == "; taken: skipped 1, layer 2, .970."


def test_a_table_in_which_one_row_is_taken():
    rows = [
        row("tokens per round", "nodes", "1 deep", {1: 1.6}),
        row("tokens per round", "nodes", "2 deep", {1: 1.6, 2: 2.1}, chosen=2),
    ]
    marks, _ = fold(Plan, [rows], [0, 1], ["Once", " upon"])
    assert [key for key, mark in marks.items() if mark.get("fill") == "outline"] == ["c1.1.2"]
    assert marks["c1.1.2"]["x"] == 2 and marks["heading"]["heading"] == "; taken: nodes 2, 2 deep, 2.100."
