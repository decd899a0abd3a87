"""The fields in which a lane's parameters are set, as HTML, and the panel that holds them.

assets/web/page/lane.js gives them a lane's values. Knows parameters in their public form, no strategy and no
lane. What a page knows of a parameter is `{name, default, group, field}`; many strategies have the same, so
`field` is the key of its HTML.
"""

import hashlib
from collections.abc import Iterable

from decoders import memory_options
from decoders.constraints.kinds import GROUP as CONSTRAINT
from decoders.memory_options import GROUP as MEMORY
from decoders.parameters import MAX_CHARACTERS
from decoders.sampling.sampling_parameters import MORE, TEXT
from explorer.export.bars import button, part
from explorer.markup import Html, h, joined

SEED = {
    "name": "seed",
    "kind": "int",
    "low": 0,
    "help": "Lanes with the same seed use the same random numbers.",
}
WHAT_IF = "Sliders that show at once what other values would change in this run"
# The groups that parameters can have, in the order in which they stand.
GROUPS = (CONSTRAINT, MORE, TEXT, "N-grams", MEMORY)
ROWS = {"constraint_text": 6}  # lines of the field of a text, else 2


def known(declarations: Iterable[dict], saved: bool = False) -> dict:
    """`{strategies, fields}`: declarations as a page reads them, and the HTML of their fields by key. In a
    page that is `saved` nothing can be set.
    """
    fields: dict[str, Html] = {}
    strategies = [
        {**declared, "parameters": [keyed(p, fields, saved) for p in declared["parameters"]]}
        for declared in declarations
    ]
    return {"strategies": strategies, "fields": fields}


def memory(fields: dict[str, Html], saved: bool = False) -> dict:
    """The parameters of each kind of memory, those of none as well, and the view that shows it."""
    public = memory_options.page_fields()
    keyed_by_name = {p["name"]: keyed(p, fields, saved) for p in public["parameters"]}
    of = {name: [keyed_by_name[own] for own in names] for name, names in public["of"].items()}
    return {"of": of, "view": public["view"]}


def keyed(parameter: dict, fields: dict[str, Html], saved: bool) -> dict:
    """What a page knows of a parameter; the HTML of its field goes to `fields`."""
    html = field(parameter, saved)
    key = f"{parameter['name']} {hashlib.sha256(html.encode()).hexdigest()[:8]}"
    fields[key] = html
    return {key: parameter[key] for key in ("name", "default", "group") if key in parameter} | {"field": key}


def field(parameter: dict, saved: bool, called: str = "control") -> Html:
    """A parameter's name, what it is set in, which the page calls so, and what it means."""
    text = parameter["kind"] == "text"
    return h(
        "label",
        {"class": "parameter long" if text else "parameter", "title": parameter.get("help") or None},
        h("span", "name", parameter["name"]),
        control(parameter, part(called) | {"disabled": saved}),
        h("span", "help", parameter.get("help", "")),
    )


def control(parameter: dict, given: dict) -> Html:
    """What a parameter is set in, with the attributes that are `given`."""
    name, kind = parameter["name"], parameter["kind"]
    look = given | {"name": name, "aria-label": name}
    if kind == "choice":
        return h("select", look, *(h("option", "", choice) for choice in parameter["choices"]))
    if kind == "text":
        size = {"rows": ROWS.get(name, 2), "maxlength": MAX_CHARACTERS, "spellcheck": "false"}
        return h("textarea", look | size)
    if kind in ("int", "float"):
        ends = {"min": parameter.get("low"), "max": parameter.get("high")}
        return h("input", look | {"type": "number", "step": 1 if kind == "int" else "any"} | ends)
    return h("input", look | {"type": "checkbox" if kind == "bool" else "text"})


def panel(saved: bool) -> list[Html]:
    """What the panel of a lane holds; the fields of its parameters come when it is opened."""
    return [
        h("p", part("summary", "summary")),
        h("div", part("fields")),
        field(SEED, saved, "seed"),
        button("begin", "Begin at the prompt"),
        button("whatIf", "What if …", WHAT_IF),
        button("closePanel", "Close"),
    ]


def groups_html() -> Html:
    """Where fields stand: a strategy's own, and behind a heading those that few people need."""
    folds = [h("details", {"data-part": group}, h("summary", "", group)) for group in GROUPS]
    return joined([h("div", part("own", "own")), *folds])


def constraint_html(prompts: list[dict]) -> Html:
    """Below a constraint's text: what is said of it, where it is wrong, and examples to begin from, whose
    values are those of `prompts`.
    """
    examples = [
        h("option", {"value": at}, one["title"])
        for at, one in enumerate(prompts)
        if (one.get("lanes") or [{}])[0].get("parameters", {}).get("constraint")
    ]
    look = {"aria-label": "Examples of constraints", "data-part": "examples"}
    return h(
        "div",
        part("tools", "parameter long"),
        h("p", part("message", "help") | {"role": "status"}),
        h("pre", part("where", "fault") | {"aria-hidden": "true"}),
        h("select", look, h("option", {"value": ""}, "Examples …"), *examples),
    )
