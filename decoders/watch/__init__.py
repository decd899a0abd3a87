"""`watch(model, tokenizer)` records what a model's own `generate` does, as traces like those of our lanes.

The package itself can be called, so `from decoders import watch` suffices. Neither torch nor transformers is
imported before that.
"""

import sys
from types import ModuleType
from typing import Any


class _Watch(ModuleType):
    def __call__(self, model: Any, tokenizer: Any = None, name: str = "") -> Any:
        """As `watched.Watched`, to be used in a `with` statement."""
        from decoders.watch.watched import Watched

        return Watched(model, tokenizer, name)


sys.modules[__name__].__class__ = _Watch
