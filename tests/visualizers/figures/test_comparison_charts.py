"""Charts of a comparison show its numbers, and the sentences that the page reads."""

from operator import itemgetter

import pytest

from tests.visualizers.analysis.test_comparison import CAT, DOG, STOP, THE, drafting, lane
from tests.visualizers.figures.charts_of import analyses, lanes, read, unbroken
from visualizers.analysis.comparison import compare
from visualizers.figures import caption, compared_acceptance, comparison, costs, first_differences
from visualizers.figures.joint_curves import alike, rolling, rolling_window


@pytest.mark.parametrize("charge", ["forwards", "seconds", "target_tokens", "positions"])
def test_running_totals_are_stairs_over_what_was_paid(charge):
    found = analyses()["comparison"]
    for make, field in (
        (comparison.tokens_reached, "reached"),
        (comparison.total_log_probability, "logprob"),
    ):
        figure = make(found, charge)
        drawn = lanes(figure)
        races = [{**lane, **lane["race"]} for lane in found["lanes"]]
        joint = alike(races, itemgetter(charge, field))
        assert len(drawn) == len(joint)
        for one in (group[0] for group in joint if len(group) == 1):
            line = drawn[one["lane"]]
            assert list(line.x) == one["race"][charge] and list(line.y) == one["race"][field]
            assert line.line.shape == "hv"
            assert line.name.startswith(f"{one['lane']} {one['label']}"[:20])
        assert figure.layout.xaxis.title.text == found["charges"][charge]
        assert sorted(read(figure)) == sorted({x for one in found["lanes"] for x in one["race"][charge]})


def test_what_every_lane_had_for_a_cost_is_read():
    one, other = lane([THE, DOG, STOP]), lane([THE, CAT])
    figure = comparison.tokens_reached(compare([one, other]))
    assert read(figure) == {
        0: "At 0 target forwards: lane 1 has 0 tokens, lane 2 0.",
        1: "At 1 target forwards: lane 1 has 1 token, lane 2 1.",
        2: "At 2 target forwards: lane 1 has 2 tokens, lane 2 2.",
        3: "At 3 target forwards: lane 1 has 3 tokens, lane 2 2 (ended).",
    }
    assert read(figure)[3] in caption(figure)
    running = comparison.tokens_reached(compare([one, lane([THE, CAT], ended=None)]))
    assert read(running)[3].endswith("lane 2 — (not shown so far).")
    assert read(running)[2] in caption(running), "so far it is known what both had"
    totals = comparison.total_log_probability(compare([one, other]), "seconds")
    assert read(totals)[1.0] == "At 1.000 seconds: lane 1 −1.4 with 2 tokens, lane 2 −1.4 with 2 tokens."


def test_likelihood_against_cost_is_a_point_a_lane():
    found = analyses()["comparison"]
    figure = comparison.mean_log_probability(found, "target_tokens")
    drawn = lanes(figure)
    for point in found["likelihood"]["points"]:
        assert list(drawn[point["lane"]].x) == [point["target_tokens"]]
        assert list(drawn[point["lane"]].y) == [point["logprob"]]
    by_hand = comparison.mean_log_probability(compare([lane([THE, DOG])]))
    (card,) = lanes(by_hand)[1].hovertext
    assert unbroken(card) == "Lane 1: −0.693 for 1 target forward per token."


def test_an_unknown_charge_is_refused():
    with pytest.raises(ValueError, match="counts cost in forwards, seconds, .* not in 'money'"):
        comparison.tokens_reached(analyses()["comparison"], "money")


def test_entropies_and_log_probabilities_lie_over_each_other():
    found = analyses()["comparison"]
    for make, field in ((comparison.entropies, "entropy"), (comparison.log_probabilities, "logprob")):
        figure, most = make(found), max(len(one["tokens"]) for one in found["lanes"])
        drawn = lanes(figure)
        joint = alike(found["lanes"], itemgetter("tokens", field))
        for one in (group[0] for group in joint):
            line = drawn[one["lane"]]
            assert list(line.y) == one[field] and list(line.x) == list(range(1, len(one["tokens"]) + 1))
        axes = [line.yaxis or "y" for line in drawn.values()]
        assert len(set(axes)) == len(joint)
        ranges = {tuple(figure.layout[axis.replace("y", "yaxis")].range) for axis in axes}
        assert len(ranges) == 1, "one scale for all"
        assert list(read(figure)) == list(range(1, most + 1))


def test_a_position_is_read_and_the_first_difference_marked():
    found = compare([lane([THE, DOG, STOP]), lane([THE, CAT])])
    figure = comparison.entropies(found)
    assert read(figure)[2] == "Position 2: lane 1 ␣dog 1.00 bits · lane 2 ␣cat 1.00 bits"
    assert read(figure)[3] == "Position 3: lane 1 . 1.00 bits · lane 2 —"
    assert {line.x0 for line in figure.layout.shapes} == {2} and len(figure.layout.shapes) == 2
    assert "The lanes first differ at token 2." in caption(figure)
    assert "Mean, derived: lane 1 1.00 · lane 2 1.00." in caption(figure)
    assert read(comparison.log_probabilities(found))[1] == (
        "Position 1: lane 1 ␣the log p −0.69, p .50 · lane 2 ␣the log p −0.69, p .50"
    )
    same = comparison.entropies(compare([lane([THE]), lane([THE])]))
    assert not same.layout.shapes and "dotted" not in same.layout.title.subtitle.text


