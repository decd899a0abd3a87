"""Fixtures that all tests share: tiny random models, built once a session. Weights are never changed by a
test.
"""

import pytest
import torch

from tests import tiny

torch.set_num_threads(1)  # tiny models run slower on more
_made = {}


@pytest.fixture(scope="session")
def tiny_model():
    """tiny_model(kind="llama", seed=0, dtype=torch.float32): a LoadedModel, the same one for the same
    arguments.
    """

    def get(kind: str = "llama", seed: int = 0, dtype: torch.dtype = torch.float32):
        key = (kind, seed, dtype)
        if key not in _made:
            _made[key] = tiny.make(kind, seed, dtype)
        return _made[key]

    return get


@pytest.fixture
def prompt():
    """A few token ids for the tiny models."""
    return tiny.tokenizer()("the cat sat on a mat; the cat")["input_ids"]


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items):
    """Where processes share the tests, each file stays in one, for the sake of what its tests build together,
    and so do all browser tests, with one app and one Chromium. Those come first: they take longest, and the
    other process has the rest.
    """
    items.sort(key=in_browser, reverse=True)
    for item in items:
        if in_browser(item):
            item.add_marker(pytest.mark.browser)
        group = "browser" if in_browser(item) else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


def in_browser(item) -> bool:
    """Whether a test drives the page."""
    return item.path.parent.name == "browser"
