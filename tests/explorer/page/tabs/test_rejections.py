"""The table of rejected tokens: what the filter keeps."""

from explorer.page.tabs.rejections import filtered

ROWS = [
    {"context": "Once upon", "token": "␣a", "instead": "␣the", "cause": "near tie"},
    {"context": "The dog", "token": "␣ran", "instead": None, "cause": "draft overconfident"},
]


def test_the_filter_keeps_rows_that_hold_every_word():
    assert filtered(ROWS, "") == ROWS
    assert filtered(ROWS, "DOG over") == ROWS[1:]
    assert filtered(ROWS, "tie dog") == []
    assert filtered(ROWS, "␣the") == ROWS[:1]
