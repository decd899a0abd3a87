"""The sampler's picture: its numbers are those of transformers' processors run one by one."""

import math

import pytest
import torch
from transformers.generation import logits_process

from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace.events import Commit, Distribution
from tests.helpers.view_folding import fold, of_kind
from visualizers.analysis import distribution_stages
from visualizers.registry import deltas
from visualizers.scene.layout import to_json
from visualizers.scene.view import Header
from visualizers.views.any_lane.sampler import (
    ACROSS,
    BAR,
    CUT,
    DRAW_TOP,
    HALF,
    LEFT,
    NUMBER,
    Picture,
    Sampler,
    percent,
)

ROW = [0.30, 0.22, 0.15, 0.11, 0.08, 0.06, 0.04, 0.02, 0.01, 0.01]
SHAPED = {"temperature": 0.7, "top_k": 6, "top_p": 0.9, "min_p": 0.15}
CLASSES = [
    ("temperature", logits_process.TemperatureLogitsWarper),
    ("top_k", logits_process.TopKLogitsWarper),
    ("top_p", logits_process.TopPLogitsWarper),
    ("min_p", logits_process.MinPLogitsWarper),
    ("typical_p", logits_process.TypicalLogitsWarper),
]


def decoded(parameters, row=None, new_tokens=1, seed=0):
    model = TableModel(lambda past: row or ROW, len(row or ROW))
    limits = Limits(max_new_tokens=new_tokens)
    return Lane("sample", [0, 1], {"target": model}, parameters, seed, limits).run()


def picture(trace, step=0) -> Picture:
    """The facts of a step's picture."""
    view = Sampler(Header(trace.prompt, trace.vocabulary, trace.parameters))
    made = []
    view_picture = Picture.ops
    try:
        Picture.ops = lambda self: made.append(self) or view_picture(self)
        for each in trace.steps[: step + 1]:
            to_json(view.feed(each))
    finally:
        Picture.ops = view_picture
    return made[-1]


@pytest.mark.parametrize("parameters", [SHAPED, {"typical_p": 0.5, "top_k": 5}, {"temperature": 1.5}])
@pytest.mark.parametrize("flat", [False, True])
def test_every_column_is_what_transformers_leaves_one_processor_after_the_other(parameters, flat):
    row = [0.12, 0.11, 0.105, 0.1, 0.1, 0.1, 0.095, 0.09, 0.09, 0.09] if flat else ROW
    shown = picture(decoded(parameters, row))
    scores, before = torch.tensor([row], dtype=torch.float64).log(), torch.tensor(row, dtype=torch.float64)
    assert shown.tables[0] == pytest.approx({t: row[t] for t in shown.tables[0]})
    assert shown.titles == ["model", *(f"{n} {parameters[n]:g}" for n, _ in CLASSES if n in parameters)]
    stages = [(name, made(parameters[name])) for name, made in CLASSES if name in parameters]
    for i, (_, processor) in enumerate(stages, 1):
        scores = processor(None, scores)
        law = scores.softmax(-1)[0]
        assert shown.tables[i] == pytest.approx({t: float(law[t]) for t in shown.tables[i]})
        assert shown.removed[i] == pytest.approx(float(before[law == 0].sum()), abs=1e-9)
        really = {t for t in shown.tables[i - 1] if law[t] == 0 and before[t] > 0}
        assert shown.gone[i] == really
        before = law


def test_bars_outlines_and_titles_say_what_the_columns_hold():
    trace = decoded(SHAPED)
    words = [chr(97 + i) for i in range(10)]
    marks, _ = fold(Sampler, [step.events for step in trace.steps], [0, 1], words, **trace.parameters)
    titles = [m["text"] for m in of_kind(marks, "label") if m["panel"] == "titles1"]
    assert titles[:3] == ["model", "temperature  0.7", "top_k  6"]
    assert "removed" in [
        m["text"] for m in of_kind(marks, "label") if m["panel"] == "rows1" and m.get("side")
    ]
    cells = [m for m in of_kind(marks, "cell") if m["panel"] == "rows1"]
    removed = [m for m in cells if m["fill"] == "dotted"]
    assert (
        len(removed)
        == len([t for table in picture(trace).gone for t in table & set(picture(trace).order)])
        > 0
    )
    assert all("removed by" in m["hover"][0] for m in removed)
    taken = [m for m in cells if m["fill"] == "filled"]
    assert len(taken) == 5 and len({m["y"] for m in taken}) == 1
    assert "all others" in [m["text"] for m in of_kind(marks, "label")]
    right = LEFT + ACROSS
    assert all(m["x"] - m["w"] / 2 >= LEFT - 2e-3 and m["x"] + m["w"] / 2 <= right for m in cells)


