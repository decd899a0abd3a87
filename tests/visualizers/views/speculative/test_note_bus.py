"""Note bus: a round shows the notes that were there, what each stream read of them, wrote and sent."""

import pytest

from decoders.trace.events import Cell, Depend, Propose
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.note_bus import NoteBus

WORDS = ["<s>", "a", "b", "c", "\n"]


def plan() -> list:
    return [
        Measure(1, "plan item", 7.0, level="slot 1", number=1),
        Measure(1, "gate", 0.5, {"adapters": 0.1}, level="layer 3", number=3),
    ]


def block(stream: int, number: int, node: int, token: int, reads: dict, sent: int | None) -> list:
    """A block of one token, its readiness, what it read (writer's node -> weight) and the note it sent."""
    parts = {"round": number, "coverage": 0.5, "notes": len(reads)} | ({} if sent is None else {"note": sent})
    state = "rejected" if sent is None else "accepted"
    links = [Depend(source, node, weight, "note") for source, weight in reads.items()]
    score = Measure(node, "readiness", 0.75, parts, level=f"stream {stream}", number=stream)
    return [
        Propose(node, 1, token, -0.1, "stream"),
        score,
        *links,
        Cell(2, number, token, state, 0.9, score.level),
    ]


ROUNDS = [
    [*plan(), *block(1, 1, 2, 1, {1: 1.0}, 1), *block(2, 1, 3, 2, {1: 1.0}, None)],
    [*block(2, 2, 4, 3, {1: 0.25, 2: 0.75}, 2)],
]


@pytest.fixture(scope="module")
def drawn():
    return fold(NoteBus, ROUNDS, [0, 0], WORDS)


def test_a_note_is_on_the_bus_from_the_round_after_it_was_sent(drawn):
    marks, _ = drawn
    first, second = ([m for key, m in marks.items() if key.startswith(f"n{r}.bus.")] for r in (1, 2))
    assert [m["text"] for m in first] == ["P"] and [m["text"] for m in second] == ["P", "1"]
    assert [m["node"] for m in second] == [1, 2]


def test_cells_are_as_grey_as_the_notes_were_read(drawn):
    marks, _ = drawn
    read = [marks[f"w2.stream 2.{note}"] for note in (0, 1)]
    assert [m["weight"] for m in read] == [0.25, 0.75] and [m["text"] for m in read] == ["25", "75"]
    assert [m["x"] for m in read] == [marks[f"n2.bus.{note}"]["x"] for note in (0, 1)]


def test_a_block_that_is_taken_back_sends_nothing(drawn):
    marks, ops = drawn
    states = {key: m["state"] for key, m in marks.items() if key.startswith("b")}
    assert states == {"b1.stream 1": "accepted", "b1.stream 2": "rejected", "b2.stream 2": "accepted"}
    assert {key for key in marks if key.startswith("s")} == {"s1.stream 1", "s2.stream 2"}
    assert marks["h1"]["text"] == "Round 1 · 1 note on the bus · 1 note sent · 1 block taken back"
    said = [op["say"] for op in ops[1] if "say" in op]
    assert said[0].startswith(
        "Round 2, 2 notes on the bus, 1 note sent. Of the streams, stream 1 is read most"
    )
    assert "25 % of all" in said[0] and "the planner 75 %" in said[0]  # 0.75 of 3, and 2.25


def test_what_is_out_of_sight_is_dotted_and_closed_gates_are_named():
    """With a delay of two rounds the newest note is there and cannot be read."""
    later = block(2, 2, 4, 3, {1: 1.0}, 2)
    marks, _ = fold(NoteBus, [ROUNDS[0], later], [0, 0], WORDS)
    assert marks["w2.stream 2.1"]["fill"] == "dotted"
    closed = [[*plan(), *block(1, 1, 2, 1, {}, 1)]]
    marks, _ = fold(NoteBus, closed, [0, 0], WORDS)
    assert marks["heading"]["lead"] == "No stream reads notes here"
    assert len(of_kind(marks, "row")) == 3


def test_a_new_plan_empties_the_bus():
    """After the sections of a plan are written, the next plan's streams see its note alone."""
    again = [
        Measure(9, "plan item", 3.0, level="slot 1", number=1),
        *block(1, 1, 10, 2, {9: 1.0}, 1),
    ]
    marks, _ = fold(NoteBus, [*ROUNDS, again], [0, 0], WORDS)
    assert [m["node"] for key, m in marks.items() if key.startswith("n3.bus.")] == [9]
