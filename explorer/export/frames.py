"""The empty HTML of a lane, its menu, the guide of a lesson, the inspector, and the search for strategies.

The scripts in assets/web/page find the parts by `data-part`, fill them and give them their behaviour.
"""

from explorer.export.bars import button, part
from explorer.export.drawings import listed, prose_html, scene_html
from explorer.export.fields import panel
from explorer.markup import Html, h, joined

PRINT_WIDTHS = {84: "one column", 120: "1.5 columns", 174: "full width"}  # mm, as journals have them
PRINTED = (
    "Saves the picture as SVG; the caption is its description",
    "Strategy, prompt, models, what is shown, legend and costs in words, into the clipboard",
)
LEAVE = "Leave the lesson; the lanes stay"
CODE = "The code that runs"
EARLIER = "The event before, line by line (,)"
LATER = "The next event, line by line (.)"
RESTART = "Restores the lesson's lanes and decodes them again"
PRESENT = (
    "Shows this lane alone on the whole screen in large type: ← → or a clicker to step, Q for a QR code of "
    "the set-up, Esc to end"
)
# A lane's menu: an action of lane-menu.js, its label, its explanation, and whether a saved page has it.
MENU = [
    ("present", "Present", PRESENT, True),
    ("trace", "Save trace", "The lane's trace as data (.json.gz), to be opened here again", True),
    ("page", "Save page", "One HTML file that replays this lane offline", False),
    (
        "figure",
        "Save figure",
        "This view at this step as one HTML file with a Plotly figure: zoom, hover, camera",
        False,
    ),
    ("picture png", "Picture (PNG)", "This view {seen}, with its heading and costs", True),
    ("picture", "Picture (SVG)", "The same as vector graphics", True),
    (
        "slide png",
        "Slide (PNG, 16:9)",
        "The whole run up to this step, broken into lines, for a lecture",
        False,
    ),
    (  # the last one, as its widths unfold below it
        "print",
        "Figure for print …",
        "This view {seen} as wide as a paper's column, in letters of at least 8 pt (SVG), and its caption",
        False,
    ),
]


def lane_html(saved: bool) -> Html:
    """A lane, in the app or in a saved page."""
    look = part("panel", "parameters") | {
        "role": "group",
        "aria-label": "Parameters of this lane",
        "hidden": True,
    }
    view = h(
        "div",
        part("viewElement", "view") | {"role": "tabpanel"},
        h("div", part("sceneElement", "scene dp-scene"), scene_html()),
        h("div", part("textElement", "text-view") | {"hidden": True}, prose_html()),
        h("div", part("hint", "hint") | {"hidden": True}, h("span")),
        h(
            "div",
            part("stepsPanel", "steps") | {"role": "region", "tabindex": 0, "hidden": True},
            h("ol", "steps-list"),
        ),
    )
    foot = [
        h("dl", part("costs", "costs") | {"aria-label": "Costs"}),
        h("span", part("ended", "ended")),
        button("moreCosts", "more", "All costs of this lane", "more-costs", expanded="false"),
        h("p", part("costSays", "cost-says") | {"role": "status", "hidden": True}),
    ]
    return h(
        "section",
        part("element", "lane") | {"role": "region"},
        h("div", "lane-head", *lane_head(saved)),
        lane_menu(saved),
        h("div", look, *panel(saved)),
        h("details", part("trust", "trust") | {"hidden": True}, h("summary"), h("ul")),
        h("div", part("chipsElement", "chips-row dp-chips dp-chips-line") | listed()),
        h(
            "div",
            "views",
            h("div", part("tabs", "tabs") | {"role": "tablist", "aria-label": "Views"}),
            h("select", part("moreViews", "more-views") | {"aria-label": "More views", "hidden": True}),
        ),
        view,
        code_html(),
        h("div", "lane-foot", *foot),
    )


def code_html() -> Html:
    """The drawer with the code that runs: event, algorithm, functions, lines."""
    return h(
        "div",
        part("codePanel", "code") | {"role": "region", "hidden": True},
        h(
            "div",
            "code-bar",
            button("codeEarlier", "◂", EARLIER, label="The event before"),
            button("codeLater", "▸", LATER, label="The next event"),
            h("span", part("codeCount", "code-count")),
            h("span", part("codeEvent", "code-event") | {"role": "status"}),
            h("span", part("codeValues", "code-values")),
            h("span", part("codeWhy", "code-why")),
        ),
        h("ol", part("codeAlgorithm", "algorithm") | {"aria-label": "The algorithm", "hidden": True}),
        h("nav", part("codeStack", "code-stack") | {"aria-label": "Functions that run"}),
        h("div", part("codeLines", "code-lines") | {"tabindex": 0, "role": "region", "aria-label": "Code"}),
    )