def test_equal_texts_are_one_curve_that_names_its_lanes():
    found = compare([lane([THE, DOG, STOP]), lane([THE, CAT]), lane([THE, DOG, STOP])])
    for figure in (comparison.entropies(found), comparison.log_probabilities(found)):
        assert set(lanes(figure)) == {1, 2}
        texts = [one.text for one in figure.layout.annotations]
        assert texts[0] == "lanes 1, 3 Any" and "2 Any" in texts
        assert len(figure.layout.shapes) == 2, "a line of the first difference in each panel"
        assert "lane 3 ␣dog" in read(figure)[2], "every lane is still read"
    drawn = lanes(comparison.tokens_reached(found))
    assert [line.name for line in drawn.values()] == ["1, 3 Any", "2 Any"]


def test_a_long_curve_is_a_rolling_mean_and_a_short_one_is_not():
    values = [float(at % 7) for at in range(200)] + [None] * 40
    assert rolling(values, 1) == values and rolling_window(120) == 1
    means = rolling(values, 8)
    assert len(means) == len(values)
    assert means[100] == sum(values[96:104]) / 8 and means[0] == sum(values[:4]) / 4
    assert means[202] == sum(values[198:200]) / 2 and means[-1] is None
    assert [rolling_window(length) for length in (121, 256, 512, 4096)] == [8, 8, 16, 128]
    found = compare([lane([THE, DOG] * 150), lane([THE, CAT] * 150)])
    found["lanes"][0]["entropy"] = [float(at % 2) for at in range(300)]
    figure = comparison.entropies(found)
    curve = lanes(figure)[1].y
    assert len(curve) == 300 and all(0.4 < value < 0.6 for value in curve[9:-9])
    assert "rolling mean of 9 tokens" in figure.layout.title.subtitle.text.replace("<br>", " ")
    assert "Drawn: rolling mean of 9 tokens, derived." in caption(figure)
    assert read(figure)[2].startswith("Position 2: lane 1 ␣dog 1.00 bits"), "a token is read as it is"


def test_acceptance_by_depth_beside_theory():
    found = compare([lane([THE, DOG]), drafting()])
    figure = compared_acceptance.acceptance_by_depth(found)
    line = lanes(figure)[2]
    assert list(line.x) == [1, 2] and list(line.y) == [0.5, 0.5]
    theory = next(one for one in figure.data if one.line.dash == "dot" and not one.name)
    assert list(theory.y) == pytest.approx([2 / 3, 4 / 9])
    assert read(figure)[1] == "Depth 1: lane 2 1 of 2 rounds, α^1 .67"
    assert 1 not in lanes(figure), "a lane that never drafted has no acceptance"


def test_acceptance_by_kind_of_token():
    found = compare([drafting()])
    figure = compared_acceptance.acceptance_by_class(found)
    rows = found["lanes"][0]["classes"]
    line = lanes(figure)[1]
    assert list(line.x) == [row["share"] for row in rows] and list(line.y) == [row["name"] for row in rows]
    assert unbroken(line.hovertext[0]) == "Lane 1, word start: 2 of 2 tested (1.00)."


def test_shared_beginnings_of_any_two_lanes():
    offer = {1: [[DOG, 0.5], [CAT, 0.25]]}
    found = compare([lane([THE, DOG, STOP], offer), lane([THE, CAT, STOP], offer), lane([THE, DOG, STOP])])
    (grid,) = first_differences.shared_beginnings(found).data
    assert [list(row) for row in grid.z] == [[None, 1, 3], [1, None, 1], [3, 1, None]]
    assert grid.text[0][1] == "1 ≠" and grid.text[0][2] == "3"
    assert unbroken(grid.hovertext[0][1]) == (
        "Lanes 1 and 2 diverge at token 2: “␣dog” (p .50) and “␣cat” (p .25), 0.69 nats apart; "
        "a real difference: lane 2 took the token of rank 2."
    )
    assert "have 3 tokens in common" in unbroken(grid.hovertext[2][0])


def test_one_cost_a_bar_a_lane():
    found = compare([lane([THE, DOG, STOP]), drafting()])
    (bars,) = costs.cost(found, "target forwards").data
    assert list(bars.x) == ["1", "2"] and list(bars.y) == [3, 2] and list(bars.text) == ["3", "2"]
    assert unbroken(bars.hovertext[1]) == "2 Drafts: 2"
    assert "lane 1 Any: 3" in caption(costs.cost(found, "target forwards"))
    with pytest.raises(ValueError, match="no cost named 'wings'; choose one of tokens / target"):
        costs.cost(found, "wings")
    with pytest.raises(ValueError, match="list of numbers"):
        costs.cost(found, "acceptance_histogram")
