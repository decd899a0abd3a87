"""The table of rejected tokens: what the filter keeps, its groups, and where a click on a row leads."""

import json

import gradio as gr

from explorer.page.tabs.rejections import HERE, LATER, filtered, in_order, table_of, walked
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


def picked(row: int, first: object = "") -> gr.SelectData:
    """What a click on the first cell of a row says."""
    return gr.SelectData(None, {"index": [row, 0], "value": first, "row_value": [first]})


def shown(events, value_of, **given) -> dict:
    """What the section shows, by the name of its parts."""
    asked = {
        "on": value_of(ALL),
        "lane": None,
        "by": "cause",
        "words": "",
        "sort": "position",
        "node": None,
    } | given
    answer = events["show_rejections"](*asked.values())
    names = ("says", "body", "groups", "listed", "table", "card")
    return dict(zip(names, answer.values(), strict=True))


def rejections(run) -> list[dict]:
    return [row for row in drafted_tokens(run.records[1].trace) if row["fate"] == "rejected"]


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


def test_the_groups_are_by_cause_by_token_or_by_kind_and_a_click_keeps_one(events, run, value_of):
    rows, rejected = drafted_tokens(run.records[1].trace), rejections(run)
    assert rejected
    for by in ("cause", "token", "class"):
        made = shown(events, value_of, by=by)
        assert sum(group[1] for group in made["groups"]) == len(rejected) == len(made["listed"])
        for name, many, of, *_ in made["groups"]:
            own = [row for row in rows if row[by] == name]
            tested = [row for row in own if row["fate"] in ("accepted", "rejected")]
            assert many == sum(row["fate"] == "rejected" for row in own)
            every = f"{len(rejected)} rejections" if by == "cause" else f"{len(tested)} tested"
            assert of == f"{many} of {every}"
        words = events["keep_group"](picked(0, made["groups"][0][0]))
        kept = shown(events, value_of, by=by, words=words)
        assert len(kept["listed"]) == made["groups"][0][1] and words == f'"{made["groups"][0][0]}"'
        assert kept["table"].label == f"{len(kept['listed'])} of {len(rejected)} rejected tokens" or (
            len(kept["listed"]) == len(rejected)
        )


def test_the_table_is_of_the_whole_run_and_the_step_only_dims_what_comes_later(events, run, value_of):
    rejected = rejections(run)
    middle = rejected[len(rejected) // 2]["step"]
    made = shown(events, value_of, on=value_of([(1, 2, middle)]))
    table = made["table"].value
    assert made["listed"] == [row["node"] for row in rejected]
    dim = [LATER in style[0] for style in table["metadata"]["styling"]]
    assert dim == [row["step"] > middle for row in rejected] and any(dim)
    assert made["table"].label == f"{len(rejected)} rejected tokens"


def test_the_cause_follows_what_stands_instead_and_empty_columns_are_left_out(run):
    rejected = rejections(run)
    names = table_of(rejected, rejected, 99, None).value["headers"]
    assert names[:5] == ["Position", "Text before", "Token", "Instead", "Cause"] and "u" in names
    greedy = [row | {"u": None, "acceptance": None} for row in rejected]
    assert names == [*table_of(greedy, greedy, 99, None).value["headers"][:7], *names[7:]]
    assert not {"u", "min(1, p / q)"} & set(table_of(greedy, greedy, 99, None).value["headers"])


def test_rows_are_sorted_and_unknown_numbers_come_last():
    rows = [{"p": p, "q": q} for p, q in ((0.1, 0.2), (0.1, None), (0.1, 0.9))]
    assert (
        [row["q"] for row in in_order(rows, "q")]
        == [0.9, 0.2, None]
        == [row["q"] for row in in_order(rows, "excess")]
    )
    assert in_order(rows, "position") == rows


def test_a_click_opens_a_row_the_arrows_walk_on_and_its_round_can_be_opened(events, run, value_of):
    rejected, made = rejections(run), shown(events, value_of)
    assert f"step {rejected[0]['step']}" in made["card"]  # the first is open
    node, html = events["pick_row"](value_of(ALL), None, made["listed"], picked(1)).values()
    assert node == rejected[1]["node"]
    assert f"step {rejected[1]['step']}" in html and rejected[1]["token"] in html
    assert "<button" not in html  # nothing that does nothing
    place = json.loads(events["open_row"](value_of(ALL), None, made["listed"], node))
    assert place == {"lane": 2, "step": rejected[1]["step"], "node": node}
    kept = shown(events, value_of, node=node)
    styles = [HERE in style[0] for style in kept["table"].value["metadata"]["styling"]]
    assert node in kept["listed"] and styles.index(True) == 1 and sum(styles) == 1
    assert walked([1, 2, 3], 2, 1) == 3 == walked([1, 2, 3], 3, 1)
    assert walked([1, 2, 3], 2, -1) == 1 == walked([1, 2, 3], 1, -1)
    assert walked([], 2, 1) is None and walked([4, 5], None, 0) == 4 and walked([4, 5], None, 1) == 5


def test_nonsense_opens_nothing(events, value_of):
    for odd in (picked(99), picked(-5)):
        events["pick_row"](value_of(ALL), None, [], odd)
        assert events["open_row"](value_of(ALL), None, [], None) == ""
    for value in ("", "nonsense"):
        assert events["open_row"](value, 9, [3], 3) == ""
