"""The bars above the lanes as HTML: prompt and buttons, the slider and how it counts, status and errors.

assets/web/page/bar.js finds the parts by `data-part` and says what they do. Knows no runs.
"""

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


def bars_html(prompts: list[dict], max_new_tokens: int, limit: int) -> Html:
    """The top row, and the bars: `prompts` are the examples, `limit` is the greatest `max_new_tokens`."""
    theme = button("theme", "◐", "Light or dark", "theme", label="Switch between light and dark")
    title, sections = h("h1", "brand", "Decoding Explorer"), h("div", part("sections", "sections"))
    top = h("header", part("root", "top"), title, sections, h("div", "tools", theme))
    return joined([top, h("div", part("models", "models")), controls(prompts, max_new_tokens, limit)])


def controls(prompts: list[dict], max_new_tokens: int, limit: int) -> Html:
    """The bars that stay with the lanes."""
    prompt = part("prompt") | {
        "id": "explorer-prompt",
        "rows": 1,
        "aria-label": "Prompt",
        "spellcheck": "false",
    }
    prompt |= {"placeholder": "Write the beginning of a text"}
    number = part("tokens") | {"type": "number", "min": 1, "max": limit, "step": 1, "value": max_new_tokens}
    number |= {"aria-label": "max_new_tokens", "title": "How many tokens each lane may write"}
    slider = part("slider") | {"type": "range", "min": 0, "max": 0, "step": 1, "value": 0}
    colour = part("colour") | {
        "aria-label": "Colour tokens by",
        "title": "What the colour of a token shows",
    }
    colours = h("select", colour, *(h("option", {"value": value}, text) for value, text in COLOURS.items()))
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
        h("output", part("where", "where")),
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
