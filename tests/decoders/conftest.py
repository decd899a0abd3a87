"""A tiny model behind a server: for tests of served models and of a server's own decoding."""

import pytest

from decoders.models.loading import load
from tests.helpers import tiny_models
from tests.helpers.fake_server import fake_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tiny target in a folder, whose tokenizer the served model takes."""
    return tiny_models.save(tmp_path_factory.mktemp("served") / "tiny", seed=0)


@pytest.fixture(scope="module")
def here(folder):
    return load(folder, "cpu")


@pytest.fixture
def server(here):
    with fake_server(here) as made:
        yield made
