"""The inspector's card of one token, as HTML made from the facts of token_facts.py.

assets/web/page/inspector.js inserts it and binds its buttons: `data-node` leads to another token,
`data-token` is forced in a new lane, `data-lens` opens the tab Lenses.
"""

from decoders.explain.verdicts import status_in_words
from explorer.inspector.parts import jump, probability, token
from explorer.inspector.pictures import pictures
from explorer.markup import Html, h, joined
from visualizers.scene.words import score_name

SCORES, PARTS = 8, 8  # how many scores are listed (the newest), and how many parts of each
NO_DRAFT = "Chosen by the model; there was no draft to test."
WEIGHED = "Chosen from two contrasted distributions; nothing was tested."
# The place of the sliders, which stay from card to card: see `frames.inspector_html`.
WHAT_IF = h("section", {"class": "what-if", "aria-label": "What if"})
ORIGIN = {
    "prompt": "Given, not decoded.",
    "copied": "Copied from the lane that this one branched off.",
    "person": "Put here by a person.",
    "target": "Chosen by the model.",
    "guess": "A guess of the parallel decoder; not final.",
    "small": "The draft model's own token, taken unchanged; nothing was tested.",
}


def card(facts: dict, live: bool = True) -> dict:
    """`{node, fixes, token, place, walk, html}` of a token's facts. `walk`: where the arrow keys lead;
    `fixes`: the position of a canvas at which its buttons fix a token. A saved page is not `live`: no lane
    can branch off there.
    """
    # A draft that was copied from the prompt also has the source "prompt", but a step in which it was born.
    given = facts["source"] == "prompt" and not facts["born"]
    branches = live and not given and facts["node"] is not None
    born = f", step {facts['born']}" if facts["born"] else ""
    parts = [
        path(facts),
        *verdicts(facts),
        copied(facts["copied"]),
        declared(facts["declared"]),
        cell(facts.get("cell")),
        fix(facts["cell"]) if live and fixable(facts) else actions(facts) if branches else None,
        lens(facts) if live and facts["node"] is not None and facts["parent"] is not None else None,
        h("p", {"class": "message", "role": "status"}),
        WHAT_IF,
        pictures(facts, branches),
        scores(facts["scores"]),
        siblings(facts["siblings"]),
        raw(facts["events"], facts["more_events"]),
    ]
    return {
        "node": facts["node"],
        "fixes": facts["cell"]["place"] if fixable(facts) else None,
        "token": facts["token"],
        "place": ", prompt" if given else f", position {facts['position']}{born}",
        "walk": walk(facts),
        "html": joined(parts),
    }


def walk(facts: dict) -> dict[str, int]:
    """Arrow key -> the node it leads to: the previous token, the next one, and the siblings on both sides."""
    row = facts["siblings"]
    at = next((i for i, sibling in enumerate(row) if sibling["here"]), None)
    near = {
        "ArrowUp": row[at - 1] if at else None,
        "ArrowDown": row[at + 1] if at is not None and at + 1 < len(row) else None,
    }
    nodes = {"ArrowLeft": facts["parent"], "ArrowRight": facts["child"]}
    nodes |= {key: sibling["node"] for key, sibling in near.items() if sibling}
    return {key: node for key, node in nodes.items() if node is not None}


def path(facts: dict) -> Html:
    """The text up to and including the token."""
    here = h("span", "token here", facts["token"])
    return h("p", "path", *(jump(at["node"], at["text"]) for at in facts["path"]), here)


def verdicts(facts: dict) -> list[Html]:
    """The verdicts on the token. Numbers and reasons that a test's picture shows are not repeated."""
    if not facts["verdicts"]:
        source = facts["source"]
        weighed = source == "target" and any(stage["view"] == "combined" for stage in facts["stages"])
        origin = ORIGIN.get(source, f"From the {source}; nothing was tested.")
        alone = source == "target" and facts["drafting"]
        return [h("p", "verdict", WEIGHED if weighed else NO_DRAFT if alone else origin)]
    pictured = {test["reason"] for test in facts["attempts"] if test["node"] == facts["node"]}
    return [verdict(one, one["reason"] in pictured) for one in facts["verdicts"]]


def verdict(one: dict, pictured: bool) -> Html:
    """`rejected in step 3: p .1, q .4, u .6. The reason.`"""
    status = one["status"]
    known = [] if pictured else [name for name in ("p", "q", "u") if one[name] is not None]
    numbers = ", ".join(f"{name} {probability(one[name])}" for name in known)
    where = f" in step {one['step']}" + (f": {numbers}." if numbers else ".")
    reason = f" {one['reason']}" if one["reason"] and not pictured else ""
    return h(
        "p", "verdict is-" + status.replace(" ", "-"), h("b", "", status_in_words(status)), where, reason
    )


