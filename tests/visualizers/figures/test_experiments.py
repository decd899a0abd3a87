"""Figures of stored experiments: every value is there, series differ without colour, a caption tells it."""

import math
from itertools import combinations

import pytest

from explorer import experiments
from visualizers.figures import experiments as drawn
from visualizers.figures.theme import THEMES, theme

STORED = experiments.stored()
LIGHT = theme("light")


def pictures(kind: str) -> list[tuple[dict, dict]]:
    return [(one, found) for found in STORED for one in found.get("pictures", []) if one["kind"] == kind]


@pytest.mark.parametrize("found", STORED, ids=[found["name"] for found in STORED])
def test_every_answer_has_its_figures_in_both_themes(found):
    shown = [one for one in found.get("pictures", []) if one["kind"] != "passages"]
    for look in THEMES:
        made = drawn.figures(found, look)
        assert len(made) == bool(found.get("chart")) + len(shown) + bool(found.get("messages"))
        for figure in made:
            assert figure.layout.meta["caption"].endswith(".") and len(figure.layout.meta["caption"]) > 40
            assert figure.layout.template.layout.paper_bgcolor == theme(look).surface["bg"]
            assert figure.data


def test_an_unknown_look_is_a_sentence():
    with pytest.raises(ValueError, match="There is no theme 'pink'"):
        drawn.figures(STORED[0], "pink")


@pytest.mark.parametrize("found", [f for f in STORED if f.get("chart")], ids=lambda found: found["name"])
def test_curves_hold_every_point_and_are_told_apart_without_colour(found):
    chart = found["chart"]
    figure = drawn.curves(chart, LIGHT)
    curves = figure.data
    assert [[list(p) for p in zip(one.x, one.y, strict=True)] for one in curves] == [
        [point[:2] for point in line["points"]] for line in chart["lines"]
    ]
    looks = {(one.line.dash, one.marker.symbol, one.marker.color) for one in curves}
    assert len(looks) == len(chart["lines"])
    for one, line in zip(curves, chart["lines"], strict=True):
        assert one.name.partition(" ")[2] == line["label"].replace("<", "&lt;")
        if len(line["points"][0]) > 2:
            for at, (_, value, low, high) in enumerate(line["points"]):
                assert value - one.error_y.arrayminus[at] == pytest.approx(low)
                assert value + one.error_y.array[at] == pytest.approx(high)
    ends = figure.layout.annotations
    assert [one.text for one in ends] == [f"<b>{number + 1}</b>" for number in range(len(curves))]
    for end, line in zip(ends, chart["lines"], strict=True):
        last = [point for point in line["points"] if point[1] is not None][-1]
        assert [end.x, end.y] == pytest.approx(
            [math.log10(last[0]) if chart.get("log") else last[0], last[1]]
        )
    low, high = figure.layout.yaxis.range
    assert all(low <= p[1] <= high for line in chart["lines"] for p in line["points"] if p[1] is not None)


@pytest.mark.parametrize("found", [f for f in STORED if f.get("chart")], ids=lambda found: found["name"])
def test_the_numbers_of_lines_never_lie_on_each_other_or_below_the_axis(found):
    figure = drawn.curves(found["chart"], LIGHT)
    low, high = figure.layout.yaxis.range
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / (high - low)
    ends = [(one.x, (one.y - low) * pixels + one.yshift) for one in figure.layout.annotations]
    xs = [x for x, _ in ends]
    places = [x for line in figure.data for x in line.x]
    log = figure.layout.xaxis.type == "log"
    wide = math.log10(max(places) / min(places)) if log else max(places) - min(places)
    for (x, up), (other, above) in combinations(sorted(ends), 2):
        assert abs(x - other) >= drawn.BESIDE * wide or abs(up - above) > drawn.LABEL - 1.5, (x, up, above)
    assert all(up > -1 for _, up in ends) and len(xs) == len(found["chart"]["lines"])


def test_ends_move_apart_evenly_and_only_where_they_meet():
    assert drawn.apart([(1.0, 50.0), (1.0, 50.0), (0.5, 50.0)]) == [7.0, -7.0, 0.0]
    assert drawn.apart([(1.0, 50.0), (1.0, 70.0)]) == [0.0, 0.0]
    assert drawn.apart([(1.0, 0.0), (1.0, 0.0)]) == [21.0, 7.0]  # none below the axis


