"""A sweep: the same prompts or problems are decoded under several settings. Each setting is a row of the
answer's table (or a few), and each column a measure of what its decodings gave.

A module with a `SWEEP` is an experiment, whose table, charts and intervals follow from the declaration. One
that measures something beside it has a `run` of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Compared, by_pairs
from explorer.experiments.curves import Curves, CurvesBy
from explorer.experiments.pictures import Picture
from explorer.experiments.reading import Row, minus
from explorer.experiments.spread import over

Outcomes = list[Any]  # what the decodings of a setting gave, one for each of its cases


@dataclass(frozen=True)
class Setting:
    """One of the settings of a sweep. names: the first cells of its row or rows, which say what is set.
    strategy, parameters: how it decodes. cases: what it decodes, each the further arguments of the sweep's
    `decode`: for `decoded` a prompt, a number of tokens and perhaps a seed.
    """

    names: tuple[Cell, ...]
    strategy: str
    parameters: dict[str, Any]
    cases: Sequence[tuple]


def titled(strategy: str, parameters: dict[str, Any]) -> str:
    """`sample, temperature 0.5`: a setting in words."""
    return ", ".join([strategy, *(f"{name} {value}" for name, value in parameters.items())])


@dataclass(frozen=True)
class Difference:
    """A difference that the finding claims: of one measure between two rows, paired by their cases.

    what: its name, a format of the two rows or a function of them. rows: the row and the other one with which
    it is compared.
    """

    what: str | Callable[[Row, Row], str]
    measure: Callable[[Outcomes], float]
    rows: Callable[[list[Row]], tuple[Row, Row]]


@dataclass(frozen=True)
class Sweep:
    """An experiment whose table has a row for each setting, or a few.

    names: the columns that name a setting. settings: what is set, given the models. measures: the further
    cells of a row by column, or of several rows, from the outcomes of a setting and those of the setting
    with which it is compared, case by case. says: the conclusions, from the rows. sampled: what was sampled
    -> how many. decode: `decode(models, strategy, *case, **parameters)` gives the outcome of one case.
    within: settings with the same value in this column are compared with the first of them; if empty, all
    with the first. order: the key by which the rows are sorted. one_process: no other machine takes part, as
    its seconds are measured, or it brings models of its own.
    """

    names: tuple[str, ...]
    settings: Callable[[Models], list[Setting]]
    measures: Callable[[Outcomes, Outcomes], Row | list[Row]]
    says: Callable[[list[Row]], list[str]]
    sampled: dict[str, int]
    decode: Callable[..., Any] = decoded
    chart: Curves | CurvesBy | None = None
    pictures: Callable[[list[Row]], list[Picture]] | None = None
    differences: tuple[Difference, ...] = ()
    within: str = ""
    order: Callable[[Row], Any] | None = None
    one_process: bool = False

    def run(self, models: Models) -> Result:
        """Decodes all cases and concludes from them."""
        return concluded(swept(models, self), self)


@dataclass(frozen=True)
class Swept:
    """The settings of a sweep with the outcomes of their cases, and the rows that were measured from them,
    each with the index of its setting.
    """

    settings: list[Setting]
    outcomes: list[Outcomes]
    rows: list[Row] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def at(self, row: Row) -> int:
        """The index of the setting from which a row was measured."""
        return next(place for one, place in zip(self.rows, self.places, strict=True) if one is row)


def of_case(models: Models, decode: Callable, setting: Setting, case: tuple) -> Any:
    """The outcome of one case under a setting."""
    return decode(models, setting.strategy, *case, **setting.parameters)


def outcomes_of(models: Models, sweep: Sweep, settings: list[Setting]) -> list[Outcomes]:
    """What the decodings of each setting gave."""
    if sweep.one_process:
        return [
            [of_case(models, sweep.decode, setting, case) for case in progress.each(setting.cases)]
            for setting in progress.each(settings, weight=lambda one: len(one.cases))
        ]
    asked = [(sweep.decode, setting, case) for setting in settings for case in setting.cases]
    given = iter(over(models, of_case, asked))
    return [[next(given) for _ in setting.cases] for setting in settings]


def swept(models: Models, sweep: Sweep) -> Swept:
    """Decodes every case under every setting, and measures."""
    settings = [setting for setting in sweep.settings(models) if setting.cases]
    made = Swept(settings, outcomes_of(models, sweep, settings))
    for at, setting in enumerate(settings):
        first = compared_with(settings, at, sweep)
        measured = sweep.measures(made.outcomes[at], same_cases(made, first, setting.cases))
        named = dict(zip(sweep.names, setting.names, strict=True))
        for cells in [measured] if isinstance(measured, dict) else measured:
            made.rows.append(named | cells)
            made.places.append(at)
    return made


def compared_with(settings: list[Setting], at: int, sweep: Sweep) -> int:
    """The index of the setting with which one is compared."""
    if not sweep.within:
        return 0
    column = sweep.names.index(sweep.within)
    return [one.names[column] for one in settings].index(settings[at].names[column])


def same_cases(made: Swept, at: int, cases: Sequence[tuple]) -> Outcomes:
    """The outcomes of these cases under the setting with this index."""
    known = list(made.settings[at].cases)
    return [made.outcomes[at][known.index(case)] for case in cases]


def concluded(made: Swept, sweep: Sweep) -> Result:
    """The answer: the table, and what is declared to follow from it."""
    rows = sorted(made.rows, key=sweep.order) if sweep.order else made.rows
    return Result(
        list(rows[0]),
        [list(row.values()) for row in rows],
        [minus(sentence) for sentence in sweep.says(rows)],
        sweep.chart.chart(rows) if sweep.chart else None,
        pictures=sweep.pictures(rows) if sweep.pictures else [],
        compared=[paired(made, one, rows) for one in sweep.differences],
    )


def paired(made: Swept, difference: Difference, rows: list[Row]) -> Compared:
    """A difference with its interval."""
    one, other = difference.rows(rows)
    what = difference.what(one, other) if callable(difference.what) else difference.what.format(one, other)
    mine, theirs = (
        [difference.measure([outcome]) for outcome in made.outcomes[made.at(row)]] for row in (one, other)
    )
    return by_pairs(what, [a - b for a, b in zip(mine, theirs, strict=True)])
