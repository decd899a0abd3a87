"""Measured and counted figures in prose are those that are stored, and a command prints them.

A row of `figures.csv` names a page, words of the paragraph, list item or table row that has the figures, the
command that prints them, and all its numbers in their order, as a format string over what is stored. Outside
of braces stand settings, and what was measured by hand and says so. Tables that a program writes have tests
of their own.
"""

import csv
import json
import re
import shlex
import string
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from statistics import fmean
from typing import Any

import pytest

import decoding_explorer as dx
from decoders.lane import Lane, Limits
from decoders.trace.trace import Trace
from explorer import experiments
from explorer.benchmarks import publish_head_gains
from explorer.catalog import papers
from explorer.cli_options import parser
from explorer.experiments.groups import GROUPS
from tests.explorer.doctor import test_doctor
from tests.helpers.shipped_pair import pair
from tests.newcomers.__main__ import TASKS
from tests.test_documentation import ROOT

ROWS = list(csv.DictReader((ROOT / "tests" / "figures.csv").open(newline="", encoding="utf-8")))
WORDS = ["four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen"]
WORDS += ["fifteen"]
NUMBER = re.compile(rf"(?<![\w.-])[−+]?(?:\d+(?:,\d{{3}})*(?:\.\d+)?|\.\d+|{'|'.join(WORDS)})(?![\w-])")
BLOCK = re.compile(
    r"\n\s*\n|\n(?=\s*(?:\||- |\d+\. |python |```))"
)  # between paragraphs, items, rows, commands
CODE = re.compile(r"`[^`\n]*`|\]\([^)]*\)|\b(?:python|decoding-explorer) [^#\n]*#")


@cache
def ran(strategy: str, **parameters: Any) -> Trace:
    """40 tokens of the shipped pair after a prompt of four."""
    prompt = pair()["target"].encode("Once upon a time")
    return Lane(strategy, prompt, pair(), parameters, limits=Limits(40)).run()


def events(trace: Trace) -> int:
    """The events of all its steps."""
    return sum(len(step.events) for step in trace.steps)


def bytes_of_a_token() -> int:
    """Keys and values of a token in the cache of the target, in float32."""
    config = pair()["target"].model.config
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * 4


def column(experiment: str, begins: str, name: str) -> float:
    """The mean of a column over the rows that begin so."""
    return fmean(row[name] for rows, row in answer(experiment).items() if re.match(begins, str(rows)))


def size(model: str) -> int:
    """The parameters of a shipped model."""
    return read(f"models/{model}/facts")["parameters"]


def other_sizes() -> list[int]:
    """Parameters of the models in the last row of the models' table."""
    names = block("docs/models.md", "| `llama-tiny-yoco`").split(" | ")[0]
    return [size(name) for name in re.findall(r"`([\w-]+)`", names)]


COUNTED: dict[str, Callable[[], float]] = {
    "papers": lambda: len(papers.papers()),
    "experiments": lambda: len(experiments.experiments()),
    "groups": lambda: len(GROUPS),
    "spread experiments": lambda: sum(one.spreads for one in experiments.experiments().values()),
    "notebooks": lambda: len(list((ROOT / "notebooks").glob("*.ipynb"))),
    "newcomers' tasks": lambda: len(TASKS),
    "broken pairs": lambda: len((*test_doctor.DRAFTS, *test_doctor.HEADS, *test_doctor.ENGINES)),
    "healthy pairs": lambda: len(test_doctor.HEALTHY),
    "smallest other model": lambda: min(other_sizes()),
    "largest other model": lambda: max(other_sizes()),
    "target over draft": lambda: size("llama-tiny") / size("llama-tiny-draft-distilled"),
    "obeyed topics": lambda: column("topic-plans", r"Sheets, t\d", "named"),
    "obeyed plans": lambda: column("topic-decoders", "planned", "obeyed"),
    "topics of a planned decoder": lambda: column("topic-decoders", "planned", "topics"),
    "topics of a flat decoder": lambda: column("topic-decoders", "flat", "topics"),
    "events of greedy": lambda: events(ran("greedy")),
    "events of beam": lambda: events(ran("beam", num_beams=4)),
    "events of speculative": lambda: events(ran("speculative")),
    "kilobytes of a token": lambda: bytes_of_a_token() / 1e3,
    "megabytes of a cell": lambda: len(dx.show(ran("greedy"))._repr_html_()) / 1e6,
}


class Stored(string.Formatter):
    """Fills in what is stored: `{models/NAME/FILE[...]}`, `{experiments/NAME[ROW][COLUMN]}`,
    `{gains[DRAFTER].FIGURE}` and `{counted[WHAT]}`. A format that ends in M is of millions; `word` writes a
    count, or a share in percent, as a word.
    """

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        return read(str(key))

    def format_field(self, value: Any, spec: str) -> str:
        if spec == "word":
            return WORDS[(value if isinstance(value, int) else round(100 * value)) - 4]
        return format(value / 1e6, spec[:-1]) if spec.endswith("M") else format(value, spec)


class Counted(dict):
    """What is counted when it is asked for."""

    def __missing__(self, what: str) -> float:
        return self.setdefault(what, COUNTED[what]())


@cache
def read(name: str) -> Any:
    """What the first part of a field names."""
    kind, _, rest = name.partition("/")
    if kind == "counted":
        return Counted()
    if kind == "gains":
        return {one.drafter: one for one in publish_head_gains.stored()}
    if kind == "experiments":
        return answer(rest)
    return json.loads((ROOT / "assets" / f"{name}.json").read_text("utf-8"))


def answer(name: str) -> dict[str | int, dict[str, Any]]:
    """The rows of a stored answer by their first cells, which are no measured numbers, and the differences by
    what they compare.
    """
    found, rows = experiments.find_stored(name), {}
    for row in found["rows"]:
        measured = next(at for at, cell in enumerate(row) if cell is None or isinstance(cell, float))
        rows[row[0] if measured == 1 else ", ".join(map(str, row[:measured]))] = dict(
            zip(found["columns"], row, strict=True)
        )
    return rows | {one["what"]: one for one in found["stands"]["compared"]}


def block(page: str, about: str) -> str:
    """The only paragraph, list item, table row or command of a page that has these words; the line of a CSV
    file.
    """
    text = (ROOT / page).read_text("utf-8")
    blocks = text.splitlines() if page.endswith(".csv") else BLOCK.split(text)
    (found,) = (one for one in blocks if about in " ".join(one.split()))
    return found


def numbers(text: str) -> list[str]:
    """The numbers in a text, .5 for 0.5."""
    return [re.sub(r"^([−+]?)0\.", r"\1.", number) for number in NUMBER.findall(text.lower())]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['page']}: {row['about']}" for row in ROWS])
def test_a_figure_is_the_stored_one(row):
    told = CODE.sub("", block(row["page"], row["about"]))
    stored = Stored().vformat(row["numbers"], (), {}).replace("-0", "−0")
    assert numbers(told) == numbers(stored), " ".join(told.split())


@pytest.mark.parametrize("command", sorted({row["command"] for row in ROWS}))
def test_a_command_prints_it(command):
    program, *given = shlex.split(command)
    if program == "python":
        assert given[0] == "-m" and find_spec(given[1])
        if given[1] == "explorer":
            parser().parse_args(given[2:])
    else:
        assert program == "ls" and (ROOT / given[0]).exists()


def test_a_changed_figure_is_found():
    assert numbers("In 1,442 of `x=3` cases Five of 0.20, −0.5") == ["1,442", "3", "five", ".20", "−.5"]
    assert Stored().vformat("{counted[groups]:word}", (), {}) == "seven"
