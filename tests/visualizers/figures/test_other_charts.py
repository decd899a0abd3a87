"""Charts of what-if, the live proof, other machines and losses show the numbers that they are given."""

import csv
from pathlib import Path

import pytest

from tests.visualizers.figures.charts_of import DEVICE, LOSSES, analyses, lanes, read
from visualizers.analysis.roofline import DRAFT, TARGET, Device, Size, forward_work, ridge
from visualizers.figures import caption, losses, losslessness, other_machine, what_if

MODELS = Path(__file__).resolve().parents[3] / "assets" / "models"


def test_tokens_a_round_by_length_of_a_chain():
    for kind in ("exact", "estimated"):
        found = analyses()[kind]
        figure = what_if.tokens_per_round(found, 3)
        line = next(one for one in figure.data if one.name == "chains")
        assert list(line.x) == list(range(1, 17))
        assert list(line.y) == [row["tokens"][0] for row in found["chains"]]
        best = [one for one in figure.data if one.name == "best case"]
        ranges = any(row["tokens"][0] != row["tokens"][1] for row in found["chains"])
        assert bool(best) == ranges
        if best:
            assert list(best[0].y) == [row["tokens"][1] for row in found["chains"]]
        asked = next(one for one in figure.data if one.meta and one.meta.get("asked"))
        assert (asked.x[0], asked.y[0]) == (2, found["own"]["tokens"][0])
        assert figure.layout.shapes[0].y0 == found["run"]["tokens"]
        assert f"Lane 3: {found['run']['tokens']:.2f} tokens per round, measured." in caption(figure)
        assert len(read(figure)) == 16


def test_a_shape_in_words():
    row = {"widths": [1, 1], "tokens": [2.5, 2.504], "rounds": [4, 5], "speedup": None}
    assert what_if.row_text(row, True) == "A chain of 2: 2.50 tokens per round, 4 to 5 target forwards."
    row |= {"widths": [3, 1], "speedup": [1.5, 2.0]}
    assert what_if.row_text(row, False) == (
        "A tree 3 1: 2.50 tokens per round, 4.0 to 5.0 target forwards, speed: 1.50 to 2.00 × plain decoding."
    )


def test_speed_by_length_of_a_chain():
    found = analyses()["exact"]
    figure = what_if.speed(found)
    line = next(one for one in figure.data if one.name == "chains")
    assert list(line.y) == [row["speedup"][0] for row in found["chains"]]
    assert f"A draft forward costs {found['cost']:.2f} of a target's" in caption(figure)
    untimed = what_if.speed({**found, "cost": None})
    assert caption(untimed) == "No forward of draft and target was timed."


def test_a_caption_calls_a_chain_fastest_only_where_ranges_do_not_overlap():
    def chain(length, low, high):
        return {"widths": [1] * length, "speedup": [low, high]}

    report = {"exact": True, "chains": [chain(1, 1.1, 1.2), chain(2, 1.3, 1.9), chain(3, 1.2, 1.4)]}
    assert what_if.which_is_fastest(report) == (
        "Which chain is fastest is not known: the ranges of chains of 2 and 3 overlap."
    )
    report["chains"][1]["speedup"] = [1.5, 1.9]
    assert what_if.which_is_fastest(report) == "A chain of 2 would be fastest: 1.50 to 1.90 × plain decoding."


def test_distance_to_the_target():
    state = analyses()["proof"]
    figure = losslessness.distance_to_target(state, 2)
    drawn, first = lanes(figure), state["samples"] / 20
    for way, key in zip(state["ways"], (2, "broken"), strict=True):
        late = [point for point in way["curve"] if point[0] >= first]
        assert list(zip(drawn[key].x, drawn[key].y, strict=True)) == [tuple(point) for point in late]
    chance = next(one for one in figure.data if one.name == "exact samplers")
    assert list(chance.y) == [row[2] for row in state["band"] if row[0] >= first]
    last, (own, broken) = state["band"][-1], state["ways"]
    assert read(figure)[last[0]] == (
        f"After {last[0]} seeds: {own['name']} {own['distance']:.3f} · broken verifier "
        f"{broken['distance']:.3f} · exact samplers: median {last[1]:.3f}, 99 of 100 below {last[2]:.3f}."
    ).replace(" 0.", " .")
    assert "50 of 50 seeds" in caption(figure) and losslessness.way_text(own, 2) in caption(figure)


