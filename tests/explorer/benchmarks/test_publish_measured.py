"""What bench stores: the tables of the documentation are those of the file, and every part has one."""

import json
import shutil
from argparse import Namespace
from datetime import date

import pytest

from explorer.benchmarks import generate_speed, publish_measured
from explorer.benchmarks.publish_measured import DOCS, TABLE, filled, number, stored, table
from explorer.cli import main
from explorer.cli_options import parser

PAGES = {page.name: page.read_text("utf-8") for page in DOCS.glob("*.md")}


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if TABLE.search(text)])
def test_the_tables_of_a_page_are_the_stored_ones(page):
    assert filled(PAGES[page]) == PAGES[page]


def test_every_part_of_the_bench_is_stored_and_has_one_table():
    told = [found[2] for text in PAGES.values() for found in TABLE.finditer(text)]
    assert sorted(told) == sorted(stored())
    assert {*generate_speed.PARTS, *generate_speed.families()} - {"heads"} <= set(told)


@pytest.mark.parametrize("part", sorted(stored()))
def test_what_is_stored_says_how_it_was_measured(part):
    measured = stored()[part]
    parser().parse_args(measured["command"].removeprefix("python -m explorer ").split())
    assert part in measured["command"] and measured["machine"] and date.fromisoformat(measured["date"])
    assert any("value" in row for row in measured["rows"])


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of docs with the stored figures and one page with a table."""
    shutil.copy(publish_measured.STORE, tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# Page\n<!-- measured: lanes -->\n<!-- end of measured -->\nafter\n", "utf-8")
    monkeypatch.setattr(publish_measured, "DOCS", tmp_path)
    monkeypatch.setattr(publish_measured, "STORE", tmp_path / "measured.json")
    return page


def test_a_part_is_stored_when_it_is_done_and_its_table_written(kept, monkeypatch, capsys):
    rows = [generate_speed.figure("four lanes", 1.25, "x", 2.0, True), {"name": "said", "note": "no figure"}]
    monkeypatch.setitem(generate_speed.PARTS, "lanes", lambda options: rows)
    others = {part: measured for part, measured in stored().items() if part != "lanes"}
    main(["bench", "--only", "lanes", "--store"])
    assert "four lanes" in capsys.readouterr().out
    (first, *text) = kept.read_text("utf-8").splitlines()
    assert text[3] == "| four lanes | 1.25 × | ≥ 2 ×, missed |" and text[-1] == "after" and first == "# Page"
    found = stored()
    assert found.pop("lanes")["rows"] == json.loads(json.dumps(rows)) and found == others


def test_what_measured_nothing_replaces_nothing(kept):
    before = stored()
    publish_measured.keep("lanes", "--only lanes", 1.0, [{"name": "page", "note": "no Chromium"}])
    assert stored() == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--model", "mine"], "figures of llama-tiny and"),
        (["--family", "heads"], "publish_head_gains measures the family heads"),
        (["--ray"], "on which machine a figure was measured"),
    ],
)
def test_figures_without_a_place_are_refused_before_they_are_measured(given, says):
    with pytest.raises(ValueError, match=says):
        publish_measured.check(parser().parse_args(["bench", "--store", *given]))


def test_outside_a_checkout_nothing_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(publish_measured, "STORE", tmp_path / "measured.json")
    with pytest.raises(ValueError, match="there is none here"):
        publish_measured.check(Namespace())


def test_a_number_has_three_figures_and_a_count_all():
    assert [number(value) for value in (1569, 2.0, 0.123, 17.94, 148.6)] == [
        "1,569",
        "2.00",
        "0.12",
        "17.9",
        "149",
    ]


def test_a_goal_that_is_none_is_an_empty_cell():
    row = generate_speed.figure("a", 0.5, "s", None, False)
    made = table({"rows": [row], "command": "c", "date": "d", "machine": "m"})
    assert made.splitlines()[2] == "| a | 0.50 s |  |" and made.endswith("`c`, d: m\n")
