"""The fields for a lane's parameters, as HTML, and the panel that contains them.

assets/web/page/lane.js fills in a lane's values. A page knows a parameter as `{name, default, group, field}`.
Many strategies share parameters, so `field` is a key by which the page looks up the HTML.
"""

import hashlib
from collections.abc import Iterable

from decoders import memory_options
from decoders.constraints.settings import GROUP as CONSTRAINT
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
WHAT_IF = "Sliders that show immediately what other values would change in this run"
# The groups of parameters, in order.
GROUPS = (CONSTRAINT, MORE, TEXT, "N-grams", MEMORY)
ROWS = {"constraint_text": 6}  # lines of a text field, by parameter; the default is 2


def known(declarations: Iterable[dict], saved: bool = False) -> dict:
    """Returns `{strategies, fields}`: declarations as a page reads them, and the HTML of their fields by key.
    In a `saved` page, fields are disabled.
    """
    fields: dict[str, Html] = {}
    strategies = [
        {**declared, "parameters": [keyed(p, fields, saved) for p in declared["parameters"]]}
        for declared in declarations
    ]
    return {"strategies": strategies, "fields": fields}


def memory(fields: dict[str, Html], saved: bool = False) -> dict:
    """The parameters of each kind of memory, including none."""
    public = memory_options.page_fields()
    keyed_by_name = {p["name"]: keyed(p, fields, saved) for p in public["parameters"]}
    return {name: [keyed_by_name[own] for own in names] for name, names in public["of"].items()}


def keyed(parameter: dict, fields: dict[str, Html], saved: bool) -> dict:
    """Returns what a page knows of a parameter, and adds the HTML of its field to `fields`."""
    html = field(parameter, saved)
    key = f"{parameter['name']} {hashlib.sha256(html.encode()).hexdigest()[:8]}"
    fields[key] = html
    return {key: parameter[key] for key in ("name", "default", "group") if key in parameter} | {"field": key}


def field(parameter: dict, saved: bool, called: str = "control") -> Html:
    """The field of a parameter: name, control and help. Scripts find the control by the name `called`."""
    text = parameter["kind"] == "text"
    return h(
        "label",
        {"class": "parameter long" if text else "parameter", "title": parameter.get("help") or None},
        h("span", "name", parameter["name"]),
        control(parameter, part(called) | {"disabled": saved}),
        h("span", "help", parameter.get("help", "")),
    )


def control(parameter: dict, given: dict) -> Html:
    """The control of a parameter: a select, textarea or input, with the attributes `given`."""
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
    """The contents of a lane's panel; the fields of its parameters are added when it is opened."""
    return [
        h("p", part("summary", "summary")),
        h("div", part("fields")),
        field(SEED, saved, "seed"),
        button("begin", "Begin at the prompt"),
        button("whatIf", "What if …", WHAT_IF),
        button("closePanel", "Close"),
    ]


def groups_html() -> Html:
    """The containers of the fields: one for a strategy's own, and a collapsible one per group."""
    folds = [h("details", {"data-part": group}, h("summary", "", group)) for group in GROUPS]
    return joined([h("div", part("own", "own")), *folds])


def constraint_html(prompts: list[dict]) -> Html:
    """The elements below a constraint's text: a message, an error's position, and examples from `prompts`."""
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
