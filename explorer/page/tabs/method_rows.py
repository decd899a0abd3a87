"""The rows of the tab Methods as HTML: thumbnail and sentence of each method, below them all that is known.

What a method says of itself may hold any characters: everything is escaped here. Knows the cards of
explorer/catalog/method_cards.py.
"""

import json
from html import escape

from explorer.alive import STARTED

PICTURES = "explorer-pictures"  # where thumbnails are served, see methods.py


def row(method: dict, families: dict[str, str], code: str) -> str:
    """A method with its thumbnail; opened, it is the whole card. `code`: how programs are walled in here."""
    title, picture = escape(method["title"]), method["picture"]
    models = escape(json.dumps(picture["models"])) if picture else "null"
    opens = f'data-strategy="{escape(method["name"])}" data-models="{models}"'
    return (
        f'<article class="card" id="{anchor(method["name"])}" data-name="{escape(method["name"])}" '
        f'aria-label="{title}" hidden>'
        f'<div class="thumb">{thumbnail(method["name"], caption(picture)) if picture else ""}</div>'
        f'<div class="row"><header><h3>{title}</h3>{badge(method)}</header>'
        f'<p class="what">{prose(what(method))}</p><p class="caption">{under(method, families)}</p></div>'
        f'<button type="button" class="primary" {opens} '
        f'title="Shows Decode with this strategy" aria-label="Open {title} in a lane">Open in a lane</button>'
        f'<details><summary aria-label="All about {title}"></summary>{whole(method, code)}</details>'
        "</article>"
    )


def anchor(name: str) -> str:
    """The id of a method's row, to which the map of decoding leads."""
    return f"method-{name}"


def thumbnail(name: str, words: str) -> str:
    """The picture of a method's recorded run in the page's theme; a browser fetches it when it is seen.

    `words`: what those hear who do not see it.
    """
    return "".join(
        f'<img class="in-{look}" loading="lazy" alt="{escape(words)}" '
        f'src="{PICTURES}/{name}/{look}?{STARTED}">'
        for look in ("light", "dark")
    )


def badge(method: dict) -> str:
    """What it promises of its text."""
    if not method["badge"]:
        return ""
    sign = "≈" if method["badge"] == "relaxed" else "✓"
    return f'<span class="badge" title="{escape(method["promise"])}">{sign} {escape(method["badge"])}</span>'


def what(method: dict) -> str:
    """What it changed about the one that it grew from; one that grew from none says what it does."""
    if method["parent"]:
        return f"Unlike {method['parent']}, it {method['differs']}."
    return method["summary"]


def under(method: dict, families: dict[str, str]) -> str:
    """Its family, and whose it is."""
    first = (method["sources"] or [{}])[0]
    by = ", ".join(str(first[key]) for key in ("authors", "year") if first.get(key))
    link = f"<a {outside(first['link'])}>source</a>" if first.get("link") else ""
    return " · ".join(part for part in (escape(families[method["family"]]), escape(by), link) if part)


def whole(method: dict, code: str) -> str:
    """All that a card says below its row."""
    parameters = [
        f"<dt><code>{escape(p['name'])}</code> <span>{escape(str(p['default']))}</span></dt>"
        f"<dd>{escape(p['help'] or '')}</dd>"
        for p in method["parameters"]
    ]
    parts = [
        f"<dt>{escape(part['kind'])}: {escape(part['name'])}</dt><dd>{escape(part['says'])}</dd>"
        for part in method["parts"]
    ]
    sources = "".join(f"<li>{cited(source)}</li>" for source in method["sources"])
    needs = " and a ".join(method["needs"])
    made = [
        f'<p class="caption">{escape(caption(method["picture"]))}</p>' if method["picture"] else "",
        f'<p class="what">{prose(method["summary"])}</p><div class="how">{how(method["how"])}</div>',
        fold("Parameters", parameters),
        fold("Parts", parts),
        f'<p class="runs-code">It can test by running code. {escape(code)}</p>'
        if method["runs_code"]
        else "",
        f"<h4>Source{'s' if len(method['sources']) > 1 else ''}</h4><ul class='sources'>{sources}</ul>",
        f'<p class="caption">Also called: {escape(", ".join(method["aliases"]))}</p>',
        f'<p class="needs">needs a {escape(needs)} model</p>' if len(method["needs"]) > 1 else "",
    ]
    return f'<div class="whole">{"".join(made)}</div>'


def caption(picture: dict) -> str:
    """What the thumbnail shows."""
    given = "".join(f", {name} {value}" for name, value in picture["parameters"].items())
    by = f", by {picture['models']['target']}" if picture["models"] else ""
    run = f"up to {picture['tokens']} tokens after “{picture['prompt']}”"
    return f"{picture['view']} of a real run: {run}{given}{by}"


def prose(text: str) -> str:
    """Prose in which formulas stand between backticks."""
    pieces = map(escape, text.split("`"))
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def how(parts: list[dict]) -> str:
    """Paragraphs and numbered steps."""
    made = []
    for part in parts:
        steps = "".join(f"<li>{prose(step)}</li>" for step in part.get("steps", []))
        made.append(f"<ol>{steps}</ol>" if steps else f"<p>{prose(part['text'])}</p>")
    return "".join(made)


def fold(title: str, entries: list[str]) -> str:
    """A list that can be opened; nothing if it is empty."""
    if not entries:
        return ""
    return f"<details><summary>{title} ({len(entries)})</summary><dl>{''.join(entries)}</dl></details>"


def cited(source: dict) -> str:
    """A paper or another source, as far as it is known."""
    who = ", ".join(str(source[key]) for key in ("authors", "year") if source.get(key))
    title = escape(source["title"])
    title = f"<a {outside(source['link'])}>{title}</a>" if source.get("link") else title
    return f"{escape(who)}. {title}" if who else title


def outside(link: str) -> str:
    """The attributes of a link to elsewhere."""
    return f'href="{escape(link)}" target="_blank" rel="noopener"'
