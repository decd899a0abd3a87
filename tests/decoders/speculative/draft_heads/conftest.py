"""Deep models with random heads, made once per file."""

import pytest

from tests.helpers.deep_models import with_heads


@pytest.fixture(scope="module")
def model():
    return with_heads(layers=4)


@pytest.fixture(scope="module")
def three():
    return with_heads(layers=2, vocabulary=3)
