"""The rows of the tab Methods as HTML: thumbnail and summary of each method, and its whole card below.

The text of a method may contain any characters, so everything is escaped here.
"""

import json
from html import escape

from explorer.alive import STARTED

PICTURES = "explorer-pictures"  # the path under which methods.py serves thumbnails


def row(method: dict, families: dict[str, str], code: str) -> str:
    """A method with its thumbnail; it opens to the whole card. `code`: how programs are sandboxed here.

    The card is in a template until the row is opened (methods.py): all cards have 20,000 elements.
    """
    title, picture = escape(method["title"]), method["picture"]
    models = escape(json.dumps(picture["models"])) if picture else "null"
    opens = f'data-strategy="{escape(method["name"])}" data-models="{models}"'
    return (
        f'<article class="card" id="{anchor(method["name"])}" data-name="{escape(method["name"])}" '
        f'aria-label="{title}" hidden>'
        f'<div class="thumb">{thumbnail(method["name"], caption(picture)) if picture else ""}</div>'
        f'<div class="row"><header><h3>{title}</h3>{badge(method)}</header>'
        f'<p class="what">{prose(what(method))}</p><p class="caption">{origin(method, families)}</p></div>'
        f'<button type="button" class="primary" {opens} '
        f'title="Shows Decode with this strategy" aria-label="Open {title} in a lane">Open in a lane</button>'
        f'<details><summary aria-label="All about {title}"></summary>'
        f"<template>{full_card(method, code, whole_picture(method))}</template></details>"
        "</article>"
    )


def anchor(name: str) -> str:
    """The HTML id of a method's row, to which the map of decoding links."""
    return f"method-{name}"


def thumbnail(name: str, words: str, kind: str = "thumbnail") -> str:
    """The picture of a method's recorded run in the page's theme; browsers fetch it when it becomes visible.

    `words`: the alternative text for screen readers; `kind`: "thumbnail", or "picture" for the whole figure.
    """
    return "".join(
        f'<img class="in-{look}" loading="lazy" alt="{escape(words)}" '
        f'src="{PICTURES}/{kind}/{name}/{look}?{STARTED}">'
        for look in ("light", "dark")
    )


def badge(method: dict) -> str:
    """The badge of a method: what it promises about its text."""
    if not method["badge"]:
        return ""
    sign = "≈" if method["badge"] == "relaxed" else "✓"
    return f'<span class="badge" title="{escape(method["promise"])}">{sign} {escape(method["badge"])}</span>'


def what(method: dict) -> str:
    """How a method differs from the one it is derived from; its summary if it is derived from none."""
    if method["parent"]:
        return f"Unlike {method['parent']}, it {method['differs']}."
    return method["summary"]


def origin(method: dict, families: dict[str, str]) -> str:
    """A method's family, and the authors, year and link of its first source."""
    first = (method["sources"] or [{}])[0]
    by = ", ".join(str(first[key]) for key in ("authors", "year") if first.get(key))
    link = f"<a {external(first['link'])}>source</a>" if first.get("link") else ""
    colour = f'<i class="family-mark" style="--family: var(--family-{method["family"]})"></i>'
    family = f"{colour}{escape(families[method['family']])}"
    return " · ".join(part for part in (family, escape(by), link) if part)


def whole_picture(method: dict) -> str:
    """The picture of a method's recorded run with its words, "" if none is recorded."""
    picture = method["picture"]
    if not picture:
        return ""
    return f'<div class="thumb">{thumbnail(method["name"], caption(picture), "picture")}</div>'


def full_card(method: dict, code: str, picture: str = "") -> str:
    """The card of a method, below its row. `picture`: that of its run, as HTML."""
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
        picture,
        f'<p class="caption">{escape(caption(method["picture"]))}</p>' if method["picture"] else "",
        f'<p class="what">{prose(method["summary"])}</p>' if what(method) != method["summary"] else "",
        f'<div class="how">{how(method["how"])}</div>',
        f'<p class="gain">{escape(method["gain"])}</p>' if method["gain"] else "",
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
    """Says what the thumbnail shows."""
    given = "".join(f", {name} {value}" for name, value in picture["parameters"].items())
    by = f", by {picture['models']['target']}" if picture["models"] else ""
    run = f"up to {picture['tokens']} tokens after “{picture['prompt']}”"
    return f"{picture['view']} of a real run: {run}{given}{by}"


def prose(text: str) -> str:
    """Prose as HTML; text between backticks becomes code."""
    pieces = map(escape, text.split("`"))
    return "".join(f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces))


def how(parts: list[dict]) -> str:
    """Paragraphs and numbered steps as HTML."""
    made = []
    for part in parts:
        steps = "".join(f"<li>{prose(step)}</li>" for step in part.get("steps", []))
        made.append(f"<ol>{steps}</ol>" if steps else f"<p>{prose(part['text'])}</p>")
    return "".join(made)


def fold(title: str, entries: list[str]) -> str:
    """A collapsible list; empty if there are no entries."""
    if not entries:
        return ""
    return f"<details><summary>{title} ({len(entries)})</summary><dl>{''.join(entries)}</dl></details>"


def cited(source: dict) -> str:
    """Cites a paper or another source, with authors and year if they are known."""
    who = ", ".join(str(source[key]) for key in ("authors", "year") if source.get(key))
    title = escape(source["title"])
    title = f"<a {external(source['link'])}>{title}</a>" if source.get("link") else title
    return f"{escape(who)}. {title}" if who else title


def external(link: str) -> str:
    """The attributes of an external link."""
    return f'href="{escape(link)}" target="_blank" rel="noopener"'
