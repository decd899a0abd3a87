"""The dependency view shows the strongest sources of the newest token and lets older ones fade."""

from decoders.trace.events import Commit, Depend, Propose, Step
from tests.helpers.view_folding import fold, of_kind, vocabulary
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.dependencies import Dependencies, height, percent

WORDS = ["Once", " upon", " a", " big", "<b>", " dog", "."]


def look(target: int, weights: dict[int, float]) -> list:
    return [Depend(source, target, weight, "attention") for source, weight in weights.items()]


def grown(count: int) -> list[list]:
    """`count` steps after a prompt of three; token n looks at all before it, the nearer the more."""
    steps = []
    for node in range(3, 3 + count):
        weights = {source: (1 + source) / 1000 for source in range(node)}
        steps.append(
            [Propose(node, node - 1, node % 7, -1.0, "target"), Commit([node], [-1.0]), *look(node, weights)]
        )
    return steps


def test_the_prompt_ends_at_column_zero_and_generated_tokens_start_at_one():
    marks, _ = fold(Dependencies, grown(2), [0, 1, 2], WORDS)
    cells = {mark["id"]: mark["x"] for mark in of_kind(marks, "cell")}
    assert cells == {"t0": -2, "t1": -1, "t2": 0, "t3": 1, "t4": 2}


def test_the_newest_token_has_its_six_strongest_arcs_and_their_shares():
    marks, _ = fold(Dependencies, grown(6), [0, 1, 2], WORDS)
    strong = {mark["id"] for mark in of_kind(marks, "arc") if mark["strong"]}
    assert strong == {f"a8-{source}" for source in (7, 6, 5, 4, 3, 2)}
    assert {mark["text"] for mark in of_kind(marks, "label")} == {
        "0.8 %",
        "0.7 %",
        "0.6 %",
        "0.5 %",
        "0.4 %",
        "0.3 %",
    }
    assert (
        marks["t8"]["fill"] == "filled"
        and marks["t7"]["fill"] == "outline"
        and marks["t2"]["state"] == "chosen"
    )
    # 8 + 7 + 6 + 5 + 4 + 3 thousandths are shown.
    assert (
        marks["heading"]["lead"] == "␣upon"
        and "six strongest (3 % of the attention)" in marks["heading"]["heading"]
    )


def test_an_arc_says_from_where_to_where_and_leads_to_the_later_token():
    marks, _ = fold(Dependencies, grown(2), [0, 1, 2], WORDS)
    assert marks["a4-1"]["hover"][0] == "␣upon (prompt) → <b> (token 2): 0.2 % of its attention"
    assert marks["a4-3"]["hover"][0] == "␣big (token 1) → <b> (token 2): 0.4 % of its attention"
    assert marks["a4-3"]["to"] == {"node": 4}


def test_older_tokens_keep_their_two_strongest_in_grey():
    marks, _ = fold(Dependencies, grown(6), [0, 1, 2], WORDS)
    grey = {mark["id"] for mark in of_kind(marks, "arc") if not mark["strong"]}
    assert grey == {f"a{node}-{source}" for node in range(3, 8) for source in (node - 1, node - 2)}
    assert marks["t5"]["fill"] == "outline"  # still a source of the focus


def test_what_the_focus_left_is_as_it_was():
    steps = grown(1) + [[Propose(4, 3, 5, -1.0, "target"), Commit([4], [-1.0]), *look(4, {3: 0.5})]]
    marks, ops = fold(Dependencies, steps, [0, 1, 2], WORDS)
    assert ops[1][-1] == {"say": "␣dog looked most at ␣big, 50 % of its attention."}
    assert [marks[f"t{node}"]["state"] for node in (0, 1, 2)] == ["prompt"] * 3
    assert marks["t3"]["fill"] == "outline" and marks["t4"]["fill"] == "filled"
    assert marks["t4"]["hover"] == ["␣dog: token 2", "looked at ␣big 50 %"]
    assert "the strongest source (50 % of the attention)" in marks["heading"]["heading"]


def test_the_ops_of_a_step_do_not_grow_with_the_text():
    _, ops = fold(Dependencies, grown(60), [0, 1, 2], WORDS)
    assert len(ops[59]) == len(ops[20]) <= 60


def test_a_step_with_several_tokens_puts_the_focus_on_the_last():
    step = [
        Propose(3, 2, 3, -1.0, "draft"),
        Propose(4, 3, 4, -1.0, "draft"),
        Propose(5, 4, 5, -1.0, "draft"),
        *look(3, {0: 0.5, 1: 0.2, 2: 0.1}),
        *look(4, {0: 0.3, 3: 0.4}),
        *look(5, {4: 0.9}),
        Commit([3, 4], [-1.0, -1.0]),
    ]
    marks, _ = fold(Dependencies, [step], [0, 1, 2], WORDS)
    assert "t5" not in marks, "a draft that was not committed is no part of the text"
    assert {mark["id"]: mark["strong"] for mark in of_kind(marks, "arc")} == {
        "a3-0": False,
        "a3-1": False,
        "a4-3": True,
        "a4-0": True,
    }


def test_without_recorded_attention_it_says_so():
    marks, _ = fold(Dependencies, [[Propose(3, 2, 4, -1.0, "target"), Commit([3], [-1.0])]], [0, 1, 2], WORDS)
    assert not of_kind(marks, "arc")
    assert marks["heading"]["heading"] == ": no attention was recorded for this token."
    assert marks["heading"]["lead"] == "<b>"


def test_an_engine_without_attention_is_named_as_the_reason():
    view = Dependencies(Header([0, 1, 2], vocabulary(*WORDS), lacks=["attention weights"]))
    ops = to_json(view.feed(Step(0, [Propose(3, 2, 3, -1.0, "target"), Commit([3], [-1.0])])))
    heading = next(op["set"]["heading"] for op in ops if op.get("id") == "heading")
    assert heading == ": the engine of this model gives no attention weights."


def test_longer_arcs_are_higher_and_none_leaves_the_panel():
    heights = [height(span) for span in (1, 2, 5, 30, 500)]
    assert heights == sorted(heights) and heights[-1] < 1


def test_percent():
    assert [percent(share) for share in (0.234, 0.01, 0.004)] == ["23 %", "1 %", "0.4 %"]
