"""The map of decoding, and a page for each method: its recorded run with all views, and its whole card."""

from collections.abc import Callable, Sequence
from html import escape

from decoders.registry import BADGES, FAMILIES, strategies
from decoders.trace.trace import Trace, load
from explorer.catalog import method_cards, origins, papers
from explorer.export.run_file import settings
from explorer.markup import Html, h
from explorer.page.tabs import method_rows
from explorer.page.tabs.method_map import method_map
from explorer.site.pages import Site, content, heading
from explorer.site.replays import replay_page

SAYS = (
    "Each method of this map has a page with a recorded run: every token, every draft and every decision, "
    "step by step."
)
RAN = "The recorded run is by {models}. "
RUN = 'Decode your own prompt with it: decoding-explorer run --strategy {name} --prompt "Once upon a time"'


def build(site: Site, names: Sequence[str] | None, say: Callable[[str], None]) -> set[str]:
    """Writes the map and the pages of all methods, or of these, and returns their names."""
    titles_of = {row["slug"]: row["title"] for row in papers.papers()}
    known = strategies()
    chosen = [name for name in (known if names is None else names) if method_cards.file_of(name).exists()]
    for at, name in enumerate(chosen):
        method_page(
            site, method_cards.card(known[name], titles_of), chosen[at - 1 : at] + chosen[at + 1 : at + 2]
        )
        say(f"methods: {at + 1} of {len(chosen)}")
    map_page(site, set(chosen))
    return set(chosen)


def map_page(site: Site, pictured: set[str]) -> None:
    """Writes the map of decoding."""
    from explorer.catalog.method_map import family_tree  # on demand: networkx is slow to import

    graph = family_tree()
    graph = graph.subgraph(pictured)
    families = {
        name: title
        for name, title in FAMILIES.items()
        if any(graph.nodes[n]["family"] == name for n in graph)
    }
    made = method_map(
        graph, families, pictured, link=link, image=lambda name, words: image(name, words, "methods/")
    )
    body = content(heading("Map of decoding", h("p", "site-says", SAYS)), made, wide=True)
    site.page("methods.html", "Map of decoding", SAYS, body, scripts=("method-map.js",), kind="page")


def link(name: str) -> str:
    """The address of a method's page in the map."""
    return f"methods/{name}.html"


def image(name: str, words: str, folder: str = "") -> str:
    """The picture of a method's recorded run in the page's theme."""
    return "".join(
        f'<img class="in-{look}" loading="lazy" alt="{escape(words)}" '
        f'src="{folder}pictures/{name}.{look}.svg">'
        for look in ("light", "dark")
    )


def method_page(site: Site, method: dict, beside: list[str]) -> None:
    """Writes the page of a method and its pictures. `beside`: the methods before and after it."""
    name, title = method["name"], method["title"]
    trace = load(method_cards.file_of(name))
    prompt = method_cards.picture_facts(name)["prompt"]
    promised = {"badge": trace.badge, "promise": BADGES.get(trace.badge, "")}  # by this run, not by default
    intro = h(
        "div",
        {"class": "explorer site-intro", "id": "main"},
        heading(title, Html(method_rows.badge(method | promised))),
        h("p", "site-says", Html(method_rows.prose(method_rows.what(method)))),
        h("p", "caption", Html(method_rows.origin(method, FAMILIES))),
    )
    card = h(
        "section",
        {"class": "explorer site-main card", "id": "about", "aria-label": f"About {title}"},
        h("h2", "", f"How {title} works"),
        Html(method_rows.full_card(method, "")),
        h("p", "caption", RAN.format(models=models(trace)), RUN.format(name=name)),
        neighbours(beside),
    )
    for look in ("light", "dark"):
        site.write(f"methods/pictures/{name}.{look}.svg", method_cards.thumbnail(name, look))
    replay_page(
        site,
        f"methods/{name}.html",
        title,
        method["summary"],
        [trace],
        {**settings([trace]), "prompt": prompt},
        intro,
        card,
        kind="method",
        words=" ".join([name.replace("_", " "), *method["aliases"], *map(origins.cited, method["sources"])]),
    )


def models(trace: Trace) -> str:
    """The models of a recorded run."""
    return " and ".join(f"{name} ({role})" for role, name in trace.models.items())


def neighbours(names: list[str]) -> Html:
    """Links to the methods before and after this one."""
    known = strategies()
    return h(
        "nav",
        {"class": "site-next", "aria-label": "Other methods"},
        *(h("a", {"href": f"{name}.html"}, known[name].title) for name in names),
        h("a", {"href": "../methods.html"}, "Map of decoding"),
    )
