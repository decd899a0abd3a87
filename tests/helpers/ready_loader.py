"""A loader with loaded models: tiny random ones, for pages and servers without weights."""

from explorer.runs.model_pool import Loader
from tests.helpers import tiny_models


def ready_loader() -> Loader:
    """Target and draft, with different seeds, that never end a text by themselves."""
    found = Loader("tiny", "tiny-draft")
    found.models = {
        "target": tiny_models.make(seed=0, endings=0.0),
        "draft": tiny_models.make(seed=1, endings=0.0),
    }
    found.state, found.sentence = "ready", "Models loaded."
    found.done.set()
    return found
