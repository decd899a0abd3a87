"""Finds models, estimates their memory, loads them. Knows files and transformers, no strategy."""

from typing import Any

__all__ = ["load", "load_heads"]


def __getattr__(name: str) -> Any:
    """These two are looked up when they are asked for: the names of models must be there before torch is."""
    if name in __all__:
        from decoders.models import loading

        return getattr(loading, name)
    raise AttributeError(name)
