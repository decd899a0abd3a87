"""Samples with one value replaced by an odd one: each opens, or is refused with one sentence."""

import copy
import json
from types import SimpleNamespace

import pytest

from decoders.explain import trust as words
from decoders.refusal import Refusal
from decoders.trace import json_file
from decoders.trace.imports.records import records_of
from decoders.trace.trace import from_json
from decoders.trace.trust import Trust
from explorer.export import opened_files
from tests.decoders.trace.imports import samples

ODD = (None, True, -1, 10**12, 0.5, "x", "", [], [[]], {}, {"a": 1})
SAMPLES = {
    name: value
    for name, value in vars(samples).items()
    if name.isupper() and isinstance(value, dict) and len(value) > 1
}


def places(value: object, path: tuple = ()) -> list[tuple]:
    """The paths of all values within a JSON value; of lists only the first and the last."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += places(inner, (*path, key))
    elif isinstance(value, list):
        for at in dict.fromkeys((0, len(value) - 1)) if value else ():
            found += places(value[at], (*path, at))
    return found


def replaced(value: dict, path: tuple, odd: object) -> dict:
    """The value with another one at a path."""
    made = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return made


@pytest.mark.parametrize("name", SAMPLES)
def test_an_odd_value_is_read_or_refused(name):
    for path in places(SAMPLES[name]):
        for odd in ODD:
            data = json.dumps(replaced(SAMPLES[name], path, odd)).encode()
            try:
                found = opened_files.opened(data)
                traces = found.run[1] if found.run else []
            except Refusal as error:
                assert str(error).endswith(".") and "\n" not in str(error), (path, odd)
                continue
            for trace in traces:
                assert words.report(Trust.from_json(trace.trust))
                from_json(json.loads(json.dumps(trace.to_json(), allow_nan=False)))


@pytest.mark.parametrize("name", SAMPLES)
def test_an_odd_record_has_a_row(name):
    odd = [replaced(SAMPLES[name], path, "x") for path in places(SAMPLES[name])[:40]]
    rows = opened_files.opened(samples.lines(SAMPLES[name], *odd)).rows()
    assert len(rows) == len(odd) + 1 and all(len(opened_files.cells(row)) == 8 for row in rows)


def test_a_file_of_lines_is_read_once(monkeypatch):
    """What is looked at for every line is that line, not the whole file: 850 rollouts took seven minutes."""
    looked = []
    pattern = json_file.LONG_NUMBER
    monkeypatch.setattr(
        json_file,
        "LONG_NUMBER",
        SimpleNamespace(search=lambda data: looked.append(len(data)) or pattern.search(data)),
    )
    data = samples.lines(*[samples.PRIME] * 50)
    assert len(records_of(data)) == 50 and sum(looked) <= len(data)
