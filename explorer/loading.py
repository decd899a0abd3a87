"""Loads the models in the background, so that the page is up before torch is.

Knows model names and the registry; imports torch and transformers only inside its thread.
"""

import logging
import threading
import time

log = logging.getLogger(__name__)
PATIENCE_SECONDS = 300.0
SMALL = 50_000_000  # parameters


def share_cores(models: dict) -> None:
    """One thread for small models: a second gains nothing, and the browser often needs the other core."""
    import torch

    if max(model.facts()["parameters"] for model in models.values()) < SMALL:
        torch.set_num_threads(1)


class Loader:
    """Target and draft, ready or not. `state` is loading, ready or failed; `sentence` says it to people."""

    def __init__(self, target: str, draft: str | None, device: str = "auto"):
        self.names = {"target": target} | ({"draft": draft} if draft else {})
        self.device = device
        self.models: dict = {}
        self.state = "loading"
        self.sentence = f"Loading {' and '.join(self.names.values())} …"
        self.done = threading.Event()

    def start(self) -> None:
        """Begins to load on a thread of its own."""
        threading.Thread(target=self.load, name="loading", daemon=True).start()

    def load(self) -> None:
        """Loads everything; never raises."""
        began = time.monotonic()
        try:
            from decoders.models import check_pair, load
            from decoders.registry import strategies

            strategies()
            models = {role: load(name, device=self.device) for role, name in self.names.items()}
            if "draft" in models:
                check_pair(models["target"], models["draft"])
            share_cores(models)
            self.models = models
            self.state, self.sentence = "ready", f"Models loaded in {time.monotonic() - began:.1f} s."
        except ValueError as error:
            self.state, self.sentence = "failed", str(error)
        except Exception as error:
            log.exception("The models could not be loaded")
            self.state = "failed"
            self.sentence = (
                f"The models could not be loaded ({type(error).__name__}); the log of the app says why."
            )
        finally:
            self.done.set()

    def wait(self) -> dict:
        """The models by role, as soon as they are there. ValueError with a sentence if they never will be."""
        if not self.done.wait(PATIENCE_SECONDS):
            raise ValueError("The models are still loading; press Run again in a minute.")
        if self.state == "failed":
            raise ValueError(self.sentence)
        return self.models
