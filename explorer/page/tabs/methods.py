"""The tab Methods: search over all strategies and papers, and how far each paper is implemented.

A row opens to the whole card of its method (method_rows.py); its thumbnail is drawn when it becomes visible.
"""

import asyncio
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from decoders.refusal import Refusal
from decoders.registry import FAMILIES, strategies
from decoders.trace.number_format import many
from explorer.catalog import method_cards, origins, papers, search
from explorer.page import uploads
from explorer.page.tabs import FETCH, UNTRACKED, carried, mark_at_work, method_rows, paper_cards, unmark
from explorer.page.tabs.captioned import captioned, escaped, look_of
from explorer.runs.model_pool import Loader
from explorer.tasks import sandbox

EVERY = "every"
WAITING, DRAWING = "Waiting for the models …", "Drawing the map …"
COLUMNS, WIDTHS = ["Paper", "Authors", "Year", "Link", "Here"], ["360px", "140px", "60px", "100px", "260px"]
SHOWN = {"All": "", "Works": "works", "Miniature": "miniature", "Card": "card"}
PAPERS = (
    "Choose a row to read more. A *miniature* shows a paper's idea on points in the plane; a *card* says "
    "what a paper does and which method here comes closest to it. Neither implements the paper."
)
DRAWN = {"thumbnail": method_cards.thumbnail, "picture": method_cards.picture}
MAX_QUOTED = 60  # characters of the search words
# Handles "Open in a lane", and takes a card out of its template when its row is opened. `element` is the
# component, which stays the same when its value changes.
OPEN = """element.addEventListener("click", ({ target }) => {
    const { strategy, models } = target.closest("[data-strategy]")?.dataset || {};
    if (strategy) ExplorerPage.app.openInLane(strategy, JSON.parse(models));
});
element.addEventListener("toggle", ({ target }) => {
    const card = target.querySelector(":scope > template");
    card?.replaceWith(card.content);
}, true);"""
# The page's address names the open paper.
FOLLOW = """const tell = () => {
    const [, slug] = location.hash.match(/^#paper=([\\w-]{1,80})$/) || [];
    if (!slug) return;
    props.value = slug;
    ExplorerPage.app.showSection("methods");
};
addEventListener("hashchange", tell); setTimeout(tell);"""
# The map of papers is drawn when it comes into sight, and follows the search from then on.
IN_SIGHT = """const map = new IntersectionObserver((places) => {
    if (!places.some((place) => place.isIntersecting)) return;
    map.disconnect();
    props.value = "in sight";
}, { rootMargin: "50% 0px" });
setTimeout(() => map.observe(document.getElementById("papers-map")));"""
ASK_AGAIN = "(...shown) => shown.pop() && JSON.stringify(shown)"
# Shows only the rows of these methods, in this order; on the map the others are pale.
KEEP = """(names) => {
    const rows = document.querySelector("#explorer-methods .cards"), kept = JSON.parse(names || "[]");
    ExplorerPage.keepOnMap(kept);
    if (!rows) return;
    for (const row of rows.children) row.hidden = !kept.includes(row.dataset.name);
    rows.append(...kept.map((name) => rows.querySelector(`[data-name="${name}"]`)));
}"""


def paper() -> gr.HTML:
    """The component whose value is the paper that the page's address names, "" for none. It is outside the
    tab, whose components do not exist before the tab is selected.
    """
    return carried(FOLLOW)


