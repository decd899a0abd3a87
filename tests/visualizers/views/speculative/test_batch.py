"""The batch view on hand-made rounds: one row a text, columns from the text's own end, a ragged edge."""

import json

import pytest

from decoders.trace.events import Cell, Forward
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.speculative.batch import EDGE, LEFT, Batch

WORDS = ["Once", " a", " big", "<img src=x onerror=alert(1)>"]
STATES = {
    "a": "accepted",
    "x": "rejected",
    "n": "never reached",
    "r": "resampled",
    "b": "bonus",
    "s": "settled",
    "p": "pruned",
}


def cells(text: int, turn: int, length: int, fates: str) -> list[Cell]:
    """The cells of a text of `length` tokens; "aaxnr": two accepted, one rejected and replaced, one never
    reached.
    """
    found, kept = [], fates.count("a")
    for at, fate in enumerate(fates):
        place = length + (kept if fate in "rbs" else at)
        found.append(Cell(place, turn, at % 4, STATES[fate], 0.5, f"text {text}"))
    return found


def forward() -> Forward:
    return Forward("target", "verify", 10, 10, 0.0, 0.1)


def hand_trace() -> list[list]:
    """Two rounds of three texts; the second text is finished after the first round."""
    return [
        [
            forward(),
            Measure(3, "draft length", 3),
            *cells(1, 1, 10, "aaxr"),
            *cells(2, 1, 5, "aaab"),
            *cells(3, 1, 20, "xnnr"),
        ],
        [forward(), Measure(9, "draft length", 3), *cells(1, 2, 13, "aaab"), *cells(3, 2, 21, "s")],
    ]


def run(steps: list[list], **parameters) -> tuple[dict, list]:
    return fold(Batch, steps, [0, 1], WORDS, **parameters)


def test_each_round_has_a_row_for_each_text_that_took_part():
    marks, _ = run(hand_trace())
    rows = {key: mark for key, mark in marks.items() if mark["kind"] == "row" and mark["text"]}
    assert list(rows) == ["r1.text 1", "r1.text 2", "r1.text 3", "r2.text 1", "r2.text 3"]
    assert [row["right_bold"] for row in rows.values()] == ["+3", "+4", "+1", "+4", "+1"]
    assert [row["right"] for row in rows.values()] == ["→ 13", "→ 9", "→ 21", "→ 17", "→ 22"]
    ends = [(row["y0"], row["y1"]) for row in rows.values()]
    assert all(low[1] <= high[0] for low, high in zip(ends, ends[1:], strict=False))


def test_the_edge_stands_behind_what_each_text_keeps():
    marks, _ = run(hand_trace())
    assert [x for x, _ in marks["p1"]["points"]] == [3.5, 3.5, 4.5, 4.5, 1.5, 1.5]
    for name, kept in (("text 1", 3), ("text 2", 4), ("text 3", 1)):
        inside = [m for k, m in marks.items() if k.startswith(f"g1.{name}.") and m["x"] < kept + 0.5]
        assert {m["state"] for m in inside} <= {"accepted", "resampled", "bonus", "rejected"}


def test_the_replaced_guess_and_the_targets_token_share_a_place_without_touching():
    marks, _ = run(hand_trace())
    own, lost = marks["g1.text 1.3"], marks["g1.text 1.2"]
    assert (own["state"], lost["state"]) == ("resampled", "rejected") and own["x"] == lost["x"] == 3
    assert own["y"] + own["h"] / 2 < lost["y"] - lost["h"] / 2
    places = [(m["x"], m["y"]) for k, m in marks.items() if k.startswith("g")]
    assert len(set(places)) == len(places)


def test_caches_are_drawn_to_scale_and_end_where_the_guesses_begin():
    marks, _ = run(hand_trace())
    boxes = {name: marks[f"c1.text {name}"] for name in (1, 2, 3)}
    assert [box["text"] for box in boxes.values()] == ["10", "5", "20"]
    assert boxes[1]["w"] == pytest.approx(boxes[3]["w"] / 2, abs=0.01)
    assert boxes[3]["w"] == pytest.approx(EDGE - LEFT)
    assert all(box["x"] + box["w"] / 2 == pytest.approx(EDGE, abs=0.01) for box in boxes.values())


def test_padding_stands_before_a_shorter_text():
    padded = [
        Measure(0, "padding", 15, {"moved": 4}, level="text 2"),
        Measure(0, "padding", 0, level="text 3"),
    ]
    marks, _ = run([[*hand_trace()[0], *padded]])
    pad, box = marks["d1.text 2"], marks["c1.text 2"]
    assert pad["fill"] == "hatched" and pad["text"] == "15" and "d1.text 3" not in marks
    assert pad["x"] + pad["w"] / 2 == pytest.approx(box["x"] - box["w"] / 2, abs=0.01)
    assert pad["x"] - pad["w"] / 2 == pytest.approx(LEFT, abs=0.01)
    assert "4 cache entries were moved" in box["hover"][1]


def test_headings_count_guesses_and_all_texts_tokens():
    marks, ops = run(hand_trace())
    assert marks["h1"]["text"] == "Round 1 · 5 of 9 accepted · draft length 3"
    assert marks["h2"]["text"] == "Round 2 · 3 of 3 accepted · draft length 3"
    assert marks["heading"]["heading"].startswith(
        "13 tokens of all texts in 2 target forwards: 6.5 per forward."
    )
    held, slots = 13 + 9 + 21 + 17 + 22, 21 * 3 + 22 * 2
    assert f"{100 * (slots - held) / slots:.0f} % of the slots are padding" in marks["heading"]["heading"]
    assert ops[0][-1] == {"say": "Round 1: 5 of 9 guesses of 3 texts accepted."}


def test_tokens_are_text_and_steps_without_texts_draw_nothing():
    marks, ops = run([[Cell(3, 0, 1, "guess")], *hand_trace()])
    assert ops[0] == [] and WORDS[3] in {mark.get("text") for mark in of_kind(marks, "cell")}
    json.dumps(ops, allow_nan=False)


def test_what_was_not_submitted_is_no_loss_of_the_target():
    marks, _ = run([[forward(), Measure(1, "budget", 2), *cells(1, 1, 4, "aapb"), *cells(2, 1, 4, "xppr")]])
    assert [marks[f"g1.text 2.{i}"]["state"] for i in range(3)] == ["rejected", "pruned", "pruned"]
    assert "budget 2" in marks["h1"]["text"]
    own, lost = marks["g1.text 1.3"], marks["g1.text 1.2"]
    assert own["x"] == lost["x"] == 3 and own["y"] + own["h"] / 2 < lost["y"] - lost["h"] / 2
