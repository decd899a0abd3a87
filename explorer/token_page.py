"""The page that asks for the app's token: what a visitor sees who opens the app or a link without it.

It is one file without scripts, in the page's own colours. Its form has no address of its own, so the browser
keeps the fragment of the link, with the set-up in it, when the token is sent.
"""

from explorer.export.palette import palette
from explorer.markup import Html, h

TITLE = "Decoding Explorer"
WHY = "This app can load any model, so it opens only with its token."
WHERE = (
    "The token is at the end of the address that the app printed when it started, after ?token=. If you were "
    "sent a link, ask its sender for the token. The set-up of the link is shown afterwards."
)
WRONG = "This is not the token of this app. Unless it was chosen, each start of the app makes a new one."
STYLE = """
:root { %(light)s }
@media (prefers-color-scheme: dark) { :root { %(dark)s } }
body { margin: 0; background: var(--bg); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
header { padding: 8px 16px; border-bottom: 1px solid var(--line); font-size: 15px; font-weight: 700; }
main { box-sizing: border-box; max-width: 34rem; margin: 12vh auto 0; padding: 0 16px; }
h1 { margin: 0 0 12px; font-size: 22px; line-height: 1.3; }
p { margin: 0 0 12px; }
.soft { color: var(--soft); font-size: 14px; }
.wrong { color: var(--wrong); font-weight: 600; }
form { display: flex; flex-wrap: wrap; align-items: end; gap: 8px; margin: 20px 0; }
label { flex: 1 1 16rem; font-size: 14px; font-weight: 600; }
input { display: block; width: 100%%; margin-top: 4px; }
input, button { box-sizing: border-box; height: 44px; padding: 0 14px; font: 15px system-ui, sans-serif; }
input, button { border: 1px solid var(--line); border-radius: 8px; }
input, button { background: var(--bg); color: var(--text); }
button { border-color: var(--text); background: var(--text); color: var(--on_fill); }
button { font-weight: 600; cursor: pointer; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
"""


def token_page(wrong: bool) -> str:
    """The page as HTML. `wrong`: whether a token was sent that is not the app's."""
    colours = {theme: variables(own) for theme, own in palette().items()}
    field = {
        "name": "token",
        "autocomplete": "off",
        "spellcheck": "false",
        "required": True,
        "autofocus": True,
    }
    field |= {"aria-describedby": "wrong", "aria-invalid": "true"} if wrong else {}
    page = h(
        "html",
        {"lang": "en"},
        h(
            "head",
            "",
            h("meta", {"charset": "utf-8"}),
            h("title", "", TITLE),
            h("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
            h("meta", {"name": "color-scheme", "content": "light dark"}),
            h("style", "", Html(STYLE % colours)),
        ),
        h(
            "body",
            "",
            h("header", "", TITLE),
            h(
                "main",
                "",
                h("h1", "", "This app asks for its token"),
                h("p", "", WHY),
                h("form", "", h("label", "", "Token", h("input", field)), h("button", "", "Open")),
                h("p", {"id": "wrong", "class": "wrong", "role": "alert"}, WRONG) if wrong else None,
                h("p", "soft", WHERE),
            ),
        ),
    )
    return f"<!doctype html>{page}"


def variables(own: dict) -> str:
    """A theme's surfaces, and its colours of the focus and of what is wrong, as CSS variables."""
    states = {
        name: own["state"][state]["color"] for name, state in (("focus", "accepted"), ("wrong", "rejected"))
    }
    return " ".join(f"--{name}: {colour};" for name, colour in (own["surface"] | states).items())
