"""The inspector's sliders as HTML, and the sentences about drafts of another length.

assets/web/page/knobs.js finds the parts by `data-part`, moves the sliders and fills in the rest.
"""

from explorer.inspector.knobs import LENGTH
from explorer.markup import Html, h

BESIDE = "A new lane with these values; this one stays for comparison"
HERE = "Decode this lane again with these values"


def with_form(answer: dict, live: bool) -> dict:
    """The result of `knobs` with `form`, the sliders, and `drafts`, one sentence per draft length. A saved
    page is not `live`: nothing can be decoded there.
    """
    if "why" in answer:
        return answer
    run = [
        h("button", act("beside", BESIDE) | {"class": "run-beside"}, "Run in a new lane"),
        h("button", act("here", HERE), "Run here"),
    ]
    form = h(
        "div",
        {"class": "knobs", "data-part": "form"},
        *map(slider, answer["knobs"]),
        h("div", "actions", h("button", act("reset"), "Reset"), *(run if live else [])),
        h("div", {"class": "what-if-lane", "role": "status", "data-part": "outcome"}),
        h("div", {"class": "what-if-here", "data-part": "picture"}),
    )
    lengths = answer["lengths"] or []
    return answer | {"form": form, "drafts": [drafts(answer, at + 1) for at in range(len(lengths))]}


def act(name: str, title: str | None = None) -> dict:
    """A button that does what its value says."""
    return {"type": "button", "value": name, "title": title}


def slider(knob: dict) -> Html:
    """One slider with its name and its current value."""
    ends = {"min": knob["low"], "max": knob["high"], "step": knob["step"], "value": knob["value"]}
    look = {"type": "range", "name": knob["name"], "aria-label": knob["name"]} | ends
    shown = h("span", {"class": "value", "aria-hidden": "true"})
    return h(
        "label",
        {"class": "knob", "title": knob["help"]},
        h("span", "", knob["name"]),
        h("input", look),
        shown,
    )


def drafts(answer: dict, length: int) -> str:
    """How many rounds drafts of `length` tokens would have taken for the same text."""
    own, tokens = answer["values"][LENGTH], len(answer["places"])
    rounds, were = answer["lengths"][length - 1], answer["lengths"][own - 1]
    accepted = ranged([tokens - count for count in reversed(rounds)])
    return (
        f"Drafts of {length}: {ranged(rounds)} rounds for these {tokens} tokens, {accepted} drafted ones "
        f"accepted. Drafts of {own} took {ranged(were)}."
    )


def ranged(ends: list[int]) -> str:
    """`7`, or `7 to 9`."""
    low, high = ends
    return str(low) if low == high else f"{low} to {high}"
