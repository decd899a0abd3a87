"""Draft rounds, hand-made: chain and tree are one picture, states are verdicts, rounds never overlap."""

from decoders.trace.events import Commit, Distribution, Propose, Step, Verdict
from tests.helpers.view_folding import fold, of_kind, vocabulary
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.text import Text
from visualizers.views.speculative.draft_rounds import DraftRounds

WORDS = ["Once", " a", " big", " dog", "<b>", "."]
PROMPT = [0, 1]


def draft(node: int, parent: int, token: int = 2, slot: int = 0) -> Propose:
    return Propose(node, parent, token, -1.0, "draft", slot, "sampled")


def target(node: int, parent: int, token: int = 3) -> Propose:
    return Propose(node, parent, token, -0.5, "target")


def chain() -> list:
    """Drafted 2-3-4 after the prompt: 2 accepted, 3 rejected, 4 never reached, 5 resampled."""
    return [
        draft(2, 1),
        draft(3, 2, 4),
        draft(4, 3),
        Verdict(2, "accepted", 0.5, 0.4, 0.3),
        Verdict(3, "rejected", 0.0352, 0.0651, 0.9),
        Verdict(4, "never reached"),
        target(5, 2),
        Verdict(5, "resampled", p=0.6),
        Commit([2, 5], [-0.7, -0.5]),
    ]


def bonus(start: int, parent: int) -> list:
    """One drafted token, accepted, and the bonus after it."""
    return [
        draft(start, parent),
        Verdict(start, "accepted", 0.9, 0.8, 0.1),
        target(start + 1, start),
        Verdict(start + 1, "bonus", p=0.7),
        Commit([start, start + 1], [-0.1, -0.4]),
    ]


def tree(rejected: int, rings: int) -> list:
    """Siblings: the first `rejected` are tried and rejected, one is accepted, `rings` are never reached."""
    events = [draft(2 + i, 1, 2, i) for i in range(rejected + 1 + rings)] + [draft(60, 2 + rejected)]
    events += [Verdict(2 + i, "rejected", 0.1, 0.5, 0.9) for i in range(rejected)]
    events += [Verdict(2 + rejected, "accepted", 0.5, 0.5, 0.2), Verdict(60, "accepted", 0.9, 0.1, 0.2)]
    events += [Verdict(3 + rejected + i, "never reached") for i in range(rings)]
    return events + [Commit([2 + rejected, 60], [-0.1, -0.1])]


def run(steps):
    return fold(DraftRounds, steps, PROMPT, WORDS, num_assistant_tokens=3)[0]


def inside(mark: dict, row: dict) -> bool:
    return row["y0"] <= mark["y"] - mark.get("h", 0) / 2 and mark["y"] + mark.get("h", 0) / 2 <= row["y1"]


def test_a_chain_says_what_became_of_every_token():
    marks = run([chain()])
    assert {n: marks[f"n{n}"]["state"] for n in (2, 3, 4, 5)} == {
        2: "accepted",
        3: "rejected",
        4: "unreached",
        5: "resampled",
    }
    assert marks["n4"]["fill"] == "dotted" and marks["n4"]["x"] == 3
    upper, lower = (
        marks["n5"],
        marks["n3"],
    )  # the rejected token in the lower half of the cell that replaced it
    assert upper["x"] == lower["x"] == 2 and upper["y"] < lower["y"] and upper["h"] == lower["h"]


def test_hover_prints_numbers_that_can_be_divided():
    assert run([chain()])["n3"]["hover"][0] == "<b>  rejected: p .0352, q .0651, u .900"


def test_rounds_stand_below_each_other_and_start_where_the_last_one_ended():
    marks = run([chain(), bonus(6, 5)])
    first, second = of_kind(marks, "row")
    assert first["y1"] <= second["y0"] + 1e-9 and (first["bold"], second["bold"]) == ("+2", "+2")
    assert marks["n6"]["x"] == 3 and marks["n6"]["depth"] == 1 and marks["n7"]["state"] == "bonus"
    for mark in of_kind(marks, "cell"):
        assert inside(mark, second if mark["node"] >= 6 else first)


def test_the_committed_text_runs_above():
    marks = run([chain(), bonus(6, 5)])
    texts = sorted((m["x"], m["text"]) for m in of_kind(marks, "label") if m["panel"] == "text")
    assert texts == [(1, "␣big"), (2, "␣dog"), (3, "␣big"), (4, "␣dog")]


def test_tried_siblings_stand_below_the_path_in_the_order_tried_and_few_rings_at_the_foot():
    marks = run([tree(rejected=2, rings=3)])
    assert marks["n4"]["y"] < marks["n2"]["y"] < marks["n3"]["y"] < marks["n5"]["y"]
    assert [marks[f"n{n}"]["kind"] for n in (5, 6, 7)] == ["node"] * 3
    assert len({marks[f"n{n}"]["x"] for n in (5, 6, 7)}) == 3


