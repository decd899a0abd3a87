"""Finds models, estimates their memory, loads them."""

from typing import Any

__all__ = ["load", "load_heads"]


def __getattr__(name: str) -> Any:
    """Imports on first use, so that model names are available before torch is loaded."""
    if name in __all__:
        from decoders.models import loading, model_heads

        return {"load": loading.load, "load_heads": model_heads.load_heads}[name]
    raise AttributeError(name)
