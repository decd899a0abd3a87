"""The list in which a lane's strategy is found, as HTML: those that fit some words, each with its picture.

It searches as the tab Methods does; the dialog around it is the page's (assets/web/page/find-strategy.js).
"""

import asyncio
from html import escape

from explorer.catalog import search
from explorer.page.tabs import methods
from explorer.page.tabs.method_rows import thumbnail, what
from explorer.page_requests import Find, Models
from explorer.runs.validation import as_json


def functions(runs, loader) -> list:
    """What the page can ask for: see `explorer.page.layout.server_functions`."""

    async def explorer_find(request: Find) -> str:
        """`{words, models}` gives `{sentence, html}`: see `found`."""
        await asyncio.to_thread(loader.done.wait)  # the strategies are known when the models are
        return await as_json(asyncio.to_thread(found, request.words, roles(request.models)))

    return [explorer_find]


def roles(models: Models) -> set[str]:
    """The roles for which a page has a model."""
    return {role for role, name in models.model_dump().items() if name}


def found(words: str, models: set[str]) -> dict[str, str]:
    """`sentence` counts those that fit, `html` lists them; without words, what to start with is first. Those
    that need another role than `models` cannot be chosen.
    """
    fit = search.best(methods.listing()["methods"], words, search.of_method)
    if not words.strip():
        fit.sort(key=methods.first_to_try)
    nothing = f"Nothing found for “{words.strip()[: methods.MAX_QUOTED]}”. Try fewer words."
    sentence = methods.many(len(fit), "strategy", "strategies") if fit else nothing
    return {"sentence": sentence, "html": "".join(entry(method, models) for method in fit)}


def entry(method: dict, models: set[str]) -> str:
    """A button that names its strategy, or says which model it lacks."""
    lacking = next((role for role in method["needs"] if role not in models), None)
    says = f"Needs a {lacking} model: choose one under Models." if lacking else what(method)
    names = f'data-name="{escape(method["name"])}"{" disabled" * bool(lacking)}'
    picture = thumbnail(method["name"], "") if method["picture"] else ""
    return (
        f'<li><button type="button" {names}>{picture}<strong>{escape(method["title"])}</strong>'
        f"<span>{escape(says)}</span></button></li>"
    )
