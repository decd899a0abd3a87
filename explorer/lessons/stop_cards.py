"""The pages of a lesson in the guide, and the card of a stop, as HTML: what happened, the question, its
choices, and the answer.

The answer is in a template, which stays hidden until assets/web/page/lessons.js takes it out. Cards are made
of stops whose slots are filled.
"""

from explorer.export.bars import part
from explorer.markup import Html, h

CARD = part("stop", "card")
AGAIN = (
    "That was the last stop. The lanes are yours: change a parameter or the seed, press Run, and go back "
    "through the stops. The lesson then describes your own run."
)
OTHERS = "Other models, prompts and seeds give other numbers."
ALL_DONE = "This was the last lesson of the path."
AGAIN_SAVED = "That was the last stop. Drag the slider, and click on any token."


def pages(lesson: dict, saved: bool = False, after: dict | None = None) -> list[dict]:
    """What the guide shows before any run is read: a page before the first stop, one for each stop, and one
    after the last, as `{where, next, card}`: the place in the lesson, the label of the button that leads on,
    and the card. `after`: the next lesson on the path.
    """
    stops = lesson["stops"]
    last = [h("p", "", AGAIN_SAVED)] if saved else [h("p", "", AGAIN), h("p", "soft", OTHERS)]
    last += [h("h3", "", "Next on the path"), *next_on_path(after)] if after else [h("p", "", ALL_DONE)]
    return [
        page("Before you start", "Start", h("p", "", lesson["about"])),
        *(
            page(
                f"Stop {number} of {len(stops)}",
                "Next" if number < len(stops) else "Finish",
                h("h3", "", stop["title"]),
            )
            for number, stop in enumerate(stops, 1)
        ),
        page("The end", "Next lesson" if after else "All lessons", *last),
    ]


def next_on_path(lesson: dict) -> tuple[Html, Html]:
    """The title of a lesson and what one learns there."""
    title = h("b", "", f"{lesson['number']}. {lesson['title']}")
    return h("p", "", title, f" ({lesson['minutes']} min)"), h("p", "soft", lesson["learns"])


def page(where: str, leads_on: str, *card: Html) -> dict:
    """A page of the guide."""
    return {"where": where, "next": leads_on, "card": h("div", CARD, *card)}


def stop_card(title: str, filled: dict) -> Html:
    """A stop of a lesson; `filled`: see `lesson.fill_stop`."""
    intro = [h("h3", "", title), h("p", "" if filled["holds"] else "not-so", filled["text"])]
    if not filled["holds"]:
        return h("div", CARD, *intro, looks(filled))
    choices, answer = filled["choices"], h("p", "answer", filled["answer"])
    if choices:
        answer = h("p", "answer", h("b"), filled["answer"])  # says whether it was right
    asked = [h("p", "question", filled["question"]), options(choices) if choices else think()]
    return h("div", CARD, *intro, *asked, h("template", "", answer), looks(filled))


def options(choices: list[dict]) -> Html:
    """The choices; data attributes tell the script which are right."""
    buttons = []
    for index, choice in enumerate(choices):
        look = {"type": "button", "class": "option", "aria-pressed": "false", "data-answer": index}
        mark = h("span", {"class": "mark", "aria-hidden": "true"})
        verdict = {
            "data-right": choice["right"],
            "data-verdict": "Right. " if choice["right"] else "Not quite. ",
        }
        buttons.append(h("button", look | verdict, mark, choice["text"]))
    return h("div", {"class": "choices", "role": "group", "aria-label": "Answers"}, *buttons)


def think() -> Html:
    """The one button of a question without choices."""
    return h("button", {"type": "button", "class": "think", "data-answer": 0}, "Think, then look")


def looks(filled: dict) -> Html | None:
    """The buttons that inspect the token that the stop is about, and that show the line of code that decided
    on it; None if it is not about a token.
    """
    nodes = filled["nodes"].get(filled["lane"])
    if not nodes:
        return None
    words = "Inspect the first token" if len(nodes) > 1 else "Inspect this token"
    buttons = {
        "data-inspect": (words, "What the trace knows about this token"),
        "data-code": ("Show its line of code", "The line of the strategy that recorded it last in this step"),
    }
    return h(
        "div",
        "inspect",
        *(
            h("button", {"type": "button", "title": title, name: nodes[0]}, text)
            for name, (text, title) in buttons.items()
        ),
    )
