"""Sweeps: a table and its intervals by hand, and the stored answers as their sweeps declare them."""

import json
import pickle
from dataclasses import asdict, replace

import pytest

from explorer import experiments
from explorer.experiments.curves import Curves, CurvesBy
from explorer.experiments.reading import rows_of
from explorer.experiments.sweep import Difference, Setting, Sweep, concluded, swept, titled

STORED = {answer["name"]: answer for answer in experiments.stored()}
SWEEPS = {name: one for name, one in experiments.experiments().items() if one.sweep}
every_sweep = pytest.mark.parametrize("name", SWEEPS)

# Outcomes by hand: strategy -> prompt and seed -> number.
WRITTEN = {
    "short": {("a", 0): 1, ("a", 1): 3, ("b", 0): 2, ("b", 1): 2},
    "long": {("a", 0): 5, ("a", 1): 5, ("b", 0): 4, ("b", 1): 8},
    "other": {("b", 1): 4},
}


def decode(models, strategy: str, prompt: str, seed: int, scale: int = 1) -> int:
    """A number in place of a trace."""
    return models["target"][strategy][prompt, seed] * scale


def mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers)


def twice(numbers: list[int]) -> float:
    return 2 * mean(numbers)


def setting(group: str, strategy: str, **parameters: int) -> Setting:
    return Setting((group, strategy), strategy, parameters, list(WRITTEN[strategy]))


BY_HAND = Sweep(
    names=("group", "strategy"),
    settings=lambda models: [
        setting("one", "short"),
        setting("one", "long"),
        setting("two", "long", scale=10),
        setting("two", "other", scale=10),
        Setting(("two", "none"), "other", {}, []),
    ],
    decode=decode,
    measures=lambda numbers, first: {"mean": mean(numbers), "ahead": mean(numbers) - mean(first)},
    within="group",
    says=lambda rows: [f"{len(rows)} rows; the last is ahead by {rows[-1]['ahead']:.1f} (-1)."],
    chart=CurvesBy("Means", "ahead", "mean", "group", ("ahead", "mean")),
    differences=(
        Difference("{0[strategy]} against {1[strategy]}", mean, lambda rows: (rows[1], rows[0])),
        Difference(lambda one, other: f"{one['group']}, twice", twice, lambda rows: (rows[1], rows[0])),
    ),
    sampled={"prompts": 2},
)


def test_a_table_with_its_intervals_by_hand():
    """A setting without cases has no row; one with a part of the cases is compared on this part. The lead: 5
    - 1, 5 - 3, 4 - 2, 8 - 2, so 3.5 in the mean, with a standard error of .9574 and Student's t of 3.1824.
    """
    found = BY_HAND.run({"target": WRITTEN})
    assert found.columns == ["group", "strategy", "mean", "ahead"]
    assert found.rows == [
        ["one", "short", 2.0, 0.0],
        ["one", "long", 5.5, 3.5],
        ["two", "long", 55.0, 0.0],
        ["two", "other", 40.0, 40.0 - 80.0],
    ]
    assert found.says == ["4 rows; the last is ahead by −40.0 (−1)."]
    assert [(line.label, line.points) for line in found.chart.lines] == [
        ("one", [[0.0, 2.0], [3.5, 5.5]]),
        ("two", [[-40.0, 40.0], [0.0, 55.0]]),
    ]
    lead, doubled = found.compared
    assert (lead.what, doubled.what) == ("long against short", "one, twice")
    assert (lead.difference, doubled.difference) == (3.5, 7.0)
    assert (lead.low, lead.high) == pytest.approx((3.5 - 3.0469, 3.5 + 3.0469), abs=1e-4)
    assert (doubled.low, doubled.high) == pytest.approx((7 - 6.0939, 7 + 6.0939), abs=1e-4)


def halves(models, number: int, by: int) -> dict:
    """The cells of a case."""
    return {"half": number / by, "odd": None if by == 4 else number % 2}


