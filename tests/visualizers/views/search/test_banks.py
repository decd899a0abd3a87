"""The view of banks: a band per bank, its slots, texts that go down a band when they meet a token."""

from decoders.lane import Lane, Limits
from decoders.trace.events import Propose, Verdict
from decoders.trace.scores import Measure, Rank, Score
from tests.helpers.view_folding import fold, of_kind
from visualizers.views.search.banks import Banks

WORDS = ["Once", " red", " ball", " cat"]


def slots(*counts: int) -> list[Score]:
    return [
        Measure(0, "bank_slots", float(n), {"candidates": 3.0}, level=f"bank {b}", number=b)
        for b, n in enumerate(counts)
    ]


def met(node: int, count: int, won: int = 0, lost: int = 0) -> Score:
    parts = {"newly met": float(won), "no longer met": float(lost)}
    return Measure(node, "met", float(count), parts, level=f"bank {count}", number=count)


def ranked(node: int, total: float, rank: int) -> Score:
    return Rank(node, "sum_logprob", total, rank=rank)


def steps() -> list[list]:
    born = [Propose(1, 0, 3, -0.1, "target"), Propose(2, 0, 1, -2.0, "target", 1)]
    born += [Propose(3, 0, 2, -5.0, "target", 2), Verdict(3, "pruned", reason="rank 2 of 2 in bank 0")]
    first = [*slots(1, 1, 0), *born, met(1, 0), met(2, 1, won=1), ranked(1, -0.1, 1), ranked(2, -2.0, 2)]
    more = [Propose(4, 1, 3, -0.5, "target"), Propose(5, 2, 3, -0.2, "target", 1)]
    more += [Propose(6, 2, 2, -0.9, "target", 2)]
    kept = [met(4, 0), met(5, 0, lost=1), met(6, 2, won=1), ranked(4, -0.6, 1), ranked(5, -2.2, 2)]
    return [first, [*slots(2, 0, 1), *more, *kept, ranked(6, -2.9, 3)]]


def test_texts_stand_in_the_band_of_their_bank_and_its_slots_on_top():
    marks, _ = fold(Banks, steps(), [0], WORDS, num_beams=3)
    rows = sorted(of_kind(marks, "row"), key=lambda row: row["y0"])
    assert [row["text"] for row in rows] == ["0 of 2 met", "1 of 2 met", "2 of 2 met"]
    assert all(above["y1"] < below["y0"] for above, below in zip(rows, rows[1:], strict=False))
    for node, bank in {0: 0, 1: 0, 2: 1, 4: 0, 5: 0, 6: 2}.items():
        assert rows[bank]["y0"] < marks[f"n{node}"]["y"] < rows[bank]["y1"], node
    cells = {(m["x"], bank): m["text"] for m in of_kind(marks, "cell") for bank, row in enumerate(rows)
             if row["y0"] < m["y"] < row["y1"]}  # fmt: skip
    assert cells == {(1, 0): "1", (1, 1): "1", (1, 2): "0", (2, 0): "2", (2, 1): "0", (2, 2): "1"}
    assert marks["b1.1"]["hover"] == ["bank 1: 3 candidates for 1 slot"]
    places = [(m["x"], m["y"]) for m in of_kind(marks, "node")]
    assert len(places) == len(set(places))


def test_what_meets_a_token_is_labelled_and_what_breaks_a_phrase_has_a_sign():
    marks, _ = fold(Banks, steps(), [0], WORDS, num_beams=3)
    assert not marks["n2"]["quiet"] and not marks["n6"]["quiet"] and marks["n5"]["quiet"]
    assert "2 tokens of the phrases met" in marks["n6"]["hover"][0]
    (sign,) = of_kind(marks, "symbol")
    assert (sign["x"], sign["glyph"], sign["role"]) == (2, "triangle", "rejected")
    assert sign["hover"] == ["␣cat breaks a phrase: 1 token unmet again"]


def test_a_real_run_is_drawn_whole_and_nothing_lies_on_something_else(tiny_model, prompt):
    for asked in ({"phrases": "#5, #9, #7", "num_beams": 7}, {"phrases": "", "num_beams": 3}):
        model = {"target": tiny_model("llama")}
        trace = Lane("dba", prompt, model, asked, limits=Limits(12)).run()
        words = {t: b.decode("latin-1") for t, b in trace.vocabulary.items()}
        listed = [words.get(t, "") for t in range(max(words) + 1)]
        marks, _ = fold(Banks, [s.events for s in trace.steps], prompt, listed, **asked)
        places = [(m["x"], m["y"]) for m in of_kind(marks, "node")]
        assert len(places) == len(set(places)) > 20
        bands = [(m["y0"], m["y1"]) for m in of_kind(marks, "row")]
        assert len(bands) == (4 if asked["phrases"] else 0)
        assert {m["text"] for m in of_kind(marks, "cell")} <= {str(n) for n in range(8)}
