"""What tests of tabs that follow the run share: a finished run of two lanes, and what a page says of it.

A module's tests share them, since a page takes half a second to build.
"""

import asyncio
import json

import pytest

from explorer.page.layout import build
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from tests.helpers.ready_loader import ready_loader

ME = "me" * 12
LANES = [
    {"strategy": "greedy"},
    {"strategy": "speculative", "parameters": {"temperature": 1.0, "top_k": 8}},
]


@pytest.fixture(scope="module")
def loader():
    return ready_loader()


@pytest.fixture(scope="module")
def runs(loader):
    found = Runs(lane_maker(loader))
    yield found
    found.close()


@pytest.fixture(scope="module")
def run(runs):
    made = runs.start(check({"prompt": "Once the cat", "max_new_tokens": 8, "lanes": LANES}), ME)
    every = [{"view": "text", "ops": 2**31, "rows": 2**31} for _ in LANES]
    while made.state == "running":
        asyncio.run(runs.pull(made.id, every, 2.0, "running"))
    return made


@pytest.fixture(scope="module")
def value_of(run):
    """value_of([(lane, number, shown)], {other fields}): the value of the hidden component."""

    def value_of(lanes: list, other: dict | None = None) -> str:
        shown = [dict(zip(("lane", "number", "shown"), one, strict=True)) for one in lanes]
        return json.dumps({"session": ME, "run": run.id, "state": "done", "lanes": shown} | (other or {}))

    return value_of


@pytest.fixture(scope="module")
def events(runs, loader):
    """Name of an event's function -> the function, of the whole page."""
    demo, _ = build(runs, loader)
    return {event.name: event.fn for event in demo.fns.values() if event.fn}
