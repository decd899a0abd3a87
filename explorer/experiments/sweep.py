"""A sweep: the same prompts or problems are decoded under several settings, or several models are asked the
same. Each setting is a row of the answer's table (or a few), each column a measure of what its cases gave.

A module with a `SWEEP` is an experiment, whose table, charts and intervals follow from the declaration. An
experiment that measures something besides the sweep has a `run` of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Compared, by_pairs
from explorer.experiments.pictures import Chart, Picture
from explorer.experiments.reading import Row, minus
from explorer.experiments.spread import over

Outcomes = list[Any]  # what the decodings of a setting gave, one for each of its cases


@dataclass(frozen=True)
class Setting:
    """One of the settings of a sweep. names: the first cells of its row or rows, which say what is set; those
    that the measures fill are None. strategy, parameters: how it decodes; "" if no strategy does. cases: what
    it decodes, each the further arguments of the sweep's `decode`: for `decoded` a prompt, a number of tokens
    and perhaps a seed. By default there is one, without any.
    """

    names: tuple[Cell, ...]
    strategy: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    cases: Sequence[tuple] = ((),)


def titled(strategy: str, parameters: dict[str, Any]) -> str:
    """`sample, temperature 0.5`: a setting in words."""
    return ", ".join([strategy, *(f"{name} {value}" for name, value in parameters.items())])


@dataclass(frozen=True)
class Difference:
    """A difference that the finding claims: of one measure between two rows, paired by their cases.

    what: its name, a format of the two rows or a function of them. measure: from the outcome of one case, or
    the column of its cells. rows: the row and the other one with which it is compared.
    """

    what: str | Callable[[Row, Row], str]
    measure: str | Callable[[Outcomes], float]
    rows: Callable[[list[Row]], tuple[Row, Row]]


def means(outcomes: Outcomes, _: Outcomes) -> Row:
    """The mean of each cell, where `decode` gives the cells of a case; None where the cases have none. The
    cells of a single case stay what they are.
    """
    if len(outcomes) == 1:
        return outcomes[0]
    return {
        column: None if value is None else fmean(one[column] for one in outcomes)
        for column, value in outcomes[0].items()
    }


@dataclass(frozen=True)
class Sweep:
    """An experiment whose table has a row for each setting, or a few.

    names: the columns that name a setting. settings: what is set, given the models. measures: the further
    cells of a row by column, or of several rows, from the outcomes of a setting and those of the setting with
    which it is compared, case by case; by default the means of an outcome's cells. says: the conclusions,
    from the rows. chart, pictures: drawn from the rows. sampled: what was sampled -> how many; where models
    are trained as well, the module has a `STANDS`. decode: `decode(models, strategy, *case, **parameters)`
    gives the outcome of one case; without a strategy none is passed. within: settings with the same value in
    this column are compared with the first of them; if empty, all with the first. order: the key by which the
    rows are sorted. one_process: no other machine takes part, as its seconds are measured, or it brings
    models of its own.
    """

    names: tuple[str, ...]
    settings: Callable[[Models], list[Setting]]
    says: Callable[[list[Row]], list[str]]
    measures: Callable[[Outcomes, Outcomes], Row | list[Row]] = means
    sampled: dict[str, int] = field(default_factory=dict)
    decode: Callable[..., Any] = decoded
    chart: Callable[[list[Row]], Chart] | None = None
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
    strategy = (setting.strategy,) if setting.strategy else ()
    return decode(models, *strategy, *case, **setting.parameters)


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
    if cases is made.settings[at].cases:
        return made.outcomes[at]
    known = list(made.settings[at].cases)
    return [made.outcomes[at][known.index(case)] for case in cases]


def concluded(
    made: Swept, sweep: Sweep, before: Sequence[str] = (), after: Sequence[str] = (), **beside: Any
) -> Result:
    """The answer: the table, and what is declared to follow from it. before, after: sentences that do not
    follow from the rows; beside: further fields of the answer.
    """
    rows = sorted(made.rows, key=sweep.order) if sweep.order else made.rows
    drawn = {
        "chart": sweep.chart(rows) if sweep.chart else None,
        "pictures": sweep.pictures(rows) if sweep.pictures else [],
    }
    return Result(
        list(rows[0]),
        [list(row.values()) for row in rows],
        [minus(sentence) for sentence in (*before, *sweep.says(rows), *after)],
        compared=[paired(made, one, rows) for one in sweep.differences],
        **drawn | beside,
    )


def paired(made: Swept, difference: Difference, rows: list[Row]) -> Compared:
    """A difference with its interval."""
    one, other = difference.rows(rows)
    what, measure = difference.what, difference.measure

    def value(outcome: Any) -> float:
        return outcome[measure] if isinstance(measure, str) else measure([outcome])

    mine, theirs = (map(value, made.outcomes[made.at(row)]) for row in (one, other))
    gaps = [a - b for a, b in zip(mine, theirs, strict=True)]
    return by_pairs(what(one, other) if callable(what) else what.format(one, other), gaps)
