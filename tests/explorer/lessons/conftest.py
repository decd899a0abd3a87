"""The shipped pair, decoding each lesson's setup once for all tests of lessons."""

import json

import pytest

from decoders.models.catalog import DRAFT, TARGET
from explorer.runs.lane_factory import lane_maker
from explorer.runs.model_pool import Loader


@pytest.fixture(scope="package")
def shipped():
    """traces(setup): the lanes of a setup, decoded by the shipped pair; the same setup is decoded once."""
    loader = Loader(TARGET, DRAFT, "cpu")
    loader.load()
    make, kept = lane_maker(loader), {}

    def traces(setup: dict) -> list:
        key = json.dumps(setup)
        if key not in kept:
            kept[key] = [lane.run() for lane in make(setup)]
        return kept[key]

    return traces
