"""Tables with states: the state after a text is the text itself, so that a head can be any function of it."""

from collections.abc import Callable

from decoders.models.table_model import TableModel, TableScorer

Text = tuple[int, ...]


class TextScorer(TableScorer):
    """A table's scorer that has states."""

    def hidden(self, node: int) -> Text:
        return tuple(self.tree.text(node))


class StatedTable(TableModel):
    """A table whose states are texts."""

    def attach(self, tree) -> TextScorer:
        return TextScorer(self, tree)


class Says:
    """A head that returns `chance(text)`; made against the target called "table"."""

    settings = {"against": "table"}

    def __init__(self, chance: Callable[[Text], float]):
        self.chance = chance

    def scores(self, text: Text) -> float:
        return self.chance(text)
