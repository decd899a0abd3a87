"""Findings: one sentence for each experiment whose numbers and comparisons are those of its stored answer."""

import copy
import re

import pytest

from explorer import experiments
from explorer.experiments.groups import GROUPS
from explorer.experiments.reading import count, moved, percent, two

STORED = {answer["name"]: answer for answer in experiments.stored()}
NAMES = list(experiments.experiments())
NUMBER = r"\d+\.\d+|\d+%"  # a measured one; whole numbers count rows, or name a place in the table


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_the_experiment_asks_and_finds(name):
    """A changed question, or an answer that was stored by hand, shows here."""
    answer, experiment = STORED[name], experiments.find(name)
    assert (answer["title"], answer["asks"]) == (experiment.title, experiment.asks)
    assert experiments.concluded(experiment, answer) == answer


@pytest.mark.parametrize("name", NAMES)
def test_a_finding_is_one_sentence_whose_numbers_follow_the_table(name):
    """No measured number survives a change of all of them; what remains counts rows or names a place."""
    answer, experiment = STORED[name], experiments.find(name)
    before, rows = answer["finding"], answer["rows"]
    assert before.endswith(".") and before[0].isupper() and re.search(r"\d", before)
    assert not re.search(r"\.\s", before) and 60 < len(before) < 320 and "None " not in before[5:]
    kept = set(re.findall(NUMBER, before)) - {"100%"}
    for power in (0.8, 0.5):  # one change alone could hit upon a number that was there
        other = answer | {"rows": [[changed(cell, at, power) for at, cell in enumerate(row)] for row in rows]}
        kept &= set(re.findall(NUMBER, experiment.finding(other)))
    assert not kept


def changed(cell, at: int, power: float):
    """Another number, in the same order as the others of its column; all else as it is."""
    return 0.57 * cell**power + 0.0313 if isinstance(cell, float) and at and cell >= 0 else cell


def test_every_experiment_stands_in_one_group():
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(NAMES) and 4 < len(GROUPS) < 8


def told(name: str, change) -> str:
    """The finding after a change of the rows."""
    answer = copy.deepcopy(STORED[name])
    change(answer["rows"])
    return experiments.find(name).finding(answer)


def column(name: str, title: str) -> int:
    return STORED[name]["columns"].index(title)


def test_what_rises_in_one_answer_falls_in_another():
    finding = STORED["hyperfitting"]["finding"]
    assert "loss on unseen stories rises from" in finding and "text rises from" in finding
    turned = told("hyperfitting", lambda rows: rows.reverse())
    assert "loss on unseen stories falls from" in turned and "text falls from" in turned
    same = told("hyperfitting", lambda rows: rows.__setitem__(-1, rows[0]))
    assert same.count("stays at") == 2


def test_all_texts_are_only_all_if_they_are():
    assert STORED["equal-to-greedy"]["finding"].startswith("All ")

    def one_parts(rows):
        rows[3][1:] = [rows[3][1] - 1, 0, 1]

    assert re.match(r"12,999 of 13,000 texts", told("equal-to-greedy", one_parts))


def test_a_wrong_instruction_helps_where_it_does():
    def better(rows):
        rows[2][column("noisy-instructions", "right")] = 0.5

    assert STORED["noisy-instructions"]["finding"].startswith("None of 4 noisy instructions helps")
    assert "helps: 50% of the answers are right instead of" in told("noisy-instructions", better)


def test_an_oracle_that_gains_nothing_is_not_below():
    def no_better(rows):
        for row in rows:
            row[column("routes-per-token", "oracle")] = rows[-1][column("routes-per-token", "oracle")]

    assert ", below the" in STORED["routes-per-token"]["finding"]
    assert ", not below the" in told("routes-per-token", no_better)


def test_one_method_that_is_best_everywhere_is_named():
    def wins(rows):
        rows[5][1:7] = [99.0] * 6

    winner = STORED["spec-bench"]["rows"][5][0]
    assert STORED["spec-bench"]["finding"].startswith("No method wins everywhere: ")
    assert told("spec-bench", wins).startswith(f"On all 6 kinds of text {winner} is best; ")


def test_the_empty_answer_is_counted_where_it_is_likelier():
    def likely(rows):
        rows[8][2] = -1.0  # the longest answers of the first task

    assert STORED["modes-by-length"]["finding"].startswith("In 3 of 3 tasks ")
    assert told("modes-by-length", likely).startswith("In 2 of 3 tasks ")


def test_no_limit_is_no_sentence_about_one():
    def none(rows):
        rows[-1][3:] = [None] * 3

    assert "No entropy was found" in told("entropy-threshold", none)


def test_shares_changes_and_counts_in_words():
    assert [percent(share) for share in (0.5, 0.0049, 0.0, 1.0)] == ["50%", "0.5%", "0%", "100%"]
    assert moved(1.0, 2.0) == "rises from 1.00 to 2.00" and moved(0.1, 0.1001) == "stays at 0.10"
    assert moved(0.5, 0.25, percent) == "falls from 50% to 25%" and two(-1.5) == "−1.50"
    assert [count(number, "layer") for number in (1, 1200)] == ["1 layer", "1,200 layers"]