def build(tab: gr.Tab, loader: Loader, look: gr.HTML, paper: gr.HTML) -> None:
    """Declares the contents of the tab. `look`: its value is the page's theme; `paper`: see above."""
    of_methods = [(f"Methods: {title}", f"m:{name}") for name, title in FAMILIES.items()]
    of_papers = [(f"Papers: {title}", f"p:{name}") for name, title in papers.FAMILIES.items()]
    with gr.Row():
        words = gr.Textbox(
            label="Search methods and papers", placeholder="nucleus, Medusa, Leviathan, draft tree …", scale=2
        )
        family = gr.Dropdown(
            [("All families", EVERY), *of_methods, *of_papers], value=None, label="Family", scale=1
        )
    with gr.Row(elem_classes="map-heading"):
        gr.Markdown("## Map of decoding")
        save = gr.DownloadButton("Download as a poster (SVG, A2)", scale=0, min_width=260, size="md")
        save.click(make_poster, None, save, api_visibility="private").success(None, save, save, js=FETCH)
    tree = gr.HTML(
        f'<p class="caption">{WAITING}</p>',
        apply_default_css=False,
        elem_id="methods-map",
        elem_classes="methods-map",
    )
    count = gr.Markdown(WAITING, elem_id="methods-count")
    cards = gr.HTML(
        js_on_load=OPEN, apply_default_css=False, elem_id="explorer-methods", elem_classes="explorer"
    )
    names = carried()  # names of the matching methods, as JSON
    gr.Markdown("## Map of papers")
    asked = carried(IN_SIGHT)  # the search that the map shows, "" until it comes into sight
    with gr.Column(elem_id="papers-map") as chart:
        gr.Markdown(DRAWING, elem_classes="papers-waiting")
    gr.Markdown(f"## Papers\n\n{PAPERS}")
    status = gr.Radio(list(SHOWN), value="All", label="Show papers")
    here = table("Papers", COLUMNS)
    paper_cards.build(here, look, paper)

    async def find(words: str | None, family: str | None, status: str | None, before: str) -> tuple:
        await asyncio.to_thread(loader.done.wait)  # importing the strategies twice at once gains nothing
        lists = [gr.skip()] * 2 if before else await asyncio.to_thread(all_methods)
        return *lists, *await asyncio.to_thread(matches, words or "", family or EVERY, SHOWN[status or "All"])

    tab.select(
        None, family, family, js=f"(chosen) => chosen || '{EVERY}'"
    )  # nothing is listed before the tab is selected
    found = gr.on(
        [words.change, family.change, status.change],
        find,
        [words, family, status, names],
        [tree, cards, count, names, here],
        js=mark_at_work("methods-count"),
        **UNTRACKED,
        api_visibility="private",
    )
    unmark(found, "methods-count")
    gr.on([names.change, cards.change], None, names, None, js=KEEP)
    shown = [words, family, status, look]
    gr.on([one.change for one in shown], None, [*shown, asked], asked, js=ASK_AGAIN, api_visibility="private")
    with chart:

        @gr.render([asked, *shown], triggers=[asked.change], show_progress="hidden")
        def draw(asked: str, words: str | None, family: str | None, status: str | None, look: str) -> None:
            if not asked:
                return
            figure = map_of(words or "", family or EVERY, SHOWN[status or "All"], look_of(look))
            if figure is None:
                gr.Markdown("No paper matches. Try fewer words.")
            else:
                captioned(figure, wide=True)


def table(label: str, columns: list[str]) -> gr.Dataframe:
    """A table of papers."""
    kinds = ["markdown" if name == "Link" else "str" for name in columns]
    return gr.Dataframe(
        headers=columns,
        label=label,
        datatype=kinds,
        interactive=False,
        wrap=True,
        column_widths=WIDTHS[: len(columns)],
        max_height=420,
    )


async def make_poster() -> str:
    """Makes the poster at the first click, since its pictures of all methods take some seconds."""
    try:
        return await asyncio.to_thread(poster_file)
    except OSError as error:
        raise gr.Error(uploads.NO_ROOM, print_exception=False) from error


@cache
def poster_file() -> str:
    """Writes the map as a poster with a picture of a real run of each method; the file is made once per
    process.
    """
    from explorer.catalog.method_map import family_tree
    from visualizers.figures.decoding_map import poster

    path = Path(tempfile.mkdtemp(prefix="decoding-explorer-"), "map-of-decoding.svg")
    pictures = {
        one["name"]: method_cards.thumbnail(one["name"], "light")
        for one in listing()["methods"]
        if one["picture"]
    }
    path.write_text(poster(family_tree(), FAMILIES, pictures), "utf-8")
    return str(path)


@cache
def listing() -> dict:
    """All methods and papers, which do not change while the app runs."""
    return method_cards.listing()


@cache
def papers_map() -> tuple:
    """The map of all papers, and the order of its nodes, which stays the same in every search."""
    from explorer.catalog.paper_map import paper_map  # on demand: networkx is slow to import
    from visualizers.graphs.layered import columns

    graph = paper_map()
    return graph, columns(graph)


def map_of(words: str, family: str, status: str, look: str) -> Any:
    """The map of the matching papers, as a figure; None if there are none."""
    from explorer.catalog.paper_map import around
    from visualizers.figures.paper_map import paper_map  # on demand: plotly is slow to import

    graph, order = papers_map()
    cards, rows = matching(words, family)
    names = [f"paper {row['slug']}" for row in rows if status in ("", row["status"])]
    if (words.strip() or family != EVERY) and not status:
        names += [f"strategy {one['name']}" for one in cards]
    every = len(names) == len(listing()["papers"])
    shown = graph if every else around(graph, names)
    return paper_map(shown, order, look, len(listing()["papers"])) if names else None


