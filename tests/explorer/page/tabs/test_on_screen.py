"""What the page says is on screen: the run of that page, its lanes and steps, and nothing of anyone else."""

import pytest

from explorer.page.tabs.on_screen import NO_RUN, screen
from explorer.runs.scheduler import GONE
from explorer.schema import Malformed

STRANGER = "you" * 8


def test_lanes_are_those_of_the_run_with_the_steps_that_are_shown(runs, run, value_of):
    found = screen(runs, value_of([(1, 1, 1), (0, 2, 99)]))
    assert found.run is run and [(one.index, one.number, one.count) for one in found.lanes] == [
        (1, 1, 1),
        (0, 2, len(run.records[0].rows)),
    ]
    assert [one.title for one in found.lanes] == ["1 Speculative decoding", "2 Greedy"]
    assert screen(runs, "") is None and screen(runs, NO_RUN) is None


def test_a_key_changes_with_what_is_shown_and_with_nothing_else(runs, value_of):
    key = screen(runs, value_of([(1, 1, 1)])).key
    assert key == screen(runs, value_of([(1, 1, 1)], {"state": "running"})).key
    for lanes in ([(1, 1, 2)], [(1, 2, 1)], [(0, 1, 1)], []):
        assert key != screen(runs, value_of(lanes)).key


def test_a_run_of_a_stranger_is_as_one_that_is_gone(runs, value_of):
    for other in ({"session": STRANGER}, {"run": "no such run"}):
        with pytest.raises(ValueError) as said:
            screen(runs, value_of([(0, 1, 1)], other))
        assert str(said.value) == GONE


@pytest.mark.parametrize(
    "odd",
    [
        "nonsense",
        "[]",
        "null",
        '{"session": NaN}',
        "\ud800",
        '{"run": "x", "lanes": []}',
        {"session": 3},
        {"lanes": [{"lane": -1, "number": 1, "shown": 1}]},
        {"lanes": [{"lane": 0, "number": 1, "shown": 1.5}]},
        {"lanes": [{"lane": 0, "number": 1, "shown": 1}] * 5},
    ],
)
def test_nonsense_is_refused_in_a_sentence(runs, value_of, odd):
    with pytest.raises(Malformed) as said:
        screen(runs, value_of([(0, 1, 1)], odd) if isinstance(odd, dict) else odd)
    assert str(said.value).endswith(".") and len(str(said.value)) < 200


def test_a_lane_that_is_not_there_and_two_of_one_number_are_told(runs, value_of):
    with pytest.raises(ValueError, match="There is no lane 3"):
        screen(runs, value_of([(2, 1, 1)]))
    with pytest.raises(ValueError, match="same number; reload"):
        screen(runs, value_of([(0, 1, 1), (1, 1, 1)]))
