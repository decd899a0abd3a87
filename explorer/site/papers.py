"""The papers: how far each is covered, and the miniatures of those whose idea runs on points in the plane."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from decoders.registry import strategies
from explorer.catalog import papers
from explorer.markup import Html, h
from explorer.site.figures import carried_figures, figures_html
from explorer.site.pages import Site, content, heading

SAYS = "The papers behind the methods, and how far each is covered here."
KINDS = {
    "works": "It works here",
    "miniature": "A miniature of its idea runs here, on points in the plane; the paper itself does not.",
    "card": "It does not run here.",
}


def build(
    site: Site,
    methods: set[str],
    experiments: set[str],
    miniatures: Sequence[str] | None,
    say: Callable[[str], None],
) -> None:
    """Writes the page of the papers, and those of all miniatures or of these, by the slugs of their papers.
    `methods`, `experiments`: those that have a page.
    """
    rows = papers.papers()

    def linked(way: str) -> Html | str:
        """What realises a paper, with a link to its page if it has one."""
        kind, _, name = way.partition(" ")
        text = f"{kind} {strategies()[name].title if kind == 'strategy' else name}"
        if kind == "strategy" and name in methods:
            return h("a", {"href": f"methods/{name}.html"}, text)
        if kind == "experiment" and name in experiments:
            return h("a", {"href": f"experiments/{name}.html"}, text)
        return text

    small = [
        row
        for row in rows
        if row["status"] == "miniature" and (miniatures is None or row["slug"] in miniatures)
    ]
    for at, row in enumerate(small):
        miniature_page(site, row)
        say(f"miniatures: {at + 1} of {len(small)}")
    shown = {row["slug"] for row in small}
    made: list[Html] = []
    for family, title in papers.FAMILIES.items():
        members = [row for row in rows if row["family"] == family]
        made += [h("h2", "", title), *(paper(row, linked, row["slug"] in shown) for row in members)]
    body = content(
        heading("Papers", h("p", "site-says", SAYS), h("p", "caption", papers.summary(rows))), *made
    )
    site.page("papers.html", "Papers", SAYS, body, kind="page")
    for row in rows:
        words = " ".join([row["alias"], row["authors"], row["year"]])
        site.index.append([row["title"], f"papers.html#{row['slug']}", "paper", words])


def paper(row: dict, linked: Callable[[str], Html | str], in_miniature: bool) -> Html:
    """A paper: closed its title, open what is known of it. Its id is its slug, so that a link opens it.
    `in_miniature`: whether its miniature has a page.
    """
    who = ", ".join(part for part in (row["authors"], row["year"]) if part)
    title = f"{row['alias']}: {row['title']}" if row["alias"] else row["title"]
    ways = [piece for way in row["how"] for piece in (", ", linked(way))][1:]
    lacks = f" ({row['lacks']})" if row["lacks"] else ""
    covered = [KINDS["works"], ": ", *ways, lacks, "."] if ways else [KINDS[row["status"]]]
    said = [h("p", "", *covered)]
    if (far := row["card"]) and row["status"] != "works":
        said += [
            h("p", "", h("b", "", "What it does. "), far["does"]),
            h("p", "", h("b", "", "For decoding. "), far["decoding"]),
            h("p", "", h("b", "", "Nearest here. "), far["nearest"], *see(far["strategy"], linked)),
        ]
    if in_miniature:
        said.append(h("p", "", h("a", {"href": f"papers/{row['slug']}.html"}, "See the miniature")))
    if row["link"]:
        said.append(h("p", "", h("a", {"href": row["link"], "rel": "noopener"}, "Read the paper")))
    summary = h("summary", "", h("b", "", title), h("span", "", who), h("small", "", row["status"]))
    return h("details", {"class": "site-paper", "id": row["slug"]}, summary, *said)


def see(strategy: str, linked: Callable[[str], Html | str]) -> list[Html | str]:
    """A sentence that leads to a strategy; empty if there is none."""
    return [" See ", linked(f"strategy {strategy}"), "."] if strategy else []


def miniature_page(site: Site, row: dict) -> None:
    """Writes the page of a miniature: its panels, its curves and its sentences."""
    from explorer.miniatures import miniatures, story_of  # on demand: plotly is slow to import
    from visualizers.figures.experiments import figures
    from visualizers.figures.moving_points import moving_points

    about, story = miniatures()[row["slug"]], story_of(row["slug"])
    chart = {"chart": asdict(story.chart)} if story.chart else {}
    drawn = {
        look: [*(moving_points(look=look, **vars(panel)) for panel in story.panels), *figures(chart, look)]
        for look in ("light", "dark")
    }
    body = content(
        heading(about.title, h("p", "site-says", about.asks)),
        h("p", "caption", f"A miniature of the idea of “{row['title']}”. It does not implement the paper."),
        figures_html(drawn["light"]),
        h("ul", "", *(h("li", "", sentence) for sentence in story.says)),
        h("p", "site-next", h("a", {"href": f"../papers.html#{row['slug']}"}, "All papers")),
        wide=True,
    )
    site.page(
        f"papers/{row['slug']}.html",
        about.title,
        about.asks,
        body,
        scripts=("figures.js",),
        carried=carried_figures(drawn),
        kind="miniature",
        words=row["title"],
    )
