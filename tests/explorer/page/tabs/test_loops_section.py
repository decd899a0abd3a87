"""Loops and thinking in the Microscope: what its events answer, with a loop and without one."""

import asyncio

import gradio as gr
import pytest

from decoders.logits.processor_order import AGAINST_LOOPS
from explorer.page.tabs import leave_loop, loops
from explorer.page.tabs.on_screen import NO_RUN, READING
from explorer.runs.validation import check
from tests.explorer.page.tabs.conftest import ME

VALUES = tuple(AGAINST_LOOPS.values())
REGEX = {"constraint": "regex", "constraint_text": "(abc)+", "min_new_tokens": 24}
LOOP = {"strategy": "greedy", "parameters": REGEX}


@pytest.fixture(scope="module")
def looping(runs):
    """The id of a run whose text is forced to loop."""
    made = runs.start(check({"prompt": "Once", "max_new_tokens": 24, "lanes": [LOOP]}), ME)
    while made.state == "running":
        asyncio.run(runs.pull(made.id, [{"view": "text", "ops": 2**31, "rows": 2**31}], 2.0, "running"))
    return made.id


def seen(updates: dict) -> dict:
    """Words, tables, figures and the visibility of columns of an event's answer."""
    found = {"words": [], "tables": [], "figures": [], "columns": [], "lane": None}
    for component, value in updates.items():
        match component:
            case gr.Markdown():
                found["words"].append(value)
            case gr.Dataframe():
                found["tables"].append(value.value["data"] if isinstance(value, gr.Dataframe) else value)
            case gr.Plot():
                found["figures"].append(value)
            case gr.Column():
                found["columns"].append(value.visible)
            case gr.Dropdown():
                found["lane"] = value
    return found


def test_any_lane_is_shown_and_the_first_that_drafts_at_first(events, value_of):
    value = value_of([(0, 1, 99), (1, 2, 99)])
    for wanted, index in ((None, 1), (0, 0), (1, 1)):
        made = seen(events["show_spans"](value, "light", wanted, None))
        assert made["lane"].value == index and made["lane"].visible
        assert made["tables"][0][-1][0] == "the whole text"


def test_nothing_is_drawn_again_while_nothing_changes(events, value_of):
    value = value_of([(0, 1, 99)])
    first = events["show_spans"](value, "light", None, None)
    moment = next(value for part, value in first.items() if isinstance(part, gr.State))
    assert list(events["show_spans"](value, "light", None, moment).values()) == [moment]


def test_without_a_run_it_says_what_to_do(events):
    for value, words in ((NO_RUN, loops.NONE), ("", READING)):
        assert seen(events["show_spans"](value, "light", None, None))["words"] == [words]


def test_a_text_without_a_loop_has_nothing_to_leave(events, value_of):
    made = seen(events["show_exits"](value_of([(0, 1, 2)]), "light", None, *VALUES))
    assert made["words"] == [leave_loop.escaped(leave_loop.NO_LOOP)] and made["columns"] == [False]


def test_each_processor_is_computed_along_the_loop(events, value_of, looping):
    value = value_of([(0, 1, 99)], {"run": looping})
    found = seen(events["show_spans"](value, "light", None, None))
    assert any("3 tokens are written 8 times" in words for words in found["words"])
    made = seen(events["show_exits"](value, "light", None, *VALUES))
    assert len(made["tables"][0]) == 1 + len(VALUES) and len(made["figures"]) == 2
    assert made["tables"][0][0][0] == "no processor"
    assert made["words"][0].startswith("**Sampling from the target itself leaves this loop with p ")


def test_a_value_that_no_processor_takes_is_refused_with_a_sentence(events, value_of, looping):
    value = value_of([(0, 1, 99)], {"run": looping})
    made = seen(events["show_exits"](value, "light", None, -1.0, *VALUES[1:]))
    assert "temperature" in made["words"][0] and made["columns"] == [False]
    made = seen(events["show_exits"](value, "light", None, *[None] * len(VALUES)))
    assert len(made["tables"][0]) == 1  # an empty field leaves its processor out
