"""What lanes ask of whoever starts them is their own: one lane's functions are not another's."""

import pytest

from decoders.callbacks import Callbacks
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel

MODEL = TableModel(lambda past: [0.5, 0.5], 2, words=["a", "b"])
WANTED = {"scorer": "tests", "rollouts": 8}


def lane(wanted: str | None) -> Lane:
    """A lane whose tests pass for texts that are all `wanted`; None: it has no tests to ask."""
    tests = None if wanted is None else Callbacks(lambda _, text: text.count(wanted) / 3)
    return Lane("pg_td", [0], {"target": MODEL}, WANTED, 0, Limits(3), callbacks=tests)


def test_each_lane_asks_its_own_functions():
    one, other = lane("a"), lane("b")
    while one.advance() or other.advance():
        pass
    assert (one.trace.text(), other.trace.text()) == ("aaa", "bbb")


def test_what_is_not_there_is_said_before_anything_is_decoded():
    with pytest.raises(ValueError, match="runs tests here; choose another scorer"):
        lane(None)


def test_a_function_that_raises_leaves_nothing_behind():
    def broken(prompt: str, text: str) -> float:
        raise RuntimeError("the tests' process died")

    failing = Lane("pg_td", [0], {"target": MODEL}, WANTED, 0, Limits(3), callbacks=Callbacks(broken))
    with pytest.raises(RuntimeError):
        failing.run()
    assert lane("a").run().text() == "aaa"
    with pytest.raises(ValueError, match="runs tests here"):
        lane(None)