def test_many_rings_become_one_with_a_number_and_many_tried_are_counted():
    marks = run([tree(rejected=7, rings=9)])
    rings = of_kind(marks, "node")
    assert len(rings) == 9 and [m.get("note") for m in rings if m.get("drawn", True)] == ["9"]
    rejected = [m for m in of_kind(marks, "cell") if m["state"] == "rejected"]
    assert len(rejected) == 7 and sum(m.get("drawn", True) for m in rejected) == 3
    assert [m["text"] for m in of_kind(marks, "label") if m["panel"] == "rounds"] == ["✕ 4 more"]


def test_a_step_without_a_draft_is_a_round_of_one():
    marks = run([[target(2, 1), Commit([2], [-0.5])]])
    assert marks["n2"]["state"] == "chosen" and marks["r1"]["bold"] == "+1"


def test_no_two_cells_overlap():
    marks = run([chain(), bonus(6, 5), [target(8, 7), Commit([8], [-0.5])]])
    boxes = [(m["x"], m["y"] - m["h"] / 2, m["y"] + m["h"] / 2) for m in of_kind(marks, "cell")]
    for i, (x, low, high) in enumerate(boxes):
        assert all(x != x2 or high <= low2 or high2 <= low for x2, low2, high2 in boxes[i + 1 :])


def test_a_round_is_said_in_one_sentence():
    view = DraftRounds(Header(PROMPT, vocabulary(*WORDS), {}))
    (said,) = [op["say"] for op in to_json(view.feed(Step(0, chain()))) if "say" in op]
    assert (
        said == "Round 1: 1 of 3 drafted tokens accepted; “<b>” rejected (p .04, q .07, u .90), "
        "“␣dog” written instead."
    )


def test_a_verdict_in_a_later_round_changes_the_cell_where_it_stands():
    first = [
        Propose(1, 0, 1, -0.1, "draft"),
        Propose(2, 1, 2, -0.1, "draft"),
        Verdict(1, "accepted"),
        Commit([1], [-0.1]),
    ]
    marks, ops = fold(DraftRounds, [first], [0], ["a", "b", "c"])
    assert marks["n2"]["state"] == "live"
    second = [
        Propose(3, 1, 0, -0.1, "target"),
        Verdict(2, "rejected", reason="Unlikely."),
        Commit([3], [-0.1]),
    ]
    marks, ops = fold(DraftRounds, [first, second], [0], ["a", "b", "c"])
    assert marks["n2"]["state"] == "rejected" and marks["n2"]["fill"] == "tint"
    assert marks["n2"]["glyph"] == "✕" and marks["n2"]["hover"][1] == "Unlikely."
    (born,) = [op for op in ops[0] if op.get("id") == "n2"]
    assert born["state"] == "live", "a step back shows the verdict of a later round"


def test_what_passes_though_the_target_would_have_said_something_else_has_a_state_of_its_own():
    offered = [Distribution(1, "target", [[3, -0.1], [2, -2.4]], 0.0, 0.3)]
    events = [*offered, *chain()]
    for temperature, state in ((0.0, "tolerated"), (1.0, "accepted")):  # who draws need not draw the best
        marks, _ = fold(DraftRounds, [events], PROMPT, WORDS, temperature=temperature)
        assert marks["n2"]["state"] == state
        text = Text(Header(PROMPT, vocabulary(*WORDS), {"temperature": temperature}))
        chips = [op for op in to_json(text.feed(Step(0, events))) if op.get("kind") == "chip"]
        assert next(chip["state"] for chip in chips if chip["node"] == 2) == state


def test_a_token_that_was_never_reached_beside_a_rejected_one_is_drawn():
    """All of the target's own, as a lane of another tool may tell it: no token of the three is left out."""
    step = [target(2, 1), target(3, 1), target(4, 1), Commit([4], [-0.5])]
    step += [Verdict(2, "rejected"), Verdict(3, "never reached")]
    marks = fold(DraftRounds, [step], PROMPT, WORDS)[0]
    assert {m["node"] for key, m in marks.items() if key.startswith("n")} == {2, 3, 4}


def test_a_row_says_where_it_ends_when_it_is_folded():
    """What was never reached is left out there: a row of nothing else would be an empty one."""
    assert [run([chain()])["r1"][name] for name in ("last", "folds_to")] == [3, 2]
    waits = [Propose(n, n - 1, 1, -0.1, "draft") for n in (1, 2, 3)]
    first = [*waits, Verdict(1, "accepted"), Commit([1], [-0.1])]
    assert fold(DraftRounds, [first], [0], ["a", "b"])[0]["r1"]["folds_to"] == 3
    late = [
        Propose(4, 1, 0, -0.1, "target"),
        Verdict(2, "rejected"),
        Verdict(3, "never reached"),
        Commit([4], [-0.1]),
    ]
    assert fold(DraftRounds, [first, late], [0], ["a", "b"])[0]["r1"]["folds_to"] == 2
