"""What holds of every chart: both looks, a caption, no colour but the palette's, no markup of others."""

import json
import re

import pytest

from tests.visualizers.figures.charts_of import LOSSES, OF_PLACES, OF_ROUNDS, analyses, charts, read, traces
from visualizers.analysis.comparison import compare
from visualizers.analysis.speculation_report import microscope as looked_at
from visualizers.figures import (
    calibration,
    caption,
    compared_acceptance,
    comparison,
    costs,
    draft_positions,
    first_differences,
    losses,
    losslessness,
    microscope,
    other_machine,
    what_if,
)
from visualizers.figures.charts import HEIGHT, LINE, REST, hover, number, significant
from visualizers.figures.theme import PALETTE, theme

COLOUR = re.compile(r"#[0-9A-Fa-f]{6}\b")


def colours_of(look: str) -> set[str]:
    """Every colour that the palette has for a look."""
    known, palette = theme(look), json.loads(PALETTE.read_text("utf-8"))
    states = {one[name] for one in known.state.values() for name in ("color", "tint")}
    return states | {*known.surface.values(), *known.amounts, *known.ranks, palette["link"][look]}


@pytest.mark.parametrize("look", ["light", "dark"])
def test_every_chart_is_drawn_in_both_looks_with_the_palette_s_colours_alone(look):
    known = colours_of(look)
    for name, figure in charts(look).items():
        assert figure.layout.template.layout.paper_bgcolor == theme(look).surface["bg"], name
        used = set(COLOUR.findall(json.dumps(json.loads(figure.to_json())["data"])))
        assert used <= known, name
        assert used, name


def test_both_looks_show_the_same_numbers():
    light, dark = charts("light"), charts("dark")
    for name in light:
        for one, other in zip(light[name].data, dark[name].data, strict=True):
            assert (one.x, one.y, one.hovertext) == (other.x, other.y, other.hovertext), name


def test_every_chart_has_a_caption_and_fits_a_phone():
    for name, figure in charts("light").items():
        said = caption(figure)
        assert said.rstrip().endswith(".") and len(said) > 20, name
        assert "<" not in said.replace("< .0001", ""), name
        assert figure.layout.width is None and figure.layout.height >= HEIGHT, name
        lines = figure.layout.title.subtitle.text.split("<br>")
        cards = [text for one in figure.data for text in cards_of(one)]
        assert max(map(len, lines)) <= REST, name
        assert cards and all(len(line) <= LINE + 8 for text in cards for line in text.split("<br>")), name


def test_titles_begin_alike():
    titles = {name: figure.layout.title.text.removeprefix("<b>") for name, figure in charts("light").items()}
    for name, title in titles.items():
        assert title[0].isupper() or name == "losses", (name, title)  # which is the name of a model


def cards_of(trace) -> list[str]:
    """The hover cards of a trace, of a heat map's cells too."""
    texts = [] if trace.hovertext is None else list(trace.hovertext)
    return [text for row in texts for text in (row if isinstance(row, list | tuple) else [row])]


def test_lanes_are_told_apart_without_colour():
    for name in ("tokens_reached by forwards", "machine", "proof"):
        lines = [one for one in charts("light")[name].data if one.meta and "lane" in one.meta]
        looks = {(one.line.dash, one.marker.symbol) for one in lines}
        assert len(looks) == len(lines) > 1, name
        assert {one.line.color for one in lines} == {theme("light").surface["text"]}


def test_no_chart_can_be_sent_away():
    assert "sendChartToCloud" in charts("light")["proof"].layout.template.layout.modebar.remove


def test_an_unknown_look_is_refused_in_a_sentence():
    for make in (
        lambda: comparison.tokens_reached(analyses()["comparison"], look="grey"),
        lambda: microscope.round_by_round(looked_at(traces()["greedy"]), "grey"),
        lambda: losses.losses("toy", LOSSES, "grey"),
    ):
        with pytest.raises(ValueError, match="no theme 'grey'; choose one of light, dark"):
            make()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_where_there_is_nothing_the_chart_says_so(look):
    none, nowhere = compare([]), looked_at(traces()["greedy"])
    unknown = {"known": 0, "sentence": "Nothing to recompute."}
    begun = {**analyses()["proof"], "ways": [{"name": "Any", "curve": []}], "done": 3}
    said = {
        "No lane has a token yet.": [
            comparison.tokens_reached(none, look=look),
            comparison.total_log_probability(none, look=look),
            comparison.entropies(none, look),
            comparison.log_probabilities(none, look),
        ],
        "No token is final in every lane yet.": [comparison.mean_log_probability(none, look=look)],
        "No lane has drafted anything.": [
            compared_acceptance.acceptance_by_depth(none, look),
            compared_acceptance.acceptance_by_class(none, look),
        ],
        none["sentence"]: [first_differences.shared_beginnings(none, look)],
        "No lane has a number of seconds.": [costs.cost(none, "seconds", look)],
        "This lane has drafted nothing so far.": [
            *(getattr(microscope, name)(nowhere, look) for name in OF_ROUNDS),
            *(getattr(draft_positions, name)(nowhere, look) for name in OF_PLACES),
            calibration.tokens_per_round(nowhere, look),
            calibration.reliability(nowhere, look),
        ],
        "Nothing to recompute.": [what_if.tokens_per_round(unknown, 1, look), what_if.speed(unknown, look)],
        "3 of 50 seeds are counted.": [losslessness.distance_to_target(begun, 1, look)],
        "There is no lane yet.": [
            other_machine.tokens_by_time({"sentence": "", "lanes": []}, look=look),
            other_machine.against_plain({"sentence": "", "lanes": []}, look),
        ],
        "No losses of toy are known.": [losses.losses("toy", {}, look)],
    }
    for sentence, figures in said.items():
        for figure in figures:
            assert caption(figure) == sentence
            assert figure.layout.annotations[0].text.replace("<br>", " ") == sentence
            assert not figure.data
            assert figure.layout.template.layout.paper_bgcolor == theme(look).surface["bg"]


def test_words_of_a_model_are_no_markup():
    found = compare([traces()["speculative"]])
    lane = found["lanes"][0]
    lane["label"], lane["tokens"] = "<i>x</i>", ["<img src=x>"] * len(lane["tokens"])
    figure = comparison.entropies(found)
    assert "&lt;img src=x&gt;" in read(figure)[1]
    assert "<img" not in figure.to_json().replace("\\u003c", "<")
    assert "&lt;i&gt;" in comparison.tokens_reached(found).data[0].name


def test_numbers_in_words():
    assert [number(value, 2) for value in (None, -1.5, 0.25)] == ["—", "−1.50", "0.25"]
    assert [significant(value) for value in (0.12345, 12.345, 1234.5)] == ["0.123", "12.3", "1,234"]
    assert max(map(len, hover("word " * 40).split("<br>"))) <= LINE
