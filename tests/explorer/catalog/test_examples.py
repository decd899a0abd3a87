"""The example prompts on the shipped models: each shows what it says. Loose, so that a retrained model may
stay within it; an example that no longer shows its point is found here.
"""

from dataclasses import replace
from functools import cache

import pytest

from decoders.models.catalog import DRAFT, TARGET
from decoders.models.loading import load
from decoders.registry import strategies
from decoders.trace.trace import Trace
from explorer.catalog import recorded_runs
from explorer.runs.lane_factory import lane_maker
from explorer.runs.model_pool import Loader
from explorer.runs.validation import RunRequest, check
from tests.helpers import (
    expected_in_constraints,
    expected_in_diffusion,
    expected_in_draft_heads,
    expected_in_lists,
    expected_in_search,
    expected_in_speculation,
)

WITH_LANES = [example for example in recorded_runs.prompts() if "lanes" in example]


@cache
def loader() -> Loader:
    made = Loader(TARGET, DRAFT, "cpu")
    made.load()
    return made


_decoded: dict[str, Trace] = {}  # one of eleven lanes is in another example too


def decoded(example: dict) -> list[Trace]:
    request = check(example)
    loader().open(request.models)
    return [lane_of(replace(request, lanes=(lane,))) for lane in request.lanes]


def lane_of(request: RunRequest) -> Trace:
    """The trace of the only lane of a request; what was decoded already is not decoded again."""
    key = repr(request)
    if key not in _decoded:
        (lane,) = lane_maker(loader())(request)
        _decoded[key] = lane.run()
    return _decoded[key]


SHOWS = expected_in_search.SHOWS | expected_in_speculation.SHOWS | expected_in_draft_heads.SHOWS
SHOWS |= expected_in_constraints.SHOWS | expected_in_diffusion.SHOWS | expected_in_lists.SHOWS


@pytest.mark.parametrize("example", WITH_LANES, ids=lambda e: e["title"])
def test_an_example_shows_its_point(example):
    SHOWS[example["title"]](*decoded(example))


def test_every_strategy_has_an_example_and_every_example_a_sentence():
    shown = {lane["strategy"] for example in WITH_LANES for lane in example["lanes"]}
    served = {"server_stream"}  # no server comes with the app
    assert shown == set(strategies()) - served, (
        "add an example to assets/examples/prompts.json, and its check here"
    )
    for example in WITH_LANES:
        assert example["message"].endswith(".") and len(example["message"]) <= 130
        assert example["max_new_tokens"] and len(example["lanes"]) <= 4


def test_prompts_are_read_by_the_shipped_models():
    """No prompt has words in tokens of single letters only: the models know them."""
    target = load("llama-tiny", "cpu")
    for example in recorded_runs.prompts():
        spelt = [target.bytes_of(token).decode() for token in target.encode(example["prompt"])]
        letters = [sum(map(str.isalpha, token)) for token in spelt]
        assert sum(count > 0 for count in letters) < 0.7 * sum(letters)
