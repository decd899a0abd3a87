"""The bars above the lanes as HTML: prompt and buttons, the slider and its unit, status and errors.

assets/web/page/bar.js finds the parts by `data-part` and gives them their behaviour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decoders.models import address
from decoders.models.catalog import by_role
from decoders.trace import breakpoints
from explorer.markup import Html, h, joined
from explorer.runs.validation import MAX_LANES

BUTTONS = {
    "run": ("Run", "Decode, or continue (space)"),
    "step": ("Step", "Every lane takes one step, then waits"),
    "pause": ("Pause", "Pause all lanes (space)"),
    "stop": ("Stop", "End this run; the decoded steps stay"),
}
STOPS = (
    "All lanes pause together at the first step at which one of these holds. In a run that has ended, ticks "
    "at the slider mark these steps."
)
# How a condition reads in the list, where its value goes.
STOP_WORDS = {
    breakpoints.Kind.ENTROPY: "entropy > … bits",
    breakpoints.Kind.REJECTION: "rejection at depth …",
    breakpoints.Kind.END: "p(end) > …",
    breakpoints.Kind.TOKEN: "token = …",
    breakpoints.Kind.ACCEPTANCE: f"acceptance < … in {breakpoints.ROUNDS} rounds",
}
TO_MOMENTS = {
    "earlier": ("◂", "The moment before (Shift+N): a rejection, another text that takes the lead, …"),
    "later": ("▸", "The next moment (N): a rejection, another text that takes the lead, …"),
}
ADD = f"Add a lane with another strategy; a run has at most {MAX_LANES}: remove one to add another"
FULL = f" (at most {MAX_LANES})"  # comes after the button's text where there are that many
WHOLE = "Texts, charts and costs are those of the whole run, wherever the slider is."
SPEEDS = [
    ("1", "1×", "Plays two steps per second"),
    ("4", "4×", "Plays eight steps per second"),
    ("live", "live", "Shows each step as soon as it is decoded"),
]
UNITS = [
    ("step", "step", "Lanes are lined up by their steps"),
    (
        "forwards",
        "target forwards",
        "Lanes are lined up by the number of target forwards: a race at equal cost",
    ),
    ("target_tokens", "target tokens", "Lanes are lined up by the number of tokens the target evaluated"),
    ("seconds", "seconds", "Lanes are lined up by their computing time"),
]
FOLD = "Shows a repeated stretch of text once, with the number of its copies"
COLOURS = {
    "source": "where it came from",
    "entropy": "entropy",
    "logprob": "log-probability",
    "depth": "decision depth",
}


@dataclass(frozen=True)
class Around:
    """What a page has around its lanes besides the bars."""

    help: str  # the contents of the help dialog as HTML, see help_text.py
    tabs: Sequence[tuple[str, str]] = ()  # (name, title): placeholders until Gradio's own tabs have loaded
    about: str = ""  # a sentence for first-time visitors
    saved: bool = False  # in a saved page the settings cannot be changed
    depths: bool = True  # whether tokens can be coloured by decision depth


def bars_html(
    prompts: list[dict], max_new_tokens: int, limit: int, models: dict[str, str | None], around: Around
) -> Html:
    """All bars. The page's scripts decide when the last two, `about` and *Run this set-up*, are inserted.

    `prompts`: the examples; `limit`: the maximum of `max_new_tokens`; `models`: those in use, by role.
    """
    names = list(by_role(models["target"], models.get("draft")).values()) if models.get("target") else []
    folded = h("span", "", "◀") if around.tabs else None
    lanes = decode(prompts, max_new_tokens, limit, around)
    return joined(
        [
            top(around),
            h("div", part("models", "models"), models_title(names) if names else None, folded),
            h("main", part("content") | {"id": "explorer-main"}, lanes),
            h(
                "p",
                part("about", "about-page"),
                around.about,
                button("hideAbout", "×", "Hide", label="Hide this sentence"),
            ),
            button("runThis", "Run this set-up", None, "primary run-this"),
        ]
    )


def models_title(names: list[str], chat: object = None) -> str:
    """The title of the panel Models, visible while it is closed."""
    first, *drafts = map(address.short, names)
    text = f"Models: {first}" + (f", draft {' and '.join(drafts)}" if drafts else ", no draft")
    return text + (" · chat" if chat else "")


def top(around: Around) -> Html:
    """The top row, with the help dialog and the link that skips to the lanes."""
    tabs = [
        h("button", {"type": "button", "value": name, "aria-pressed": str(not at).lower()}, title)
        for at, (name, title) in enumerate(around.tabs)
    ]
    tools = [
        button("helpButton", "?", "Keys, words and endpoints (?)", "theme", label="Help", haspopup="dialog"),
        button("theme", "◐", "Light or dark", "theme", label="Switch between light and dark"),
    ]
    return h(
        "header",
        part("root", "top"),
        h("a", part("skip", "skip") | {"href": "#explorer-main"}, "Skip to the lanes"),
        h("h1", "brand", "Decoding Explorer"),
        h("div", part("sections", "sections"), *tabs),
        h("div", "tools", *tools),
        h("dialog", part("help", "help") | {"aria-label": "Help"}, Html(around.help)),
    )


def below(saved: bool) -> Html:
    """The sentences below the lanes: how the lanes compare, and at what cost. In a saved page also the place
    of the comparison of the whole run, which Gradio shows in the app.
    """
    look = {"class": "compare-summary", "aria-label": "How the lanes compare"}
    cost, sentence = h("p", part("cost", "equal-cost")), h("p", part("compared", "compare-sentence"))
    whole = [h("summary", "", "Compare"), h("p", "soft", WHOLE), h("div", part("comparison"))]
    compare = h("details", part("compare", "saved-compare"), *whole) if saved else None
    return h("div", part("below", "below"), h("section", look, cost, sentence), compare)


def decode(prompts: list[dict], max_new_tokens: int, limit: int, around: Around) -> Html:
    """The bars that belong to the lanes, the element for the lanes, and the sentences below them."""
    bars = controls(prompts, max_new_tokens, limit, around)
    return h("div", part("decode", "decode"), bars, h("div", part("main", "lanes")), below(around.saved))


def controls(prompts: list[dict], max_new_tokens: int, limit: int, around: Around) -> Html:
    """The bars that belong to the lanes: prompt and buttons, slider, status."""
    prompt = part("prompt") | {
        "id": "explorer-prompt",
        "rows": 1,
        "aria-label": "Prompt",
        "spellcheck": "false",
    }
    prompt |= {"placeholder": "Write a text to continue", "readonly": around.saved}
    number = part("tokens") | {"type": "number", "min": 1, "max": limit, "step": 1, "value": max_new_tokens}
    number |= {"aria-label": "max_new_tokens", "title": "Maximum number of new tokens per lane"}
    slider = part("slider") | {"type": "range", "min": 0, "max": 0, "step": 1, "value": 0}
    colour = part("colour") | {
        "aria-label": "Colour tokens by",
        "title": "What the colour of a token shows",
    }
    offered = {value: text for value, text in COLOURS.items() if around.depths or value != "depth"}
    colours = h("select", colour, *(h("option", {"value": value}, text) for value, text in offered.items()))
    add = h("button", part("add") | {"type": "button", "title": ADD, "data-full": FULL}, "+ Lane")
    pressed = [button(name, *says, "primary" if name == "run" else None) for name, says in BUTTONS.items()]
    more = button("more", "⚙", "Settings", "more", label="Settings", expanded="false")
    first = [
        h("textarea", prompt),
        settings(
            examples(prompts),
            labelled("tokens", h("input", number), "tokens"),
            None if around.saved else button("stopWhen", "Stop when …", STOPS, "stop-when", expanded="false"),
        ),
        h("div", "buttons", *pressed, more),
    ]
    second = [
        settings(choice("Line up lanes by", "unit", UNITS, "step")),
        button("play", "", "Replay the decoded steps", "play", label="Play", pressed="false"),
        h(
            "div",
            "track",
            h("input", slider | {"aria-label": "Step position"}),
            h("div", part("moments", "moments") | {"aria-hidden": "true"}),  # N walks them
        ),
        h("output", part("where", "where") | {"aria-live": "off"}),  # else it is read out at every step
        h("div", "choice to-moments", *(button(name, *says) for name, says in TO_MOMENTS.items())),
        settings(
            choice("Speed", "speed", SPEEDS, "live"),
            labelled("colour by", colours),
            button("foldLoops", "Fold loops", FOLD, "fold-loops", pressed="false"),
            add,
        ),
    ]
    status = [
        h("div", part("status", "status-text") | {"role": "status"}),
        h("div", part("alert", "alert") | {"role": "alert"}),
        h(
            "div",
            part("offers", "offers") | {"role": "group", "aria-label": "What you can do"},
        ),
        h("span", part("moment", "moment") | {"tabindex": "-1"}),  # a tap shows a long one whole
        h("span", part("costInBar", "equal-cost")),
        h("div", part("spoken", "unseen") | {"role": "status", "aria-label": "Steps"}),
    ]
    lanes = h("nav", part("laneButtons", "lane-buttons") | {"aria-label": "Lanes"})
    rows = {"bar first": first, "bar second": second, "bar status": status}
    made = [h("div", look, *row) for look, row in rows.items()]
    return h("div", part("controls", "bars"), *made, None if around.saved else stop_panel(), lanes)


def stop_panel() -> Html:
    """The panel of the breakpoints: those that are set, and the form that adds one."""
    kinds = [
        h(
            "option",
            {"value": kind, "data-example": breakpoints.EXAMPLES.get(kind)},
            STOP_WORDS.get(kind, kind),
        )
        for kind in breakpoints.Kind
    ]
    look = part("stopPanel", "stop-panel") | {"role": "region", "aria-label": "Stop when", "hidden": True}
    value = {"name": "value", "aria-label": "Value", "maxlength": breakpoints.LONGEST, "autocomplete": "off"}
    form = [
        h("select", {"name": "kind", "aria-label": "Condition"}, *kinds),
        h("input", value),
        h("button", {"type": "submit"}, "Add"),
    ]
    return h(
        "div",
        look,
        h("p", "soft", STOPS),
        h("ul", part("stops", "stops")),
        h("form", part("stopForm", "stop-form"), *form),
        h("p", part("stopFault", "fault") | {"role": "alert"}),
    )


def examples(prompts: list[dict]) -> Html:
    """The list of examples by group. An example is a prompt, alone or with lanes; groups with lanes stay
    disabled until the models are loaded.
    """
    groups = []
    for label in dict.fromkeys(one["group"] for one in prompts):
        members = [(i, one) for i, one in enumerate(prompts) if one["group"] == label]
        options = [h("option", {"value": i, "title": one.get("says")}, one["title"]) for i, one in members]
        look = {"label": label, "disabled": bool(members[0][1].get("lanes"))}
        groups.append(h("optgroup", look, *options))
    look = part("examples") | {"aria-label": "Example prompts"}
    return h("select", look, h("option", {"value": ""}, "Examples"), *groups)


def part(name: str, look: str | None = None) -> dict:
    """The attributes of an element that the page's scripts find by this name."""
    return {"class": look, "data-part": name}


def button(name: str, text: str, title: str | None = None, look: str | None = None, **more: str) -> Html:
    """A button that the page's scripts find by its name; `more`: its `aria-` attributes."""
    aria = {f"aria-{key}": value for key, value in more.items()}
    return h("button", part(name, look) | {"type": "button", "title": title} | aria, text)


def settings(*children: Html) -> Html:
    """Controls that a phone hides behind the button Settings."""
    return h("div", "settings", *children)


def labelled(text: str, control: Html, look: str = "") -> Html:
    """A control with its label in front."""
    return h("label", f"field {look}".strip(), h("span", "", text), control)


def choice(label: str, name: str, options: list[tuple[str, str, str | None]], current: str) -> Html:
    """A row of radio buttons that look like one button each; options: (value, text, title)."""
    made = []
    for value, text, title in options:
        radio = {"type": "radio", "name": name, "value": value, "checked": value == current}
        made.append(h("label", {"title": title}, h("input", radio), text))
    return h("div", part(name, "choice") | {"role": "radiogroup", "aria-label": label}, *made)
