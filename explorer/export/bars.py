"""The bars above the lanes as HTML: prompt and buttons, the slider and how it counts, status and errors.

assets/web/page/bar.js finds the parts by `data-part` and says what they do. Knows no runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decoders.models import address
from decoders.models.catalog import by_role
from explorer.markup import Html, h, joined

BUTTONS = {
    "run": ("Run", "Decode, or continue (space)"),
    "step": ("Step", "Every lane does one step, then waits"),
    "pause": ("Pause", "Hold all lanes (space)"),
    "stop": ("Stop", "End this run; what was decoded stays"),
}
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
        "Lanes are lined up by how often the target model ran: a race at equal cost",
    ),
    ("target_tokens", "target tokens", "Lanes are lined up by how many tokens the target model evaluated"),
    ("seconds", "seconds", "Lanes are lined up by their computing time"),
]
COLOURS = {
    "source": "where it came from",
    "entropy": "entropy",
    "logprob": "log-probability",
    "depth": "decision depth",
}


@dataclass(frozen=True)
class Around:
    """What stands around the lanes of a page besides its bars."""

    help: str  # what the dialog says, as HTML, see help_text.py
    tabs: Sequence[tuple[str, str]] = ()  # (name, title): what Gradio's look like until they are there
    about: str = ""  # a sentence for who comes first
    saved: bool = False  # a saved page shows the settings as they were, and nothing changes them
    depths: bool = True  # whether tokens can be coloured by decision depth


def bars_html(
    prompts: list[dict], max_new_tokens: int, limit: int, models: dict[str, str | None], around: Around
) -> Html:
    """All bars: `prompts` are the examples, `limit` is the greatest `max_new_tokens`; `models`: those in use,
    by role. The last of them stand in no place until the page wants them.
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
    """What the closed panel of the models says."""
    first, *drafts = map(address.short, names)
    text = f"Models: {first}" + (f", draft {' and '.join(drafts)}" if drafts else ", no draft")
    return text + (" · chat" if chat else "")


def top(around: Around) -> Html:
    """The first row, with the dialog that its ? opens and the link that skips it."""
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


def below() -> Html:
    """What stands below the lanes, and how they stand to each other."""
    look = {"class": "compare-summary", "aria-label": "How the lanes stand to each other"}
    cost, sentence = h("p", part("cost", "equal-cost")), h("p", part("compared", "compare-sentence"))
    return h("div", part("below", "below"), h("section", look, cost, sentence))


def decode(prompts: list[dict], max_new_tokens: int, limit: int, around: Around) -> Html:
    """The bars that stay with the lanes, the place of the lanes, and what stands below them."""
    bars = controls(prompts, max_new_tokens, limit, around)
    return h("div", part("decode", "decode"), bars, h("div", part("main", "lanes")), below())


def controls(prompts: list[dict], max_new_tokens: int, limit: int, around: Around) -> Html:
    """The bars that stay with the lanes."""
    prompt = part("prompt") | {
        "id": "explorer-prompt",
        "rows": 1,
        "aria-label": "Prompt",
        "spellcheck": "false",
    }
    prompt |= {"placeholder": "Write the beginning of a text", "readonly": around.saved}
    number = part("tokens") | {"type": "number", "min": 1, "max": limit, "step": 1, "value": max_new_tokens}
    number |= {"aria-label": "max_new_tokens", "title": "How many tokens each lane may write"}
    slider = part("slider") | {"type": "range", "min": 0, "max": 0, "step": 1, "value": 0}
    colour = part("colour") | {
        "aria-label": "Colour tokens by",
        "title": "What the colour of a token shows",
    }
    offered = {value: text for value, text in COLOURS.items() if around.depths or value != "depth"}
    colours = h("select", colour, *(h("option", {"value": value}, text) for value, text in offered.items()))
    pressed = [button(name, *says, "primary" if name == "run" else None) for name, says in BUTTONS.items()]
    more = button("more", "⚙", "Settings", "more", label="Settings", expanded="false")
    first = [
        h("textarea", prompt),
        settings(examples(prompts), labelled("tokens", h("input", number), "tokens")),
        h("div", "buttons", *pressed, more),
    ]
    second = [
        settings(choice("Line up lanes by", "unit", UNITS, "step")),
        button("play", "▶", "Replay what is here", "play", label="Play"),
        h("input", slider | {"aria-label": "Step position"}),
        h("output", part("where", "where") | {"aria-live": "off"}),  # it would be read at every step
        settings(
            choice("Speed", "speed", SPEEDS, "live"), labelled("colour by", colours), button("add", "+ Lane")
        ),
    ]
    status = [
        h("div", part("status", "status-text") | {"role": "status"}),
        h("div", part("alert", "alert") | {"role": "alert"}),
        h(
            "div",
            part("offers", "offers") | {"role": "group", "aria-label": "What you can do", "hidden": True},
        ),
        h("span", part("costInBar", "equal-cost")),
        h("div", part("spoken", "unseen") | {"role": "status", "aria-label": "Steps"}),
    ]
    lanes = h("nav", part("laneButtons", "lane-buttons") | {"aria-label": "Lanes"})
    rows = {"bar first": first, "bar second": second, "bar status": status}
    return h("div", part("controls", "bars"), *(h("div", look, *row) for look, row in rows.items()), lanes)


def examples(prompts: list[dict]) -> Html:
    """The examples by what they show: a prompt alone, or with the lanes that show its point, which wait for
    the models.
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
    """Attributes of an element that the page finds by this name."""
    return {"class": look, "data-part": name}


def button(name: str, text: str, title: str | None = None, look: str | None = None, **more: str) -> Html:
    """A button that the page finds by its name; `more` are its `aria-` attributes."""
    aria = {f"aria-{key}": value for key, value in more.items()}
    return h("button", part(name, look) | {"type": "button", "title": title} | aria, text)


def settings(*children: Html) -> Html:
    """What a phone shows when it is asked for."""
    return h("div", "settings", *children)


def labelled(text: str, control: Html, look: str = "") -> Html:
    """A control with its name in front."""
    return h("label", f"field {look}".strip(), h("span", "", text), control)


def choice(label: str, name: str, options: list[tuple[str, str, str | None]], current: str) -> Html:
    """A row of buttons of which one is pressed; options: (value, text, title)."""
    buttons = []
    for value, text, title in options:
        look = {
            "type": "button",
            "title": title,
            "value": value,
            "aria-pressed": str(value == current).lower(),
        }
        buttons.append(h("button", look, text))
    return h("div", part(name, "choice") | {"role": "group", "aria-label": label}, *buttons)
