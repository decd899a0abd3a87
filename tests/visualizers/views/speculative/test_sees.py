"""The view of what guesses look at: states, root and path by depth, and how many distributions there are."""

import pytest

from decoders.trace.events import Note, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.sees import Sees

WORDS = ["Once", " upon", " a", " time", " there", " was"]
# Below the root, node 2: 3 and 4; below 3: 5 and 6; below 4: 7; below 5: 8. 3 and 5 pass.
DRAFT = [(3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (8, 5)]


def round_of(reaches: dict[int, int], **states: float) -> list:
    """A drafted round whose guesses of each depth look at so many tokens, and of the target at `states`."""
    parts = {name.replace("_", " "): value for name, value in states.items()}
    born = [Propose(node, parent, node % 6, -0.5, "draft", 0, "fixed") for node, parent in DRAFT]
    told = [
        Measure(2, "sees", float(reach), parts, level=f"depth {k}", number=k) for k, reach in reaches.items()
    ]
    verdicts = {3: "accepted", 5: "accepted", 8: "rejected"}
    judged = [Verdict(node, verdicts.get(node, "never reached")) for node, _ in DRAFT]
    own = [Propose(9, 5, 4, -0.1, "target"), Verdict(9, "resampled")]
    return [*born, *told, *judged, *own]


def shown(events: list) -> tuple[dict, list[str]]:
    """The marks of one round, and what each depth's row says at its right."""
    marks, _ = fold(Sees, [[Note("nothing yet")], events], [0, 1, 2], WORDS)
    return marks, [row["right"] for row in of_kind(marks, "row")]


def blind(marks: dict, depth: int) -> list[int]:
    """Which tokens of a depth's row are not seen: 0 the root, then the path."""
    row = {int(k.split(".")[2]): m for k, m in marks.items() if k.startswith(f"p1.{depth}.")}
    assert sorted(row) == list(range(depth))
    return [back for back in sorted(row) if row[back]["state"] == "unreached"]


def states(marks: dict, depth: int) -> list[str]:
    return [marks[f"s1.{depth}.{x}"].get("text", "") for x in (1, 2)]


def test_heads_on_the_newest_state_see_neither_root_nor_path():
    marks, rows = shown(round_of({1: 0, 2: 0, 3: 0}, the_newest_state=1.0))
    assert [blind(marks, depth) for depth in (1, 2, 3)] == [[0], [0, 1], [0, 1, 2]]
    assert states(marks, 1) == states(marks, 3) == ["", "state"]
    assert rows == ["1 for 1 branch", "1 for 2 branches", "1 for 1 branch"]
    assert marks["heading"]["lead"] == "Path-independent"


def test_who_sees_the_path_has_a_distribution_for_each_branch():
    marks, rows = shown(round_of({1: 1, 2: 2, 3: 3}, all_states=1.0, several_layers=1.0))
    assert [blind(marks, depth) for depth in (1, 2, 3)] == [[], [], []]
    assert states(marks, 2) == ["layers", "layers"]
    assert rows == ["1 for 1 branch", "2 for 2 branches", "1 for 1 branch"]
    assert marks["heading"]["lead"] == "Path-dependent"
    guesses = [marks[f"g1.{depth}"] for depth in (1, 2, 3)]
    assert [(g["x"], g["node"]) for g in guesses] == [(4, 3), (5, 5), (6, 8)]  # the path that was kept


@pytest.mark.parametrize("own", ["all states", "no state"])  # Kangaroo's adapter, M2R2's fast stream
def test_who_guesses_out_of_the_first_layers_sees_every_token_through_them(own):
    parts = {own.replace(" ", "_"): 1.0, "the_first_layers": 1.0}
    marks, _ = shown(round_of({1: 1, 2: 2, 3: 3}, **parts))
    assert [blind(marks, depth) for depth in (1, 2, 3)] == [[], [], []]
    assert states(marks, 1) == states(marks, 3) == ["early", "early"]
    assert marks["s1.2.1"]["hover"][0].endswith("at this token and at all earlier ones")
    assert marks["p1.2.0"]["hover"][0].endswith("is seen at depth 2, through the target's first layers")


@pytest.mark.parametrize(
    ("reaches", "unseen", "second"),
    [
        ({1: 1, 2: 1, 3: 3}, [[], [1], []], "1 for 2 branches"),  # blocks of two: Falcon's
        ({1: 1, 2: 1, 3: 1}, [[], [1], [1, 2]], "1 for 2 branches"),  # the root alone
    ],
)
def test_a_block_is_blind_to_its_own_tokens(reaches, unseen, second):
    marks, rows = shown(round_of(reaches, all_states=1.0))
    assert [blind(marks, depth) for depth in (1, 2, 3)] == unseen and rows[1] == second
    assert marks["heading"]["lead"] == ("Path-dependent" if reaches[3] > 1 else "Path-independent")


def test_a_root_that_is_part_of_the_draft_is_the_root():
    """PaSS: the first drafted token is the target's own, and look-ahead slots do not see it."""
    born = [Propose(3, 2, 3, -0.1, "target", 0, "fixed"), Propose(4, 3, 4, -0.5, "draft", 0, "fixed")]
    told = Measure(3, "sees", 0.0, {"all states": 1.0}, level="depth 1", number=1)
    marks, rows = shown([*born, told, Verdict(3, "accepted"), Verdict(4, "rejected")])
    assert marks["t1.3"]["node"] == 3 and marks["g1.1"]["node"] == 4 and blind(marks, 1) == [0]
    assert rows == ["1 for 1 branch"]


def test_a_round_replaces_the_one_before_and_keeps_what_is_known():
    first = round_of({1: 1, 2: 2, 3: 3}, all_states=1.0)
    second = [Propose(10, 9, 1, -0.3, "draft", 0, "fixed"), Verdict(10, "accepted")]
    plain = [Propose(11, 10, 2, -0.3, "target")]
    marks, ops = fold(Sees, [first, second, plain], [0, 1, 2], WORDS)
    assert ops[2] == [] and all(marks[key].get("gone") for key in marks if key[:2] in ("g1", "p1", "s1"))
    assert marks["g2.1"]["node"] == 10 and marks["t2.3"]["node"] == 9 and not marks["g2.1"].get("gone")
