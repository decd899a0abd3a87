"""Fixtures that all tests share: tiny random models, built once a session. Weights are never changed by a
test.

What needs torch is imported by those who use it: the process that gives tests to others runs none.
"""

# ruff: noqa: E402
import atexit
import gc
import os

gc.disable()  # until all is imported and collected: that stays, and to search it takes seconds
if "PYTEST_XDIST_WORKER" in os.environ:
    # The first to register is the last to be called. After it the process would only free its memory, object
    # by object, while all others wait: ten seconds after the last test.
    atexit.register(os._exit, 0)

import inspect
from functools import cache
from itertools import chain

import pytest

from explorer.page.import_gradio import without_gradio
from tests.helpers import between_processes

_getfile = inspect.getfile
inspect.getfile = without_gradio(_getfile)  # until all is collected: a file may import Gradio
_made = {}
ORDER = {"test_recipes.py": 0, "browser": 1, "laws": 2}  # folders and files of tests that come first


@pytest.fixture(scope="session")
def tiny_model():
    """tiny_model(kind="llama", seed=0, dtype=torch.float32): a LoadedModel, the same one for the same
    arguments.
    """
    import torch

    from tests.helpers import tiny_models

    def get(kind: str = "llama", seed: int = 0, dtype: torch.dtype = torch.float32):
        key = (kind, seed, dtype)
        if key not in _made:
            _made[key] = tiny_models.make(kind, seed, dtype)
        return _made[key]

    return get


@pytest.fixture(scope="session")
def target_for(tiny_model):
    """target_for(strategy, dtype=torch.float32): a tiny model that it can decode with, a mixture of experts,
    one with further tokens, one with masks or a served one if it needs one; always the same one.
    """
    import torch

    from decoders.registry import strategies
    from decoders.suitability import problem
    from tests.helpers import tiny_models
    from tests.helpers.served_here import ServedHere

    @cache
    def get(name: str, dtype: torch.dtype = torch.float32):
        found = strategies()[name]
        kinds = ("llama", "mixtral", "forms", *tiny_models.MASKED, "flow")
        models = (tiny_model(kind, 0, dtype) for kind in kinds)
        drafts = {"draft": tiny_model("llama", 1)}
        models = chain(models, [ServedHere(tiny_model())])
        return next(m for m in models if not problem(found, found.check({}), {"target": m} | drafts))

    return get


@pytest.fixture(scope="session", autouse=True)
def shared_folder(request, tmp_path_factory):
    """Says where processes leave files for each other: above their own folders, if there are several."""
    own = tmp_path_factory.getbasetemp()
    between_processes.folder = own.parent if hasattr(request.config, "workerinput") else own


@pytest.fixture
def prompt():
    """A few token ids for the tiny models."""
    from tests.helpers import tiny_models

    return tiny_models.tokenizer()("the cat sat on a mat; the cat")["input_ids"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Of a test that passed, only that is sent between processes: 50,000 reports are read and written."""
    report = yield
    if report.passed:
        report.keywords, report.sections = {}, []
    return report


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Browser tests come first: they take longest, and where processes share the files, each then has an app
    and a browser once. Files that take a minute or more do not wait for the end, where they would leave
    processes idle.
    """
    items.sort(key=lambda item: ORDER.get(item.path.name, ORDER.get(item.path.parent.name, len(ORDER))))
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)


def pytest_collection_finish():
    """From here on a search for garbage is rare, and none looks through the million objects that stay."""
    import torch

    torch.set_num_threads(1)  # tiny models run slower on more
    inspect.getfile = _getfile
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_sessionfinish():
    """pytest searches for garbage five times before it ends, which takes seconds where much is left."""
    gc.freeze()
