"""The list from which a lane's strategy is chosen, as HTML: all that match a search, with pictures.

It uses the search of the tab Methods. The page draws the dialog (assets/web/page/find-strategy.js).
"""

import asyncio
from html import escape

from explorer.catalog import search
from explorer.page.tabs import methods
from explorer.page.tabs.method_rows import thumbnail, what
from explorer.page_requests import Find, Models
from explorer.runs.validation import as_json


def functions(runs, loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""

    async def explorer_find(request: Find) -> str:
        """`{words, models}` gives `{sentence, html}`: see `find`."""
        await asyncio.to_thread(loader.done.wait)  # strategies are imported by the time models are loaded
        return await as_json(asyncio.to_thread(find, request.words, chosen_roles(request.models)))

    return [explorer_find]


def chosen_roles(models: Models) -> set[str]:
    """The roles for which the page has chosen a model."""
    return {role for role, name in models.model_dump().items() if name}


def find(words: str, roles: set[str]) -> dict[str, str]:
    """Returns the number of matching strategies as `sentence` and a list of them as `html`.

    Without search words, the strategies recommended for beginners come first. Strategies that need a model
    in a role outside `roles` are listed but disabled.
    """
    matching = search.best(methods.listing()["methods"], words, search.of_method)
    if not words.strip():
        matching.sort(key=methods.first_to_try)
    nothing = f"Nothing found for “{words.strip()[: methods.MAX_QUOTED]}”. Try fewer words."
    sentence = methods.many(len(matching), "strategy", "strategies") if matching else nothing
    return {"sentence": sentence, "html": "".join(strategy_button(method, roles) for method in matching)}


def strategy_button(method: dict, roles: set[str]) -> str:
    """A button that chooses a strategy, or a disabled one that says which model is missing."""
    missing = next((role for role in method["needs"] if role not in roles), None)
    text = f"Needs a {missing} model: choose one under Models." if missing else what(method)
    attributes = f'data-name="{escape(method["name"])}"{" disabled" * bool(missing)}'
    picture = thumbnail(method["name"], "") if method["picture"] else ""
    return (
        f'<li><button type="button" {attributes}>{picture}<strong>{escape(method["title"])}</strong>'
        f"<span>{escape(text)}</span></button></li>"
    )
