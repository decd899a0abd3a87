"""A lesson on paper: what holds in the run is asked, its answers are apart, and tokens are text."""

from explorer.lessons.handout import handout

LESSON = {"stops": [{"title": "Where"}, {"title": "Lost"}]}
HOLDS = {
    "holds": True,
    "text": "After “<b>”.",
    "question": "Why?",
    "choices": [{"text": "A & B"}],
    "answer": "So.",
}
LOST = {"holds": False, "text": "Not here.", "question": None, "choices": [], "answer": None}


def test_only_stops_that_hold_are_asked_and_answered_in_one_order():
    made = handout(LESSON, [HOLDS, LOST])
    assert made["questions"].count("<p class=") == 1 and "Lost" not in made["questions"]
    assert "So." not in made["questions"] and made["answers"] == "<b>Answers</b><ol><li>So.</li></ol>"


def test_what_a_run_holds_is_text():
    made = handout(LESSON, [HOLDS, LOST])["questions"]
    assert "“&lt;b&gt;”" in made and "☐ A &amp; B" in made
