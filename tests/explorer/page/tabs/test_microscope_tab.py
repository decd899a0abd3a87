"""The tab Microscope without a browser: what its events answer with a run, without one, and to nonsense."""

import json

import gradio as gr
import pytest

from explorer.page.tabs import microscope as tab
from explorer.page.tabs import other_machine, what_if
from explorer.page.tabs.metrics import value_text
from explorer.page.tabs.on_screen import NO_RUN, READING
from explorer.runs.scheduler import GONE
from visualizers.analysis import speculation_report
from visualizers.analysis.drafted_tokens import drafted_tokens
from visualizers.analysis.rejection_causes import CAUSES
from visualizers.analysis.roofline import DEVICES, DRAFT, TARGET
from visualizers.figures import caption
from visualizers.figures.theme import theme
from visualizers.figures.what_if import shape, span

STRANGER = "you" * 8
ALL = [(0, 1, 99), (1, 2, 99)]
NUMBERS = [3000, 900, 20, 40, 0.7, 8, 2, 131, 0.5, 2, 12]  # of the first device, target and draft


def answer(updates: dict) -> dict:
    """What a person sees of an event's answer: figures by their captions, tables, words, what is hidden."""
    seen = {"figures": {}, "words": [], "tables": [], "shown": [], "states": []}
    for component, value in updates.items():
        if isinstance(component, gr.Plot):
            seen["figures"][value.layout.title.text] = value
        elif isinstance(component, gr.Markdown):
            seen["words"].append(value)
        elif isinstance(component, gr.Dataframe):
            seen["tables"].append(value)
        elif isinstance(component, gr.State):
            seen["states"].append(value)
        elif isinstance(component, gr.Radio):
            seen["radio"] = value
        else:
            seen["shown"].append(value.visible)
    return seen


def test_a_lane_that_drafts_is_shown_whatever_is_asked_for(events, run, value_of):
    report = speculation_report.microscope(run.records[1].trace)
    for wanted in (None, 0, 1, 3):
        seen = answer(events["show_lane"](value_of(ALL), "light", wanted, None))
        assert seen["radio"].value == 1 and seen["radio"].visible is False  # no choice: one lane drafts
        assert len(seen["figures"]) == len(tab.FIRST) and seen["shown"] == [True]
        others = answer(events["show_others"]("light", seen["states"][-1]))
        assert others["states"] == [None]  # it is not kept
        assert list(events["show_others"]("light", None).values()) == [None]
        seen["figures"] |= others["figures"]
        seen["words"] += others["words"]
        assert len(seen["figures"]) == sum(map(len, tab.ROWS))
        assert f"**{tab.escaped(report['sentence'])}**" in seen["words"]
        for figure in seen["figures"].values():
            assert tab.escaped(caption(figure)) in seen["words"]
        names = [row[0] for row in seen["tables"][0]]
        assert names == [one["name"] for one in report["metrics"]]


def test_every_rejection_is_counted_with_its_cause_wherever_the_slider_stands(events, run, value_of):
    drafted = drafted_tokens(run.records[1].trace)
    rejected = [row for row in drafted if row["fate"] == "rejected"]
    for shown in (99, 2):
        made = events["show_rejections"](value_of([(1, 2, shown)]), 1, "cause", "", "position", None)
        says, _, causes, *_ = made.values()
        assert sum(row[1] for row in causes) == len(rejected) and {row[0] for row in causes} <= set(CAUSES)
        assert f"{len(rejected)} of {len(drafted)} " in says
    for value in ("", value_of(ALL, {"session": STRANGER}), value_of([(0, 1, 99)])):
        says, body, listed = events["show_rejections"](value, None, "cause", "", "position", None).values()
        assert says == "" and body.visible is False and listed == []


def test_what_is_shown_follows_the_slider_and_the_theme_and_stays_while_nothing_changes(
    events, run, value_of
):
    first = events["show_lane"](value_of(ALL), "light", None, None)
    key = answer(first)["states"][0]
    for value in (
        value_of(ALL, {"state": "stopped"}),
        value_of([(0, 1, 2), (1, 2, 99)]),
    ):  # another lane's slider
        same = events["show_lane"](value, "light", None, key)
        assert answer(same)["states"] == [key] and len(same) == 1
    early = answer(events["show_lane"](value_of([(1, 2, 1)]), "light", None, key))
    report = speculation_report.microscope(run.records[1].trace, 1)
    assert f"**{tab.escaped(report['sentence'])}**" in early["words"]
    dark = answer(events["show_lane"](value_of(ALL), "dark", None, key))
    grounds = {one.layout.template.layout.paper_bgcolor for one in dark["figures"].values()}
    assert grounds == {theme("dark").surface["bg"]}
    none = answer(events["show_lane"](value_of([(1, 2, 0)]), "light", None, key))
    assert none["shown"] == [False] and "**This lane has drafted nothing so far.**" in none["words"]


@pytest.mark.parametrize("name", ["show_lane", "show_shapes", "show_machine"])
def test_a_stranger_and_nonsense_are_told_so_in_a_sentence(events, value_of, name):
    rest = {"show_lane": [None, None], "show_shapes": [None, "1", 0], "show_machine": [False, *NUMBERS]}[name]
    for value, sentence in (
        (value_of(ALL, {"session": STRANGER}), GONE),
        (value_of(ALL, {"run": "other"}), GONE),
        ("nonsense", "The body is not JSON"),
        (value_of([(9, 1, 1)]), "There is no lane 10"),
        (json.dumps({"run": 3}), "session is missing"),
    ):
        seen = answer(events[name](value, "light", *rest))
        assert not seen["figures"] and not any(seen["shown"])
        assert len(seen["words"]) == 1 and sentence in seen["words"][0].replace("\\", "")


