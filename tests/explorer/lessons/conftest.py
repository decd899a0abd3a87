"""The shipped pair, decoding each lesson's setup once for all tests of lessons."""

import pytest

from tests.helpers.lesson_runs import decoded_once


@pytest.fixture(scope="package")
def shipped():
    """traces(setup): the lanes of a setup."""
    return decoded_once()