def lane_head(saved: bool) -> list[Html]:
    """Strategy, parameters, badges and buttons of a lane; in a saved page the strategy cannot be changed."""
    hidden = {"hidden": True}
    save = "Save this lane: trace, page, figure, picture"
    return [
        h("span", part("number", "disc") | {"aria-hidden": "true"}),
        h("select", part("picker", "strategy") | {"aria-label": "Strategy", "disabled": saved}),
        button("gear", "⚙", "Parameters", "gear", expanded="false", label="Parameters"),
        button("codeButton", "{ }", f"{CODE} (C)", "gear", expanded="false", label=CODE),
        button("stepsButton", "≡", "Steps as text (T)", "gear", expanded="false", label="Steps as text"),
        h("span", part("line", "parameter-line")),
        h("span", part("relation", "badge relation") | hidden),
        h("span", part("badge", "badge") | hidden),
        button("dots", "⋯", save, "dots", expanded="false", label="Save this lane", haspopup="menu"),
        button("remove", "×", "Remove this lane", "remove", label="Remove lane"),
    ]


def lane_menu(saved: bool) -> Html:
    """The menu ⋯ of a lane."""
    item = {"type": "button", "role": "menuitem", "tabindex": -1}
    seen = "of the whole run" if saved else "up to this step"
    entries = [
        h("button", item | {"value": name, "title": title.format(seen=seen)}, text)
        for name, text, title, anywhere in MENU
        if anywhere or not saved
    ]
    if not saved:
        widths = {f"print {mm}": f"{name[0].upper()}{name[1:]}, {mm} mm" for mm, name in PRINT_WIDTHS.items()}
        for name, text in (widths | {"caption": "Copy its caption"}).items():
            look = {"value": name, "title": PRINTED[name == "caption"], "class": "of-print", "hidden": True}
            entries.append(h("button", item | look, text))
    look = {"role": "menu", "aria-label": "Save this lane", "hidden": True}
    return h("div", part("menu", "lane-menu") | look, *entries)


def guide_html(saved: bool) -> Html:
    """The guide through a lesson: progress, the card of a page (explorer/lessons/stop_cards.py), and buttons.
    The hand-out with solutions is for printing.
    """
    fold = {"expanded": "true", "label": "Show or hide the lesson's text"}
    body = [h("div", part("card", "card")), h("p", part("waiting"))]
    foot = [button("back", "Back"), button("next", "Next", look="primary")]
    return h(
        "aside",
        part("root", "guide") | {"role": "region", "aria-label": "Lesson", "hidden": True},
        h(
            "header",
            "",
            h("h2", part("title")),
            button("fold", "", None, "fold", **fold),
            button("close", "×", LEAVE, "leave", label="Leave the lesson"),
        ),
        h(
            "div",
            "guide-place",
            h("span", part("where", "where-in")),
            h("progress", part("bar", "progress") | {"aria-label": "Progress in this lesson"}),
        ),
        h("div", part("body", "guide-body") | {"aria-live": "polite"}, *body),
        h("div", part("paper", "handout")),
        h("div", part("solutions", "handout solutions")),
        h("div", "guide-foot", *foot, None if saved else button("restart", "Restart", RESTART)),
    )


def inspector_html() -> Html:
    """The inspector, which shows cards made by explorer/inspector/card.py, and the fold with the sliders that
    assets/web/page/knobs.js puts into each card.
    """
    close = button("close", "×", "Close (Escape)", label="Close inspector")
    inspector = h(
        "aside",
        part("root", "inspector") | {"aria-label": "Inspector", "hidden": True},
        h("header", "", h("h2", part("title") | {"tabindex": -1}), close),
        h("div", part("body", "inspector-body")),
    )
    toggle = h("summary", "what-if-toggle", "What if …")
    return joined([inspector, h("details", part("sliders"), toggle, h("div", part("slidersHome")))])


def find_html() -> Html:
    """The dialog in which a lane's strategy is searched."""
    field = {"type": "search", "aria-label": "Search strategies", "maxlength": 200, "autofocus": True}
    return h(
        "dialog",
        part("dialog", "help find") | {"aria-label": "Find a strategy"},
        h(
            "header",
            "",
            h("h2", "", "Find a strategy"),
            h("form", {"method": "dialog"}, h("button", {"aria-label": "Close"}, "×")),
        ),
        h("input", part("field") | field | {"placeholder": "nucleus, Leviathan, draft tree …"}),
        h("p", part("status", "soft") | {"role": "status"}),
        h("ul", part("list")),
    )
