"""The front page: one sentence, one replay that moves, and the ways into the site."""

from explorer.catalog import recorded_runs
from explorer.export import palette
from explorer.export.drawings import listed, scene_html
from explorer.export.run_file import pack
from explorer.markup import Html, h
from explorer.runs.run_state import answer
from explorer.runs.scheduler import Runs
from explorer.site.pages import NAME, SMALLEST, Site, content, heading

SENTENCE = "See how a language model decodes: every guess, every choice, step by step."
VIEW = "beam_tree"
MOVING = (
    "Four beams of a real run grow from “{prompt}”. Bold lines survive; where a line ends, the model found "
    "better texts."
)
WAYS = {
    "lessons.html": "A real run, a question at each stop, and the answer from that run.",
    "methods.html": "The map of decoding: each method with a recorded run and all its views.",
    "experiments.html": "Repeatable questions with their figures, tables and intervals.",
    "papers.html": "The papers behind the methods, and how far each is covered.",
    "docs/index.html": "Install it, use it as a library, extend it.",
}


def build(site: Site, counts: dict[str, int], replayed: bool) -> None:
    """Writes the front page.

    `counts`: what the site has of each section, by the section's file; `replayed`: whether beam search, which
    it shows, has a page.
    """
    more = h("a", {"href": "methods/beam.html"}, "Replay beam search") if replayed else None
    trace = recorded_runs.traces()[0]
    (lane,) = answer(Runs(None).show([trace], run_id="front"), [{"view": VIEW, "ops": 0, "rows": 0}])["lanes"]
    shown = {key: lane[key] for key in ("head", "ops", "text_head")}
    blob = {"palette": palette.palette(), "lane": shown | {"chips": [row["chips"] for row in lane["rows"]]}}
    words = MOVING.format(prompt=recorded_runs.PROMPT)
    body = content(
        heading(SENTENCE),
        h(
            "figure",
            {"class": "site-front", "id": "front"},
            h("div", {"class": "dp-chips dp-chips-line", "data-front": "chips"} | listed()),
            h("div", {"class": "scene dp-scene", "data-front": "scene"}, scene_html()),
            h(
                "figcaption",
                "",
                h("button", {"type": "button", "data-front": "play"}, "Pause"),
                h("span", "", words),
                more,
            ),
        ),
        h(
            "nav",
            {"class": "site-ways", "aria-label": "What is here"},
            *(way(file, title, counts.get(file)) for file, title in site.sections.items()),
        ),
        wide=True,
    )
    carried = {"front": pack(blob, level=SMALLEST)}
    site.page("index.html", NAME, SENTENCE, body, scripts=("player.js", "front.js"), carried=carried)


def way(file: str, title: str, count: int | None) -> Html:
    """A section as a link."""
    return h(
        "a",
        {"href": file},
        h("b", "", f"{count} {title.lower()}" if count else title),
        h("span", "", WAYS[file]),
    )