def test_a_heat_map_has_a_cell_for_every_value_and_reads_it():
    for picture, found in pictures("heat"):
        figure = drawn.heat(picture, found, LIGHT)
        for one, row in zip(figure.data, picture["rows"], strict=True):
            cells = [value for column in row["values"] for value in column]
            told = [words for words in one.hovertext[0] if words]
            width = len(row["each"]) + 2
            kept = [value for at, value in enumerate(one.z[0]) if at % width not in (0, width - 1)]
            assert kept == cells and len(told) == len(cells) and len(one.x) == len(one.z[0]) + 1
    picture, found = next(both for both in pictures("heat") if both[1]["name"] == "decoders-swept")
    assert drawn.heat(picture, found, LIGHT).data[0].hovertext[0][1] == "greedy, count: 0.500"


def test_a_map_of_a_text_has_a_cell_for_each_row_and_token_and_room_for_words():
    assert pictures("tokens")
    for picture, found in pictures("tokens"):
        figure = drawn.tokens(picture, found, LIGHT)
        assert [list(row) for row in figure.data[0].z] == picture["values"]
        assert figure.layout.width > 40 * len(picture["tokens"])
        assert figure.layout.coloraxis.cmax == picture["high"]
        assert (
            len(figure.layout.shapes) == (len(picture["tokens"]) - 1) // picture["every"]
            if (picture["every"])
            else not figure.layout.shapes
        )


def test_a_spread_shows_each_name_of_each_row():
    for picture, found in pictures("spread"):
        figure = drawn.spread(picture, found, LIGHT)
        named = {one.name: one for one in figure.data if one.name}
        assert set(named) == set(picture["names"])
        assert len({one.marker.symbol for one in named.values()}) == len(named)
        for at, name in enumerate(picture["names"]):
            assert list(named[name].x) == [row["values"][at] for row in picture["rows"]]


def test_a_board_has_a_line_for_each_row_the_first_above_the_others():
    for picture, found in pictures("board"):
        figure = drawn.board(picture, found, LIGHT)
        assert sorted(one.meta["row"] for one in figure.data) == list(range(len(found["rows"])))
        assert figure.data[-1].meta["row"] == 0 and figure.data[-1].line.width > figure.data[0].line.width
        assert all(0 <= y <= 1 for one in figure.data for y in one.y)
        assert list(figure.layout.xaxis.ticktext) == [f"<b>{name}</b>" for name in picture["axes"]]


def test_clouds_have_every_candidate_and_the_line_of_each_problem():
    for picture, found in pictures("clouds"):
        figure = drawn.clouds(picture, found, LIGHT)
        dots = [one for one in figure.data if one.mode == "markers"]
        lines = [one for one in figure.data if one.mode == "lines"]
        assert [len(one.x) for one in dots] == [sum(map(len, part["groups"])) for part in picture["parts"]]
        assert len(lines) == sum(len(part["lines"]) for part in picture["parts"])
        for one, part in zip(dots, picture["parts"], strict=True):
            hollow = list(one.marker.symbol).count("circle-open")
            assert hollow <= 0.05 * len(one.x) + 1 and part["label"].replace("_", " ") in str(figure.layout)


def test_every_message_is_an_arrow_from_its_sender_to_its_receiver():
    """One below the other, in the order in which they were sent; what goes back is dashed."""
    for found in (found for found in STORED if found.get("messages")):
        figure = drawn.messages(found, LIGHT)
        parts = [text[3:-4] for text in figure.layout.xaxis.ticktext]
        ends = [(parts[int(one.x[0])], parts[int(one.x[-1])]) for one in figure.data]
        assert ends == [(m["sender"], m["receiver"]) for m in found["messages"]]
        assert [one.y[0] for one in figure.data] == list(range(len(found["messages"])))
        assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # downwards
        for one in figure.data:
            back = one.x[-1] < one.x[0]
            assert one.line.dash == ("dash" if back else "solid")
            assert one.marker.symbol == ("triangle-left" if back else "triangle-right")


def test_counts_in_a_heat_map_have_no_decimals():
    (found,) = [one for one, of in pictures("heat") if of["name"] == "parallel-bench" and one["high"] > 1]
    shares = next(one for one, of in pictures("heat") if of["name"] == "parallel-bench" and one["high"] == 1)
    for one, template in ((found, "%{z:.0f}"), (shares, "%{z:.2f}")):
        assert {row.texttemplate for row in drawn.heat(one, {}, LIGHT).data} == {template}
