"""A printable lesson as HTML: its questions about the run on screen, and the answers on a separate page.

Tokens of a run are plain text, so everything is escaped here. Works on stops whose slots are filled.
"""

from html import escape


def handout(lesson: dict, stops: list[dict]) -> dict[str, str]:
    """`{questions, answers}` of the stops that hold in this run; `stops`: see `lesson.fill_lesson`."""
    pairs = zip(lesson["stops"], stops, strict=True)
    asked = [(stop["title"], filled) for stop, filled in pairs if filled["holds"]]
    questions = "".join(question(title, filled) for title, filled in asked)
    answers = "".join(f"<li>{escape(filled['answer'])}</li>" for _, filled in asked)
    return {"questions": f"<ol>{questions}</ol>", "answers": f"<b>Answers</b><ol>{answers}</ol>"}


def question(title: str, filled: dict) -> str:
    """A stop: its title, what happened, the question, and its choices with boxes to tick."""
    choices = "".join(f"<li>☐ {escape(choice['text'])}</li>" for choice in filled["choices"])
    return (
        f'<li><b>{escape(title)}</b><p>{escape(filled["text"])}</p><p class="question">'
        f"{escape(filled['question'])}</p><ul>{choices}</ul></li>"
    )
