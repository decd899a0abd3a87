"""What every row of a table of recipes has."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """name: of the model that is shipped; about: what it is, for lists and for its card."""

    name: str
    about: str
