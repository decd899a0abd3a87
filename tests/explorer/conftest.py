"""What tests of server functions share: a ready loader, and the runs of a page on it."""

import pytest

from explorer.lanes import lane_maker
from explorer.runs import Runs
from tests.ready import ready_loader


@pytest.fixture
def loader():
    return ready_loader()


@pytest.fixture
def runs(loader):
    found = Runs(lane_maker(loader))
    yield found
    found.close()
