"""The interface of a model that a lane relies on."""

from collections.abc import Callable, Collection, Mapping
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

    def narrower(self, rows: int) -> "Model":
        """The same with at most so many rows of scores, if further rows stand for no token."""

    @property
    def model_kind(self) -> str:
        """See models/companions.py."""

    @property
    def heads(self) -> Mapping[str, Any]:
        """Its heads by kind, see models/head_kinds.py."""

    @property
    def bytes_of(self) -> Callable[[int], bytes]:
        """The bytes of a token."""

    @property
    def special(self) -> Collection[int]:
        """Tokens that are no piece of a text."""

    @property
    def cut(self) -> Callable[[str], list[int]] | None:
        """Token ids of a text without those that begin one; None if it has no tokenizer."""

    @property
    def chat_template(self) -> str:
        """The template of its chats; "" without one."""

    @property
    def sorted_draft(self) -> "Model | None":
        """A draft for it that was trained to exit early."""

    def companion(self, wanted: str) -> "Model | None": ...
