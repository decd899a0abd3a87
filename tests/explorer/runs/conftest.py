"""Runs of lanes that a test makes itself."""

import pytest

from explorer.runs.scheduler import Runs


@pytest.fixture
def house():
    """make(*lanes): Runs whose every start gets these lanes; closed in the end."""
    made = []

    def make(*lanes):
        found = Runs(lambda request: list(lanes))
        made.append(found)
        return found

    yield make
    for found in made:
        found.close()
