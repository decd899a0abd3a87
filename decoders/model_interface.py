"""The interface of a model that a lane relies on. Knows no model and no lane."""

from collections.abc import Callable
from typing import Any, Protocol


class Model(Protocol):
    """What a lane needs from a model, which it only reads; see `loaded_model.LoadedModel` and
    `table_model.TableModel`.
    """

    @property
    def name(self) -> str: ...

    @property
    def eos(self) -> frozenset[int]: ...

    @property
    def generation(self) -> dict[str, Any]: ...

    @property
    def engine(self) -> Any: ...

    @property
    def context(self) -> int: ...

    @property
    def note(self) -> str | None: ...

    @property
    def token_key(self) -> str:
        """Equal for models that score the same tokens."""

    @property
    def model_kind(self) -> str:
        """See models/companions.py."""

    @property
    def bytes_of(self) -> Callable[[int], bytes]:
        """The bytes of a token."""

    def companion(self, wanted: str) -> "Model | None": ...
