"""The section Compare: it shows the run on screen and no other, and says what to do where there is none."""

import asyncio
import json

import gradio as gr
import pytest

from explorer.page.compare import compare_lanes
from explorer.page.tabs import compare
from explorer.page.tabs.on_screen import component
from explorer.runs.scheduler import GONE
from explorer.runs.validation import check
from visualizers.analysis.comparison import CHARGES

ME, STRANGER = "me" * 12, "you" * 8


@pytest.fixture(scope="module")
def run(runs):
    lanes = [
        {"strategy": "greedy"},
        {"strategy": "sample", "parameters": {"temperature": 3.0}},
        {"strategy": "speculative"},
    ]
    made = runs.start(check({"prompt": "Once", "max_new_tokens": 12, "lanes": lanes}), ME)
    every = [{"view": "text", "ops": 2**31, "rows": 2**31} for _ in lanes]
    while made.state == "running":
        asyncio.run(runs.pull(made.id, every, 2.0, "running"))
    return made


@pytest.fixture(scope="module")
def draw(runs):
    """What the section does when something has changed: inputs -> what it shows, by the component's kind."""
    with gr.Blocks() as demo:
        compare.build(component("compare"), gr.HTML("light"), runs)
    event = next(one for one in demo.fns.values() if one.name == "show_comparison")

    def drawn(value: str, look="light", charge="forwards", likelihood="mean", before=None) -> dict:
        updates = event.fn(value, look, charge, likelihood, before)
        named = {"explorer-compared": "texts", "explorer-costs": "table"}
        found = {named.get(one.elem_id, type(one).__name__): given for one, given in updates.items()}
        return found | {"figures": [given for one, given in updates.items() if isinstance(one, gr.Plot)]}

    return drawn


def value_of(run, shown: int = 99, lanes=(0, 1, 2), session: str = ME) -> str:
    said = [{"lane": lane, "number": n, "shown": shown} for n, lane in enumerate(lanes, 1)]
    return json.dumps({"session": session, "run": run.id, "state": "done", "lanes": said})


def test_it_shows_the_texts_the_charts_and_the_costs_of_the_lanes_on_screen(draw, run):
    made = draw(value_of(run))
    found = compare_lanes(run, [(0, 1, 99), (1, 2, 99), (2, 3, 99)])
    assert f'data-run="{run.id}"' in made["texts"] and made["texts"].count("<section") == 3
    assert made["Column"].visible and len(made["figures"]) == 7
    assert [row[0] for row in made["table"]["data"]] == ["1 Greedy", "2 Sampling", "3 Speculative decoding"]
    captions = [figure.layout.meta["caption"] for figure in made["figures"]]
    assert captions[0].startswith("Tokens reached by target forwards") and "lane 1 has 12" in captions[0]
    assert str(found["lanes"][1]["parting"]["position"]) in captions[2]
    dark = draw(value_of(run), look="dark")["figures"][0]
    assert (
        dark.layout.template.layout.paper_bgcolor != made["figures"][0].layout.template.layout.paper_bgcolor
    )


def test_it_follows_the_slider_the_lanes_and_the_choices(draw, run):
    table = draw(value_of(run, 3))["table"]
    steps = table["headers"].index("steps")
    assert [row[steps] for row in table["data"]] == [3, 3, 3]
    assert table["headers"][1] == "tokens / target forward"
    assert len(draw(value_of(run, 3, lanes=(0, 1)))["figures"]) == 4, "neither lane drafts"
    for charge, words in CHARGES.items():
        tokens, likely, *_ = draw(value_of(run), charge=charge)["figures"]
        assert tokens.layout.xaxis.title.text == words and likely.layout.xaxis.title.text.startswith(words)
    total = draw(value_of(run), likelihood="total")["figures"][1]
    assert total.layout.meta["caption"].startswith("Σ log p")


def test_nothing_is_drawn_again_where_nothing_has_changed(draw, run):
    first = draw(value_of(run))
    again = draw(value_of(run).replace('"done"', '"stopped"'), before=first["State"])
    assert again == {"State": first["State"], "figures": []}
    assert draw(value_of(run, 5), before=first["State"])["figures"]


def test_without_a_run_of_these_settings_it_shows_no_numbers_and_says_what_to_do(draw, run):
    for value in ("", value_of(run, lanes=())):
        made = draw(value, before=("of another run",))
        assert compare.NO_RUN in made["texts"] and 'data-run=""' in made["texts"]
        assert not made["Column"].visible and made["State"] is None and made["figures"] == []


@pytest.mark.parametrize("odd", ["nonsense", "[]", '{"session": 3}', "\ud800", "<script>"])
def test_nonsense_and_another_sessions_run_are_a_sentence(draw, run, odd):
    made = draw(value_of(run, session=STRANGER))
    assert GONE in made["texts"] and not made["Column"].visible
    made = draw(odd)
    assert made["texts"].endswith(".</p></div>") and "<script>" not in made["texts"]
    assert not made["Column"].visible and made["figures"] == []


def test_every_column_of_the_costs_is_explained():
    from visualizers.analysis.cost_summary import COLUMNS

    lines = list(map(compare.definition, COLUMNS))
    assert r"**draft\_acceptance\_rate** (derived)" in "\n".join(lines) and len(lines) == len(COLUMNS)