def drawn(trace, vocabulary, low=False):
    """The marks of the first place, in a picture that is low or not."""
    words = [f"w{token}" for token in range(vocabulary)]
    marks = fold(Sampler, [step.events for step in trace.steps], [0, 1], words, **trace.parameters)[0]
    other = "rows1" if low else "few1"
    return {name: mark for name, mark in marks.items() if mark.get("panel") != other}


def in_stage(marks, stage: int, stages: int) -> list[tuple[float, float, float]]:
    """(y, from, to) of the bars of a stage."""
    wide = ACROSS / max(2, stages)
    bars = [m for m in of_kind(marks, "cell") if m["panel"] == "rows1"]
    ends = [(m["y"], m["x"] - m["w"] / 2 - LEFT, m["x"] + m["w"] / 2 - LEFT) for m in bars]
    return [
        (y, a - wide * stage, b - wide * stage) for y, a, b in ends if -0.01 <= a - wide * stage < wide - 0.01
    ]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
def test_the_bar_of_all_other_tokens_has_the_scale_of_the_tokens(temperature):
    row = [0.05] * 3 + [0.85 / 60] * 60
    trace = decoded({"temperature": temperature}, row)
    shown, stages = picture(trace), 1 if temperature == 1.0 else 2
    for stage in range(stages):
        bars = in_stage(drawn(trace, 63), stage, stages)
        first = shown.tables[stage][shown.order[0]]
        rest = 1 - math.fsum(shown.tables[stage].get(token, 0.0) for token in shown.order)
        length = {y: b - a for y, a, b in bars}
        others = length[len(shown.order)]
        assert others / length[0] == pytest.approx(rest / first, rel=0.01)
        assert others > max(length[y] for y in range(len(shown.order))) or rest < first


def test_a_bar_without_room_is_visibly_cut():
    """Four stages: more than 60 % of the mass, to the scale of the tokens, would hit the next stage."""
    row = [0.3] + [0.7 / 99] * 99
    parameters = {"temperature": 1.1, "top_k": 90, "min_p": 0.0001}
    trace = decoded(parameters, row)
    marks, shown = drawn(trace, 100), picture(trace)
    assert len(shown.columns) == 4
    for stage in range(4):
        rows = len(shown.order)
        pieces = [(a, b) for y, a, b in in_stage(marks, stage, 4) if y == rows]
        left = 1 - math.fsum(shown.tables[stage].get(token, 0.0) for token in shown.order)
        to_scale = ACROSS / 4 * BAR * left / HALF
        assert all(b <= ACROSS / 4 - NUMBER + 1e-2 for _, b in pieces)
        assert len(pieces) == (1 if to_scale <= ACROSS / 4 - NUMBER else 2)
        if len(pieces) == 2:
            assert pieces[1][0] - pieces[0][1] == pytest.approx(CUT, abs=0.01)
    cuts = [m for m in of_kind(marks, "label") if m["text"] == "//"]
    assert (
        len(cuts) == sum(len([1 for y, *_ in in_stage(marks, i, 4) if y == rows]) == 2 for i in range(4)) > 0
    )


def test_where_lanes_part_the_row_of_the_taken_token_is_marked():
    trace = decoded(SHAPED, seed=3)
    (band,) = of_kind(drawn(trace, 10), "band")
    node = trace.steps[0].of(Commit)[0].nodes[0]
    taken = [m for m in of_kind(drawn(trace, 10), "cell") if m["panel"] == "rows1" and m["fill"] == "filled"]
    assert band["parts"] == node and {m["y"] for m in taken} == {(band["y0"] + band["y1"]) / 2}