def test_a_row_has_the_means_of_the_cells_of_its_cases_and_a_setting_may_do_without_a_strategy():
    """Halves of 1, 2 and 6: 1.5 in the mean, a quarter of 6 alone: 1.5. The lead of the halves over the
    quarters of 1, 2, 6: .25, .5, 1.5.
    """
    cases = [(1,), (2,), (6,)]
    sweep = Sweep(
        names=("divided by", "of"),
        settings=lambda models: [
            Setting((2, "all"), parameters={"by": 2}, cases=cases),
            Setting((4, "all"), parameters={"by": 4}, cases=cases),
            Setting((3, "last"), parameters={"by": 3}, cases=cases[2:]),
            Setting((5, "fixed"), parameters={"number": 5, "by": 5}),
        ],
        decode=halves,
        within="of",
        says=lambda rows: [f"{len(rows)} rows."],
        differences=(Difference("halves", "half", lambda rows: (rows[0], rows[1])),),
        one_process=True,
    )
    made = swept({}, sweep)
    found = concluded(made, sweep, before=["First: -1."], after=["Last."], calls=["a call"])
    assert found.columns == ["divided by", "of", "half", "odd"]
    assert found.rows == [
        [2, "all", 1.5, pytest.approx(1 / 3)],
        [4, "all", 0.75, None],
        [3, "last", 2.0, 0],
        [5, "fixed", 1.0, 1],
    ]
    assert found.says == ["First: −1.", "4 rows.", "Last."] and found.calls == ["a call"]
    assert found.compared[0].difference == pytest.approx((0.25 + 0.5 + 1.5) / 3)


def test_a_measure_may_fill_a_column_that_the_setting_leaves_open():
    sweep = Sweep(
        names=("machine", "way"),
        settings=lambda models: [Setting((None, way), parameters={"way": way}) for way in ("plain", "fast")],
        decode=lambda models, way: len(way),
        measures=lambda sizes, _: [{"machine": name, "size": n * sizes[0]} for n, name in enumerate("ab", 1)],
        says=lambda rows: [],
        order=lambda row: row["machine"],
        one_process=True,
    )
    rows = [["a", "plain", 5], ["a", "fast", 4], ["b", "plain", 10], ["b", "fast", 8]]
    assert (sweep.run({}).columns, sweep.run({}).rows) == (["machine", "way", "size"], rows)


def test_rows_are_sorted_after_they_were_compared():
    found = replace(BY_HAND, order=lambda row: -row["mean"], differences=(), one_process=True).run(
        {"target": WRITTEN}
    )
    assert [row[2] for row in found.rows] == [55.0, 40.0, 5.5, 2.0]
    assert [row[3] for row in found.rows] == [0.0, -40.0, 3.5, 0.0]


def test_curves_of_several_columns():
    rows = [{"k": 2, "x": 0.5, "y": None}, {"k": 1, "x": 0.25, "y": 1.0}, {"k": 3, "x": 9.0, "y": 9.0}]
    lines = {"x": ("k", "x"), "twice": (lambda row: 2 * row["k"], "y")}
    chart = Curves("Title", "k", "share", lines, where=lambda row: row["k"] < 3, log=True)(rows)
    assert [line.points for line in chart.lines] == [[[1, 0.25], [2, 0.5]], [[2, 1.0], [4, None]]]
    assert (chart.title, chart.x, chart.y, chart.log) == ("Title", "k", "share", True)


def test_a_setting_in_words():
    assert titled("sample", {"temperature": 0.5, "top_k": 5}) == "sample, temperature 0.5, top_k 5"


@pytest.mark.parametrize("name", ["draft-length", "open-text", "evidence"])
def test_the_same_seeds_give_the_same_table(name, models, short):
    one, other = (experiments.answered(experiments.find(name), models) for _ in range(2))
    assert json.dumps(one) == json.dumps(other)


@every_sweep
def test_a_stored_answer_has_the_sentences_and_figures_of_its_table(name):
    sweep, answer = SWEEPS[name].sweep, STORED[name]
    rows = rows_of(answer)
    assert answer["columns"][: len(sweep.names)] == list(sweep.names)
    for sentence in sweep.says(rows):
        assert sentence.replace("-", "−") in [said.replace("-", "−") for said in answer["says"]]
    if sweep.chart:
        chart = {"log": False, "kind": "curves"} | answer["chart"]  # the oldest were stored without these
        assert json.loads(json.dumps(asdict(sweep.chart(rows)))) == chart
    if sweep.pictures:
        assert json.loads(json.dumps([asdict(one) for one in sweep.pictures(rows)])) == answer["pictures"]
    for difference, stored in zip(sweep.differences, answer["stands"]["compared"], strict=False):
        one, other = difference.rows(rows)
        what = difference.what
        assert (what(one, other) if callable(what) else what.format(one, other)) == stored["what"]


@pytest.mark.parametrize("name", [name for name, one in SWEEPS.items() if one.spreads])
def test_the_decodings_of_a_sweep_can_go_to_other_machines(name, models, short):
    sweep = SWEEPS[name].sweep
    settings = sweep.settings(models)
    assert pickle.loads(pickle.dumps((sweep.decode, settings))) == (sweep.decode, settings)
