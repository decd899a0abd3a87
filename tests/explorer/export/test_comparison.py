"""A comparison as it is shown: whatever a model says is text, every chart is there with every choice."""

import html
import re

import pytest

from explorer.catalog import recorded_runs
from explorer.export import comparison, saved_comparison
from tests.helpers.scripted_lane import ScriptedLane
from visualizers.analysis.comparison import compare

HOSTILE = [b"</script><b>", b'" onclick="x', b"&lt;", b"a\n\nb"]


@pytest.fixture(scope="module")
def found() -> dict:
    return compare(recorded_runs.traces())


def scripted(tokens: list[bytes]):
    lane = ScriptedLane(tokens)
    while lane.advance():
        pass
    return lane.trace


def prose(made: str) -> list[str]:
    """The texts as a browser would copy them."""
    shown = re.findall(r'<div class="lane-text"[^>]*>(.*?)</div>', made, flags=re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]*>", "", one)) for one in shown]


def test_the_texts_are_those_of_the_lanes_with_the_differences_marked(found):
    made = comparison.texts(found)
    assert prose(made) == [trace.text() for trace in recorded_runs.traces()]
    assert any("\n" in one for one in prose(made)), "line breaks are kept"
    marked = re.findall(r'<mark class="parts" title="([^"]*)">([^<]*)</mark>', made)
    assert [(html.unescape(title), words) for title, words in marked] == [
        (lane["parting"]["words"], lane["text"][lane["parting"]["position"] - 1]) for lane in found["lanes"]
    ]
    differing = "".join(re.findall(r'<mark class="\w+"[^>]*>([^<]*)</mark>', made.split("<section")[1]))
    (other,) = (lane for lane in found["lanes"] if lane["relation"])
    assert html.unescape(differing) == "".join(
        words for words, differs in zip(other["text"], other["differs"], strict=True) if differs
    )
    assert made.count('aria-label="Copy the text of lane') == 2
    assert "Grey: text that lane 2 does not have." in made and other["relation"]["caption"][1:] in made


def test_words_of_a_model_are_never_markup_and_one_lane_is_compared_with_none():
    trace = scripted(HOSTILE)
    made = comparison.texts(compare([trace]))
    assert prose(made) == [trace.text()] and "<b>a" not in made and "Grey" not in made
    assert made.count("<mark") == 0 and 'onclick="x' not in made
    assert comparison.NO_TEXT in comparison.texts(compare([trace], [0]))


def test_a_saved_page_has_every_chart_in_both_looks_with_every_choice(found):
    whole = saved_comparison.comparison(found)
    for look in ("light", "dark"):
        assert set(whole["charts"][look]) == {
            *("entropies", "log_probabilities", "depth", "class"),
            *(f"tokens {charge}" for charge in found["charges"]),
            *(f"likelihood {c} {one}" for c in found["charges"] for one in comparison.LIKELIHOODS),
        }
        for figure in whole["charts"][look].values():
            assert figure["data"] and len(figure["layout"]["meta"]["caption"]) > 40
    named = {name.split()[0] for name in whole["charts"]["light"]}
    assert named <= {name for row in comparison.ROWS for name in row}
    columns = comparison.table(found)["headers"]
    assert len(whole["orders"]) == len(columns)
    assert all(f"Sort by {name}" in whole["html"] for name in columns)


def test_costs_are_ordered_by_a_column_with_what_is_missing_last():
    assert saved_comparison.orders((2.0, None, 1.0, 3.0)) == [[2, 0, 3, 1], [3, 0, 2, 1]]


def test_the_table_shows_few_digits_and_keeps_all(found):
    table = comparison.table(found)
    assert table["headers"][:2] == ["lane", "tokens / target forward"] and len(table["headers"]) == len(
        table["data"][0]
    )
    seconds = table["headers"].index("seconds")
    for shown, data in zip(table["metadata"]["display_value"], table["data"], strict=True):
        assert shown[seconds] == f"{data[seconds]:.3f}" and data[seconds] != round(data[seconds], 3)
        assert (shown[3] == "—") == (data[3] is None)
    histogram = table["headers"].index("acceptance_histogram")
    assert isinstance(table["data"][1][histogram], str)


def test_three_lanes_show_how_far_any_two_agree():
    traces = [*recorded_runs.traces(), recorded_runs.traces()[0]]
    assert "beginnings" in comparison.charts(compare(traces), "forwards", "mean", "light")