def test_the_draw_lies_on_the_piece_of_the_token_that_was_taken():
    for seed in range(12):
        trace = decoded({"top_k": 4}, seed=seed)
        words = [chr(97 + i) for i in range(10)]
        marks, _ = fold(Sampler, [step.events for step in trace.steps], [0, 1], words, top_k=4)
        (point,) = of_kind(marks, "symbol")
        assert point["y"] == DRAW_TOP - 3
        pieces = [m for m in of_kind(marks, "cell") if m["panel"] == "draw1"]
        assert [m["text"] for m in pieces] == ["a", "b", "c", "d"], "in the vocabulary's order"
        (hit,) = [m for m in pieces if abs(point["x"] - m["x"]) <= m["w"] / 2 + 1e-3]
        assert hit["fill"] == "filled" and hit["text"] == words[trace.output()[0]]
        assert math.fsum(m["w"] for m in pieces) == pytest.approx(ACROSS, abs=0.01)


def test_without_a_draw_or_without_processors_it_says_so():
    marks, ops = fold(
        Sampler, [s.events for s in decoded({"temperature": 0.0}).steps], [0, 1], list("abcdefghij")
    )
    texts = [m["text"] for m in of_kind(marks, "label")]
    assert "nothing was drawn: a was chosen by its score" in texts and not of_kind(marks, "symbol")
    assert [t for t in texts if "removed" in t] == []
    assert ops[0][-1] == {"say": "a: 30 % in the model."}


def test_all_columns_are_in_sight_even_where_nothing_is_drawn():
    trace = decoded({"temperature": 0.0, "repetition_penalty": 1.2})
    view = Sampler(Header(trace.prompt, trace.vocabulary, trace.parameters))
    panels = [op for op in to_json(view.feed(trace.steps[0])) if op.get("kind") == "panel"]
    assert view.head().columns == "panel"
    assert max(panel.get("columns", 0) for panel in panels) == ACROSS


def test_each_step_shows_its_own_place_and_hides_the_one_before():
    trace = decoded({"top_k": 3}, new_tokens=3)
    _, steps = deltas("sampler", Header(trace.prompt, trace.vocabulary, trace.parameters), trace.steps)
    for number, delta in enumerate(steps, 1):
        born = {op["id"] for op in delta["ops"] if op.get("kind") == "panel"}
        gone = {op["id"] for op in delta["ops"] if op.get("set") == {"gone": True}}
        names = ("titles", "rows", "few", "draw")
        assert born == {f"{name}{number}" for name in names}
        assert gone == ({f"{name}{number - 1}" for name in names} if number > 1 else set())


def test_a_low_picture_has_fewer_rows_which_account_for_all_tokens():
    trace = decoded(SHAPED)
    marks = drawn(trace, 10, low=True)
    names = [m["text"] for m in of_kind(marks, "label") if m.get("side")]
    assert len(names) == 5 and names[-2:] == ["7 more", "removed"]
    assert picture(trace).token in picture(trace).few


def test_of_many_stages_those_without_a_column_are_named():
    many = {
        **SHAPED,
        "typical_p": 0.9,
        "epsilon_cutoff": 0.001,
        "eta_cutoff": 0.001,
        "repetition_penalty": 1.1,
    }
    shown = picture(decoded(many))
    assert len(shown.titles) == 9 and len(shown.columns) <= 6
    words = shown._draw()[0].text
    assert all(title in words for i, title in enumerate(shown.titles) if i not in shown.columns)


def test_what_is_not_known_is_not_claimed():
    before = Distribution(0, "target", [[1, math.log(0.5)]], 0.5, 1.0, None, 10)
    after = Distribution(0, "processed", [[2, 0.0]], 0.0, 0.0, None, 4)
    assert distribution_stages.removed(before, after) is None and percent(None) == "?"
    assert not distribution_stages.is_gone(1, before, after)
    all_left = Distribution(0, "processed", [[2, 0.0]], 0.0, 0.0, None, 1)
    assert distribution_stages.is_gone(1, before, all_left)