def test_what_is_known_of_a_way():
    way = {"name": "Any", "distance": 0.05, "edge": 0.1, "inside": True, "beyond": 0.4}
    assert losslessness.way_text(way, 1) == (
        "✓ 1 Any: within sampling noise (distance .050, limit .100; "
        "40 of 100 exact samplers are this far off)."
    )
    way |= {"inside": False, "beyond": 0.0}
    assert losslessness.way_text(way) == (
        "✕ Any: outside: this is not the target's distribution (distance .050, limit .100; no exact "
        "sampler was this far off)."
    )


def test_tokens_over_time():
    answer = analyses()["machine"]
    figure = other_machine.tokens_by_time(answer, {1: "Greedy"})
    for lane in answer["lanes"]:
        line = lanes(figure)[lane["lane"]]
        assert list(line.x) == pytest.approx([seconds for seconds, _ in lane["race"]])
        assert list(line.y) == [tokens for _, tokens in lane["race"]]
    assert lanes(figure)[1].name == "1 Greedy"
    assert caption(figure).startswith(answer["sentence"])
    short = {
        "sentence": "So.",
        "lanes": [
            {
                "lane": 1,
                "tokens": 2,
                "seconds": 0.002,
                "joules": 0.01,
                "waited": 0.5,
                "plain": {"seconds": 0.004, "joules": 0.005},
                "race": [[0.0, 0], [0.001, 1], [0.002, 2]],
            },
        ],
    }
    figure = other_machine.tokens_by_time(short)
    assert read(figure) == {
        0.0: "At 0 ms: lane 1 0 tokens.",
        1.0: "At 1 ms: lane 1 1 token.",
        2.0: "At 2 ms: lane 1 2 tokens.",
    }
    assert caption(figure) == (
        "So. Lane 1: 1 ms and 5 mJ per token; 2 × as fast as plain decoding, 2 × the energy; 50% of "
        "the time it waits for memory."
    )
    speed, energy = other_machine.against_plain(short).data
    assert (list(speed.x), list(energy.x)) == ([2.0], [2.0]) and list(speed.y) == ["1"]


def test_the_roofline_bends_where_memory_and_arithmetic_take_the_same_time():
    figure = other_machine.roofline(DEVICE, {"target": TARGET, "draft": DRAFT})
    for name, size in (("target", TARGET), ("draft", DRAFT)):
        line = next(one for one in figure.data if one.name == name)
        assert list(line.y) == [1e3 * forward_work(DEVICE, size, tokens, 0).seconds for tokens in line.x]
        bend = next(one for one in figure.data if one.name == f"{name}: bend")
        assert bend.x[0] == pytest.approx(ridge(DEVICE, size)) and bend.x[0] in line.x
        assert bend.y[0] == pytest.approx(line.y[0]), "flat up to there"
    assert read(figure)[1].startswith("A forward of 1 token: target ")
    with pytest.raises(ValueError, match="memory takes a number above 0"):
        other_machine.roofline(Device(0, 1, 1, 1, 1), {"target": Size(1, 2, 1)})
    with pytest.raises(ValueError, match="Name at least one model"):
        other_machine.roofline(DEVICE, {})


def test_loss_curves():
    figure = losses.losses("llama-toy", LOSSES)
    drawn = {one.name: one for one in figure.data}
    assert list(drawn["held out"].y) == LOSSES["held_out_loss"] and drawn["held out"].line.dash == "solid"
    assert list(drawn["training"].y) == LOSSES["training_loss"] and drawn["training"].line.dash == "dash"
    assert read(figure)[1.0] == "After 1 million tokens: held out 3.75, training 4.00."
    assert caption(figure) == "After 1.5 million tokens: held out 3.25, training 3.50."


def test_the_losses_of_shipped_models_are_drawn():
    with (MODELS / "llama-tiny-heads" / "loss.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [float(row[name]) for row in rows] for name in rows[0]}
    drawn = {one.name: one for one in losses.losses("llama-tiny-heads", columns).data}
    assert list(drawn["eagle held out"].y) == columns["eagle_held_out_loss"]
    assert len({(one.line.dash, one.marker.symbol) for name, one in drawn.items() if name}) == 6
