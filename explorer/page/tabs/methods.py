"""The tab Methods: search over cards of all strategies and over all papers, with what is truly here.

A card with its picture is drawn by our own scripts (assets/web/page/methods.js), as the player draws it.
"""

import asyncio
import json
from functools import cache

import gradio as gr

from decoders.registry import FAMILIES
from explorer.catalog import method_cards, papers
from explorer.page.tabs import drawn
from explorer.runs.model_pool import Loader

EVERY = "every"
STATUS = {"works": "✓ works here", "card": "○ told, not built", "missing": "○ not here yet"}
NOTHING = "Nothing has these words in its title. Search for less."
COLUMNS, WIDTHS = ["Paper", "Family", "Here"], ["420px", "180px", "300px"]


def build(tab: gr.Tab, loader: Loader) -> None:
    """Declares what is in the tab."""
    of_methods = [(f"Methods: {title}", f"m:{name}") for name, title in FAMILIES.items()]
    of_papers = [(f"Papers: {title}", f"p:{name}") for name, title in papers.FAMILIES.items()]
    with gr.Row():
        words = gr.Textbox(label="Search methods and papers", placeholder="Words of a title", scale=2)
        family = gr.Dropdown(
            [("All families", EVERY), *of_methods, *of_papers], value=None, label="Family", scale=1
        )
    count = gr.Markdown("Waiting for the models …", elem_id="methods-count")
    gr.Markdown("## Methods")
    cards = drawn("methods")  # its value: the names of the methods that are found
    gr.Markdown("## Papers")
    table = gr.Dataframe(
        headers=COLUMNS,
        label="Papers",
        interactive=False,
        wrap=True,
        column_widths=WIDTHS,
    )

    async def find(words: str | None, family: str | None) -> tuple[str, str, list[list[str]]]:
        await asyncio.to_thread(loader.done.wait)  # importing the strategies twice at once gains nothing
        return await asyncio.to_thread(found, words or "", family or EVERY)

    tab.select(None, family, family, js=f"(chosen) => chosen || '{EVERY}'")  # nothing is listed before
    asked = gr.on(
        [words.change, family.change],
        find,
        [words, family],
        [count, cards, table],
        show_progress="hidden",
        api_visibility="private",
    )
    asked.then(None, cards, None, js="(names) => ExplorerPage.app.methods.keep(JSON.parse(names))")


@cache
def listing() -> dict:
    """All methods and papers; they do not change while the app runs."""
    return method_cards.listing()


def found(words: str, family: str) -> tuple[str, str, list[list[str]]]:
    """What fits: a sentence that counts it, the names of methods as JSON, the rows of papers."""
    known, wanted = listing(), words.lower().split()
    side, _, name = family.partition(":")
    slugs = {row["slug"] for row in known["papers"] if row["family"] == name}
    own = {paper["slug"] for one in known["methods"] if one["family"] == name for paper in one["papers"]}

    def says(text: str) -> bool:
        return all(word in text.lower() for word in wanted)

    cards = [
        one
        for one in known["methods"]
        if (side != "m" or one["family"] == name)
        and (side != "p" or any(paper["slug"] in slugs for paper in one["papers"]))
        and says(words_of(one))
    ]
    rows = [
        row
        for row in known["papers"]
        if (side != "p" or row["family"] == name)
        and (side != "m" or row["slug"] in own)
        and says(row["title"])
    ]
    return counted(cards, rows), json.dumps([one["name"] for one in cards]), [cells(row) for row in rows]


def words_of(method: dict) -> str:
    """What a method is searched by."""
    titles = [paper["title"] for paper in method["papers"]]
    return " ".join(
        [method["title"], method["name"], method["summary"], *titles, *(p["name"] for p in method["parts"])]
    )


def counted(cards: list[dict], rows: list[dict]) -> str:
    """How many methods and papers there are, and how many of these work here."""
    if not cards and not rows:
        return NOTHING
    works = sum(row["status"] == "works" for row in rows)
    many = (
        f"{len(own)} {word}{'' if len(own) == 1 else 's'}"
        for own, word in ((cards, "method"), (rows, "paper"))
    )
    return f"{' · '.join(many)}: {works} work here, {len(rows) - works} not here yet"


def cells(row: dict) -> list[str]:
    """A paper with its family, and by which methods it works here."""
    users = [
        one["title"] for one in listing()["methods"] if row["slug"] in (p["slug"] for p in one["papers"])
    ]
    here = f"✓ works: {', '.join(users)}" if users else STATUS[row["status"]]
    return [row["title"], papers.FAMILIES[row["family"]], here]
