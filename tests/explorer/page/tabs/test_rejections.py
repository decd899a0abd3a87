"""The table of rejected tokens: what the filter keeps, its groups, and where a click on a row leads."""

import json

import gradio as gr

from explorer.page.tabs.rejections import COLUMNS, cells, filtered
from visualizers.analysis.drafted_tokens import drafted_tokens

ROWS = [
    {"context": "Once upon", "token": "␣a", "class": "word", "instead": "␣the", "cause": "near tie"},
    {
        "context": "The dog",
        "token": "␣ran",
        "class": "word",
        "instead": None,
        "cause": "draft overconfident",
    },
]
ALL = [(0, 1, 99), (1, 2, 99)]


def picked(row: list) -> gr.SelectData:
    """What a click on the first cell of a row says."""
    return gr.SelectData(None, {"index": [0, 0], "value": row[0], "row_value": row})


def test_the_filter_keeps_rows_that_hold_every_word():
    assert filtered(ROWS, "") == ROWS
    assert filtered(ROWS, "DOG over") == ROWS[1:]
    assert filtered(ROWS, "tie dog") == []
    assert filtered(ROWS, "␣the") == ROWS[:1]


def test_in_quotes_the_filter_keeps_the_tokens_of_one_group():
    assert filtered(ROWS, '"near tie"') == ROWS[:1] and filtered(ROWS, '"word"') == ROWS
    assert filtered(ROWS, ' "␣ran" ') == ROWS[1:]
    assert filtered(ROWS, '"near"') == filtered(ROWS, '"␣the"') == []  # no whole token, kind or cause
    odd = [ROWS[0] | {"token": '"'}]
    assert filtered(odd, '"""') == odd and filtered(ROWS, '""') == []


def test_the_groups_are_by_cause_by_token_or_by_kind_and_a_click_keeps_one(events, run, told):
    rows = drafted_tokens(run.records[1].trace)
    rejected = [row for row in rows if row["fate"] == "rejected"]
    assert rejected
    for by in ("cause", "token", "class"):
        answer = list(events["show_rejections"](told(ALL), None, by, "").values())
        groups, table = answer[2], answer[3]
        assert sum(group[1] for group in groups) == len(rejected) == len(table)
        for name, many, of, *_ in groups:
            own = [row for row in rows if row[by] == name]
            tested = [row for row in own if row["fate"] in ("accepted", "rejected")]
            assert many == sum(row["fate"] == "rejected" for row in own)
            every = f"{len(rejected)} rejections" if by == "cause" else f"{len(tested)} tested"
            assert of == f"{many} of {every}"
        words = events["keep_group"](picked(groups[0]))
        kept = list(events["show_rejections"](told(ALL), None, by, words).values())[3]
        assert len(kept) == groups[0][1] and words == f'"{groups[0][0]}"'


def test_a_click_on_a_row_leads_to_its_token_in_its_lane(events, run, told):
    trace = run.records[1].trace
    for row in drafted_tokens(trace):
        if row["fate"] == "rejected":
            place = json.loads(events["open_token"](told(ALL), None, picked(cells(row))))
            assert place == {"lane": 2, "step": row["step"], "node": row["node"]}
            assert trace.nodes()[row["node"]][1] == row["token_id"]
            shown = told([(1, 2, row["step"] - 1)])  # the slider has not come to it
            assert events["open_token"](shown, None, picked(cells(row))) == ""
    for odd in ([1], ["x"] * len(COLUMNS), [None] * 50):
        assert events["open_token"](told(ALL), None, picked(odd)) == ""
    for value in ("", "nonsense"):
        assert events["open_token"](value, 9, picked([1])) == ""
