"""The interface of a model that a lane relies on. Knows no model and no lane."""

from typing import Any, Protocol


class Model(Protocol):
    """What a lane needs from a model; see `loaded_model.LoadedModel` and `table_model.TableModel`."""

    name: str
    eos: frozenset[int]
    generation: dict[str, Any]
    engine: Any
    context: int
    note: str | None
    token_key: str  # equal for models that score the same tokens
    model_kind: str  # see models/companions.py

    def companion(self, wanted: str) -> "Model | None": ...

    def bytes_of(self, token: int) -> bytes: ...