def matches(words: str, family: str, status: str = "") -> tuple[str, str, list[list[str]]]:
    """The matches of a search: a sentence with their number, the names of methods as JSON, and the rows of
    papers, restricted to `status` if it is given.
    """
    cards, rows = matching(words, family)
    shown = [cells(row) for row in rows if status in ("", row["status"])]
    names = json.dumps([one["name"] for one in cards])
    return count_sentence(words, cards, rows), names, shown


def matching(words: str, family: str) -> tuple[list[dict], list[dict]]:
    """The methods and papers that match."""
    known = listing()
    side, _, name = family.partition(":")
    slugs = {row["slug"] for row in known["papers"] if row["family"] == name}
    own = {paper["slug"] for one in known["methods"] if one["family"] == name for paper in one["papers"]}
    cards = [
        one
        for one in search.best(sorted(known["methods"], key=first_to_try), words, search.of_method)
        if (side != "m" or one["family"] == name)
        and (side != "p" or any(paper["slug"] in slugs for paper in one["papers"]))
    ]
    rows = [
        row
        for row in search.best(known["papers"], words, search.of_paper)
        if (side != "p" or row["family"] == name) and (side != "m" or row["slug"] in own)
    ]
    return cards, rows


def first_to_try(method: dict) -> int:
    """The sort key of a method among others that match as well: first the methods to try first."""
    name = method["name"]
    return origins.START.index(name) if name in origins.START else len(origins.START)


@cache
def all_methods() -> tuple[str, str]:
    """All methods as HTML: their map and their rows. The rows are hidden; the browser chooses which to show,
    since there are many.
    """
    from explorer.catalog.method_map import family_tree  # on demand: networkx is slow to import
    from explorer.page.tabs.method_map import method_map

    code, methods = sandbox.protection().sentence, sorted(listing()["methods"], key=first_to_try)
    rows = "".join(method_rows.row(one, FAMILIES, code) for one in methods)
    cards = (
        f'<section class="methods cards long-list" aria-label="Cards of methods">{rows}</section>'
        '<button type="button" class="rest-of-list">Show all methods</button>'
    )
    pictured = {one["name"] for one in methods if one["picture"]}
    return method_map(family_tree(), FAMILIES, pictured), cards


def routes() -> list[Route]:
    """Routes for Gradio's app: the pictures of methods."""

    async def picture(request: Request) -> Response:
        kind, name, look = (request.path_params[key] for key in ("kind", "name", "look"))
        if kind not in DRAWN or name not in strategies() or look not in ("light", "dark"):
            return Response("There is no such picture.", status_code=404, media_type="text/plain")
        try:
            made = await asyncio.to_thread(DRAWN[kind], name, look)
        except Refusal as error:
            return Response(str(error), status_code=404, media_type="text/plain")
        # the address contains the start time of the app, so browsers may cache the picture
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(made, headers=headers, media_type="image/svg+xml")

    return [Route(f"/{method_rows.PICTURES}/{{kind}}/{{name}}/{{look}}", picture)]


def count_sentence(words: str, methods: list, rows: list) -> str:
    """The number of methods and papers, and how many of the papers are implemented."""
    if not (methods or rows):
        quoted = f" for “{escaped(words.strip()[:MAX_QUOTED])}”" if words.strip() else ""
        return f"Nothing found{quoted}. Try fewer words."
    works = sum(row["status"] == "works" for row in rows)
    if not words.strip() and len(methods) == len(listing()["methods"]):
        return f"{many(len(methods), 'method')} from {many(works, 'paper')}"
    cards = len(rows) - works
    shown = [many(len(methods), "method"), f"{many(works, 'paper')} here"]
    shown += [f"{cards} as {'cards' if cards > 1 else 'a card'}"] if cards else []
    return " · ".join(shown)


def linked(row: dict) -> str:
    """A paper's link as Markdown, "" if it has none."""
    places = {"arxiv.org": "arXiv", "aclanthology.org": "ACL", "openreview.net": "OpenReview"}
    where = next((title for place, title in places.items() if place in row["link"]), "link")
    return f"[{where}]({row['link']})" if row["link"] else ""


def cells(row: dict) -> list[str]:
    """The cells of a paper's row: its citation, and how far it is implemented."""
    users = [
        one["title"] for one in listing()["methods"] if row["slug"] in (p["slug"] for p in one["papers"])
    ]
    works = f"✓ works: {', '.join(users)}" if users else "✓ an experiment"
    return [
        paper_cards.titled(row),
        row["authors"],
        row["year"],
        linked(row),
        works if row["status"] == "works" else row["status"],
    ]
