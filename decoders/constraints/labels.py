"""Labels of a fixed list, one after another with a separator between them, each at most once.

The search of a trie of labels in Buchner et al. (2024), Prompt Tuned Embedding Classification. The state
holds the labels used so far, so that each beam has a list of its own.
"""

from typing import NamedTuple

from decoders.constraints.problem import ConstraintProblem

SEPARATOR = ", "


def labels_of(typed: str) -> list[str]:
    """The labels that were typed, one per line or between |. Raises ConstraintProblem if there are none."""
    pieces = typed.split("\n") if "\n" in typed.strip() else typed.split("|")
    labels = list(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))
    if not labels:
        raise ConstraintProblem("The list of labels is empty; type one label per line.")
    return labels


class LabelState(NamedTuple):
    """`used`: the numbers of the complete labels; `at`: the begun text of the next label or separator."""

    used: frozenset[int]
    at: bytes


class Labels:
    """An automaton; see `automaton.Automaton`. One space may stand before the first label."""

    def __init__(self, labels: list[str], separator: str = SEPARATOR, max_labels: int = 0):
        """max_labels: in one text, 0 for any number. Raises ConstraintProblem with one sentence."""
        self.labels = [label.encode() for label in labels]
        self.separator, self.max_labels = separator.encode(), max_labels or len(labels)
        if not separator:
            raise ConstraintProblem("The separator is empty; type one, such as a comma and a space.")
        for label in labels:
            if separator in label:
                raise ConstraintProblem(
                    f"The label {label!r} contains the separator {separator!r}; change one."
                )
        whole = [label + self.separator for label in self.labels]
        for one in whole:
            for other in whole:
                if one != other and other.startswith(one):
                    pair = f"{labels[whole.index(one)]!r} and {labels[whole.index(other)]!r}"
                    raise ConstraintProblem(
                        f"With the separator {separator!r} the labels {pair} cannot be told apart; "
                        "change one."
                    )

    def start(self) -> LabelState:
        return LabelState(frozenset(), b"")

    def step(self, state: LabelState, byte: int) -> LabelState | None:
        used, at = state.used, state.at + bytes([byte])
        piece, goes_on = self._piece(used, at), len(used) + 1 < self.max_labels
        for number, label in enumerate(self.labels):
            text = label + self.separator if goes_on else label
            if number not in used and text.startswith(piece):
                done = goes_on and piece == text
                return LabelState(used | {number}, b"") if done else LabelState(used, at)
        return None

    def _piece(self, used: frozenset[int], at: bytes) -> bytes:
        return at if used else at.removeprefix(b" ")

    def may_end(self, state: LabelState) -> bool:
        piece = self._piece(*state)
        return any(n not in state.used and label == piece for n, label in enumerate(self.labels))


def parsed(text: str, separator: str = SEPARATOR) -> list[str]:
    """The labels of a text."""
    return text.removeprefix(" ").split(separator)
