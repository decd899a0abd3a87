"""A stop's card: its answer shows nothing before it is taken out, and what tokens hold is text."""

from explorer.lessons.stop_cards import stop_card
from tests.explorer.test_markup import HOSTILE, Reader

FILLED = {
    **{
        "holds": True,
        "lane": 2,
        "nodes": {2: [7, 9]},
        "text": HOSTILE,
        "question": "Why?",
        "answer": HOSTILE,
    },
    "choices": [{"text": HOSTILE, "right": False}, {"text": "b", "right": True}],
}


def test_a_card_asks_and_keeps_its_answer_in_a_template():
    html = stop_card(HOSTILE, FILLED)
    read = Reader(html)
    tags = [tag for tag, _ in read.elements]
    assert "img" not in tags and tags[tags.index("template") + 1 :][:2] == ["p", "b"]
    assert read.of("data-answer") == ["0", "1"] and read.of("data-inspect") == ["7"]
    right = [attributes["data-answer"] for _, attributes in read.elements if "data-right" in attributes]
    assert right == ["1"] and "Inspect the first token" in read.text


def test_a_question_without_choices_has_one_button_and_a_stop_that_is_not_so_has_none():
    one = Reader(stop_card("t", FILLED | {"choices": [], "nodes": {2: [7]}}))
    assert one.of("class").count("think") == 1 and "Inspect this token" in one.text
    lost = Reader(stop_card("t", FILLED | {"holds": False, "nodes": {}, "question": None, "answer": None}))
    assert [tag for tag, _ in lost.elements] == ["div", "h3", "p"] and lost.of("class") == ["card", "not-so"]