def copied(source: dict | None) -> Html | None:
    """For a draft that was copied from the text: from where, and why from there."""
    if not source:
        return None
    words = f" at {source['place']}. The copy begins after "
    after = token("".join(source["after"]))
    origin = jump(source["node"], source["text"])
    return h("p", "copied", "Drafted as a copy of ", origin, words, after, ", with which the text ended.")


def declared(source: dict | None) -> Html | None:
    """For a name that a monitor admitted: where it is declared."""
    if not source:
        return None
    return h("p", "declared", "Declared by ", jump(source["node"], source["text"]), f" at {source['place']}.")


def cell(shown: dict | None) -> Html | None:
    """The tokens at a position of a parallel decoder, iteration by iteration, and what the position waited
    for.
    """
    if not shown:
        return None
    rows = []
    for one in shown["history"]:
        sure = "" if one["confidence"] is None else f", p {probability(one['confidence'])}"
        words = f" iteration {one['iteration']}: {one['state']}{sure}"
        here = one["iteration"] == shown["iteration"]
        rows.append(h("div", "stood here" if here else "stood", token(one["token"]), words))
    waits = (
        h("p", "rest", "waited for: position " + ", ".join(map(str, shown["waits"])))
        if shown["waits"]
        else None
    )
    return h("section", "", h("h3", "", "History of this position"), *rows, waits)


def actions(facts: dict) -> Html:
    """The controls that put another token or a text at this position, in a new lane."""
    title = "A new lane: the same text before, this token forced, then the same strategy and seed"
    return choices(facts, "Branch here", title, "A new lane with the typed text in place of this token")


def lens(facts: dict) -> Html:
    """The button that opens the tab Lenses at this position."""
    title = "What each layer of the target would predict here, in the tab Lenses"
    return h("button", {"type": "button", "title": title, "data-lens": facts["node"]}, "Look with a lens")


def fixable(facts: dict) -> bool:
    """Whether these are the facts of a cell at whose position a person may fix a word."""
    return (facts.get("cell") or {}).get("place") is not None


def fix(shown: dict) -> Html:
    """The controls that fix a cell's token or a text at its position of the canvas, in a new lane."""
    title = "A new lane: this token is fixed here from the start, and the model writes around it"
    empty = shown["state"] in ("mask", "trimmed")  # there is no token to keep
    title = None if empty else title
    return choices(shown, "Fix here", title, "A new lane with the typed text fixed here from the start")


def choices(facts: dict, name: str, title: str | None, edit_title: str) -> Html:
    """The button for a token (left out without a title) and the field for a text to replace it."""
    here = h("button", {"type": "button", "title": title, "data-token": facts["id"]}, name)
    look = {"type": "text", "aria-label": "Text to put here", "placeholder": "other text for this place"}
    field = h("input", {**look, "autocomplete": "off", "spellcheck": "false"})
    form = h("form", "edit", field, h("button", {"type": "submit", "title": edit_title}, "Edit"))
    button = [here, h("span", "with", "with ", token(facts["token"]))] if title else []
    return h("div", "actions", *button, form)


def scores(all_scores: list[dict]) -> Html | None:
    """The newest scores of the token."""
    rows = []
    for score in all_scores[-SCORES:]:
        parts = list(score["parts"].items())
        words = [f" · {score_name(name)} {signed(value)}" for name, value in parts[:PARTS]]
        words += [f" · and {len(parts) - PARTS} more"] if len(parts) > PARTS else []
        rank = f", rank {score['rank']}" if score["rank"] else ""
        total = f"step {score['step']}: {score_name(score['name'])} {signed(score['total'])}{rank}"
        rows.append(h("div", "", total, h("span", "rest", "".join(words))))
    return h("section", "", h("h3", "", "Scores"), *rows) if rows else None


def signed(value: float) -> str:
    """`−1.234`."""
    return f"{value:.3f}".replace("-", "−")


def siblings(row: list[dict]) -> Html | None:
    """The other tokens that were tried at this position."""
    others = [sibling for sibling in row if not sibling["here"]]
    rows = []
    for other in others:
        numbers = [
            f", {name} {probability(other[name])}" for name in ("p", "q") if other.get(name) is not None
        ]
        words = status_in_words(other["status"] or other["state"]) + "".join(numbers)
        rows.append(h("div", "", jump(other["node"], other["text"]), words))
    return h("section", "siblings", h("h3", "", "Also tried here"), *rows) if rows else None


def raw(events: list[dict], more: int) -> Html | None:
    """The events that name the token, unchanged from the trace."""
    if not events:
        return None
    lines = [h("pre", "", f"step {event['step']}  {event['json']}") for event in events]
    rest = h("p", "rest", f"and {more} more") if more else None
    return h("details", "", h("summary", "", f"Raw events ({len(events) + more})"), *lines, rest)