def test_without_a_lane_that_drafts_it_says_what_to_do(events, value_of):
    for value in (NO_RUN, value_of([]), value_of([(0, 1, 99)])):
        seen = answer(events["show_lane"](value, "light", 1, None))
        assert seen["words"] == [tab.NONE] and seen["shown"] == [False] and not seen["figures"]
        assert answer(events["show_shapes"](value, "light", 1, "1", 0))["shown"] == [False]
    assert "Choose a speculative strategy in Decode" in tab.NONE and tab.NONE.endswith("press Run.")
    seen = answer(events["show_machine"](NO_RUN, "light", False, *NUMBERS))
    assert seen["words"] == [other_machine.NONE]
    assert answer(events["show_lane"]("", "light", 1, None))["words"] == [READING]
    assert answer(events["show_machine"]("", "light", False, *NUMBERS))["words"] == [READING]


def test_metrics_are_counts_shares_and_lists():
    assert (
        value_text(41) == "41"
        and value_text(1234567) == "1234567"
        and value_text(0.70731) == ".707"
        and value_text(3.63636) == "3.636"
    )
    assert value_text(1.0) == "1" and value_text([0.909, 1.0]) == ".909  1"


# ---- other shapes ------------------------------------------------------------------------------------


def test_other_shapes_are_those_that_are_typed(events, run, value_of):
    found = what_if.what_if(run.records[1].trace, 99, [2, 1], 0.1)
    seen = answer(events["show_shapes"](value_of(ALL), "light", None, "2, 1", 0.1))
    assert len(seen["figures"]) == 2 and seen["shown"] == [True]
    table = {row[0]: row for row in seen["tables"][0]}
    assert table["this lane, measured"][1] == f"{found['run']['tokens']:.2f}"
    assert table["2 1"][1] == span(found["own"]["tokens"], 2)
    assert table["2 1"][3] == str(found["own"]["size"])
    longer = found | {"run": found["run"] | {"deepest": 5}}  # 5 is none of the lengths that are always listed
    names = [name for name, *_ in what_if.cells(longer)]
    assert sum(name.startswith("chain of 5 (as in this lane)") for name in names) == 1
    assert found["run"]["deepest"] == max(row["depth"] for row in drafted_tokens(run.records[1].trace))
    for widths in ("", "two", "3 x", "1 " * 500, "²", None):
        said = answer(events["show_shapes"](value_of(ALL), "light", None, widths, 0))
        assert "Write one to 32 whole numbers" in said["words"][0] and said["shown"] == [False]
    for below in (None, 2.0, -1.0):
        said = answer(events["show_shapes"](value_of(ALL), "light", None, "1", below))
        assert "Stop below takes a probability from 0 to 1" in said["words"][0]
    assert what_if.levels("3 2,1") == [3, 2, 1]


def test_a_chain_is_called_fastest_only_where_no_other_can_be_as_fast(events, run, value_of):
    found = what_if.what_if(run.records[1].trace, 99, [2, 1], 0.1)
    chains = [row | {"speedup": [1.0, 1.5]} for row in found["chains"]]
    chains[2] |= {"speedup": [1.4, 1.4]}
    overlap = found | {"chains": chains, "exact": True}
    assert not any("fastest" in name for name, *_ in what_if.cells(overlap))
    chains[2] |= {"speedup": [1.6, 2.0]}
    sure = [row for row in what_if.cells(overlap) if row[0].endswith("(fastest)")]
    assert [(row[0].split(" (")[0], row[4]) for row in sure] == [
        (shape([1, 1, 1]), "1.60 to 2.00 × plain decoding")
    ]
    guessed = [name for name, *_ in what_if.cells(overlap | {"exact": False})]
    assert sum(name.endswith("(fastest by this estimate)") for name in guessed) == 1


# ---- another machine ---------------------------------------------------------------------------------


def test_the_figures_of_a_machine_are_those_that_are_typed(events, value_of):
    device, target, draft = other_machine.parse_fields(NUMBERS, True)
    assert (target, draft) == (TARGET, DRAFT) and device.apart
    assert device.bandwidth == DEVICES["data-centre GPU"].bandwidth
    seen = answer(events["show_machine"](value_of(ALL), "light", False, *NUMBERS))
    assert len(seen["figures"]) == 3 and seen["shown"] == [True]
    assert [row[0] for row in seen["tables"][0]] == ["1 Greedy", "2 Speculative decoding"]
    assert all(len(row) == len(other_machine.HEADERS) for row in seen["tables"][0])
    assert seen["tables"][0][0][2] == "1"  # greedy is plain decoding
    empty = answer(events["show_machine"](value_of([(0, 1, 0)]), "light", False, *NUMBERS))
    assert empty["tables"] == [[["1 Greedy", *[other_machine.DASH] * 5]]]


@pytest.mark.parametrize(
    "at,value,sentence",
    [
        (0, None, "memory takes a number above 0, in GB/s."),
        (1, 0, "arithmetic takes a number above 0, in TFLOP/s."),
        (2, -1, "fixed cost of a forward takes a number of 0 or more, in µs."),
        (5, 1e30, "parameters takes a number from 1e-09 to 1e+09, in billion."),
    ],
)
def test_a_figure_that_no_machine_has_is_told(events, value_of, at, value, sentence):
    numbers = [*NUMBERS[:at], value, *NUMBERS[at + 1 :]]
    seen = answer(events["show_machine"](value_of(ALL), "light", False, *numbers))
    assert seen["words"] == [other_machine.escaped(sentence)] and seen["shown"] == [False]


def test_a_class_of_machine_fills_its_figures(events):
    for name, device in DEVICES.items():
        made = events["begin_with"](name)
        assert made == [getattr(device, figure) for figure in other_machine.FIGURES]
