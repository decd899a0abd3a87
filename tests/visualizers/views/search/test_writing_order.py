"""The zones view: tokens in the order of writing, each in the row of its part, jumps, and what was kept."""

from decoders.trace.events import Commit, Propose, Verdict
from decoders.trace.scores import Measure
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.writing_order import WritingOrder

WORDS = ["Once", " a", "<SUF>", "<b>", " end", "<MID>"]


def token(node: int, word: int, zone: str, sure: float | None) -> list:
    made = [Propose(node, node - 1, word, -0.1, zone)]
    return made + ([Measure(node, "largest probability", sure, level=zone, limit=0.25)] if sure else [])


STEPS = [
    token(1, 1, "prefix", 0.9),
    [*token(2, 2, "suffix", 0.2), Verdict(2, "forced", reason="forced: unsure"), *token(3, 4, "suffix", 0.8)],
    [*token(4, 5, "middle", None), Verdict(4, "forced", reason="forced"), *token(5, 3, "middle", 0.6)],
    [
        Propose(6, 1, 3, None, "placed"),
        Verdict(5, "merged", into=6),
        Verdict(3, "pruned", reason="lost"),
        Commit([1, 6], [-0.1, -0.2]),
    ],
]


def test_tokens_stand_where_and_when_they_were_written():
    marks, ops = fold(WritingOrder, STEPS, [0], WORDS)
    cells = of_kind(marks, "cell")
    assert [cell["x"] for cell in cells] == [1, 2, 3, 4, 5]
    assert [cell["y"] for cell in cells] == [0.5, 2.5, 2.5, 1.5, 1.5]  # what was only placed has no cell
    assert marks["t5"]["text"] == "<b>" and ops[2][-1]["say"].startswith("5 tokens written; 2 jumps")


def test_jumps_are_arrows_and_unsure_places_amber():
    marks, _ = fold(WritingOrder, STEPS, [0], WORDS)
    arrows = [path["points"] for path in of_kind(marks, "path") if path["role"] == "link"]
    assert arrows == [[[1.5, 0.5], [1.5, 2.1]], [[3.5, 2.5], [3.5, 1.9]]]
    assert [band["x0"] for band in of_kind(marks, "band")] == [1.5]
    assert len(of_kind(marks, "step")) == 4


def test_what_became_of_tokens():
    marks, _ = fold(WritingOrder, STEPS, [0], WORDS)
    assert [marks[f"t{node}"]["state"] for node in range(1, 6)] == [
        "chosen",
        "forced",
        "pruned",
        "forced",
        "chosen",
    ]
    assert marks["t2"]["glyph"] == "⚑" and marks["t3"]["hover"] == ["␣end", "lost"]
