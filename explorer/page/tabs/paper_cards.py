"""The card of a paper, below the table of papers: what it does, its closest relative here, its miniature.

The page's address says which paper is open. Figures are drawn for the page's theme.
"""

from dataclasses import asdict

import gradio as gr

from decoders.registry import strategies
from explorer.catalog import papers
from explorer.page.tabs import UNTRACKED
from explorer.page.tabs.captioned import captioned, escaped, look_of

KINDS = {
    "works": "**It works here**: {how}.",
    "miniature": "**A miniature of its idea.** The paper itself does not run here.",
    "card": "**A card.** The paper does not run here.",
}


# Puts the paper that was chosen in the table into the address.
NAME = """(slug) => {
    if (slug && location.hash !== `#paper=${slug}`) history.replaceState(null, "", `#paper=${slug}`);
}"""
# Scrolls to the card once it is there.
SCROLL = (
    """setTimeout(() => document.querySelector("#paper-card")?.scrollIntoView({ block: "center" }), 300);"""
)


def build(table: gr.Dataframe, look: gr.HTML, chosen: gr.HTML) -> None:
    """Declares the card below `table`. `look`: its value is the page's theme; `chosen`: the paper's slug."""

    def choose(picked: gr.SelectData) -> str:
        title = str(picked.row_value[0])
        return next((row["slug"] for row in papers.papers() if titled(row) == title), "")

    table.select(choose, None, chosen, **UNTRACKED, api_visibility="private")
    chosen.change(None, chosen, None, js=NAME, api_visibility="private")

    @gr.render([chosen, look], triggers=[chosen.change, look.change])
    def show(slug: str, look: str) -> None:
        row = next((row for row in papers.papers() if row["slug"] == slug), None)
        if row is None:
            return
        gr.Markdown(card(row), elem_id="paper-card")
        gr.HTML("", js_on_load=SCROLL)
        models(
            [name for kind, _, name in (way.partition(" ") for way in row["how"]) if kind == "model"], look
        )
        if row["card"] and row["card"]["miniature"]:
            miniature(slug, look_of(look))


def titled(row: dict) -> str:
    """A paper's title, preceded by the name of its method if it has one."""
    return f"{row['alias']}: {row['title']}" if row["alias"] else row["title"]


def card(row: dict) -> str:
    """A paper as Markdown: how far it is covered here, and the text of its card."""
    who = ", ".join(part for part in (row["authors"], row["year"]) if part)
    lines = [f"### {escaped(titled(row))}", escaped(who), KINDS[row["status"]].format(how=ways_text(row))]
    far = row["card"]
    if far and row["status"] != "works":
        lines += [
            f"**What it does.** {escaped(far['does'])}",
            f"**For decoding.** {escaped(far['decoding'])}",
            f"**Nearest here.** {escaped(far['nearest'])}{strategy_link(far['strategy'])}",
        ]
    return "\n\n".join(line for line in lines if line)


def ways_text(row: dict) -> str:
    """Lists what realises a paper: strategies, parts, lenses, experiments, models."""
    known = strategies()
    ways = [way.partition(" ")[::2] for way in row["how"]]
    text = ", ".join(
        f"strategy {escaped(known[name].title)}" if kind == "strategy" else f"{kind} {escaped(name)}"
        for kind, name in ways
    )
    return f"{text} ({escaped(row['lacks'])})" if row["lacks"] else text


def strategy_link(strategy: str) -> str:
    """A sentence with a link to a strategy's row; empty if `strategy` is."""
    if not strategy:
        return ""
    return f" See [{escaped(strategies()[strategy].title)}](#method-{strategy})."


def models(names: list[str], look: str) -> None:
    """Shows what each layer of these small architectures attends to, as measured by an experiment."""
    if not names:
        return
    from explorer.experiments.without_decoding.cache_of_architectures import stored_picture
    from visualizers.figures.experiments import figures

    pictures = [one for one in map(stored_picture, names) if one]
    for figure in figures({"pictures": pictures}, look_of(look)):
        captioned(figure, wide=True)


def miniature(slug: str, look: str) -> None:
    """Shows the panels, curves and sentences of a paper's miniature."""
    from explorer.miniatures import miniatures, story_of  # on demand: plotly is slow to import
    from visualizers.figures.experiments import figures
    from visualizers.figures.moving_points import moving_points

    about, story = miniatures()[slug], story_of(slug)
    gr.Markdown(f"#### Miniature: {escaped(about.title)}\n\n{escaped(about.asks)}")
    with gr.Row():
        for panel in story.panels:
            captioned(moving_points(look=look, **vars(panel)))
        for figure in figures({"chart": asdict(story.chart)} if story.chart else {}, look):
            captioned(figure)
    gr.Markdown("\n".join(f"- {escaped(sentence)}" for sentence in story.says))
