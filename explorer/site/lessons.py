"""The lessons as pages: each guides through a run that is decoded when the site is built."""

from collections.abc import Callable, Sequence
from itertools import product

from decoders.models.catalog import DRAFT, TARGET
from explorer.lessons import lesson as lessons_of
from explorer.lessons.path import LOOKS, chapters, picture_file
from explorer.markup import Html, h
from explorer.page.tabs.lessons import lesson_path
from explorer.runs.model_pool import Loader
from explorer.site.pages import Site, content, heading
from explorer.site.replays import replay_page

SAYS = (
    "Each lesson stops a real run where something interesting happens, asks a question, and answers it from "
    "the run that you see."
)


def build(site: Site, loader: Loader, names: Sequence[str] | None, say: Callable[[str], None]) -> None:
    """Decodes all lessons, or these, with the models of `loader`, and writes their pages and their list."""
    from explorer.runs.lane_factory import lane_maker  # on demand: imports torch
    from explorer.runs.validation import check

    make, known = lane_maker(loader), lessons_of.lessons()
    chosen = list(known) if names is None else list(names)
    for at, name in enumerate(chosen):
        following = f"{chosen[at + 1]}.html" if at + 1 < len(chosen) else "../lessons.html"
        traces = [lane.run() for lane in make(check(known[name]["setup"]))]
        lesson_page(site, known[name], traces, following)
        say(f"lessons: {at + 1} of {len(chosen)}")
    list_page(site, chosen)


def default_loader() -> Loader:
    """The shipped models, loaded."""
    loader = Loader(TARGET, DRAFT, "cpu")
    loader.load()
    return loader


def lesson_page(site: Site, lesson: dict, traces: list, following: str) -> None:
    """Writes the page of a lesson. `following`: where its end leads."""
    content = {
        "lesson": lessons_of.with_pages(lesson, saved=True),
        "message": lessons_of.fill_lesson(lesson, traces),
        "next": following,
    }
    way = [h("a", {"href": "../lessons.html"}, "Lessons"), " · ", lesson["group"]]
    title = h("h1", "dp-unseen", lesson["title"])  # the guide shows it
    intro = h("div", {"class": "explorer site-intro", "id": "main"}, title, h("p", "caption", *way))
    replay_page(
        site,
        f"lessons/{lesson['name']}.html",
        lesson["title"],
        lesson["about"],
        traces,
        lesson["setup"] | models_of(traces),
        intro,
        lesson=content,
        kind="lesson",
        words=" ".join([lesson["group"], *(stop["title"] for stop in lesson["stops"])]),
    )


def models_of(traces: list) -> dict:
    """The models of a run as a part of its settings."""
    return {"models": {role: name for trace in traces for role, name in trace.models.items()}}


def list_page(site: Site, names: list[str]) -> None:
    """Writes the path through these lessons, and their pictures."""
    parts = []
    for part in chapters():
        members = [lesson for lesson in part["lessons"] if lesson["name"] in names]
        parts += [{**part, "lessons": members}] if members else []
    for name, look in product(names, LOOKS):
        if picture_file(name, look).exists():
            site.write(f"lessons/pictures/{name}.{look}.svg", picture_file(name, look).read_bytes())
    body = content(heading("Lessons"), lesson_path(link, picture, parts))
    site.page("lessons.html", "Lessons", SAYS, body, kind="page")


def link(lesson: dict) -> Html:
    """The link that leads to the page of a lesson."""
    label = f"Start lesson {lesson['number']}: {lesson['title']}"
    return h("a", {"href": f"lessons/{lesson['name']}.html", "class": "button", "aria-label": label}, "Start")


def picture(name: str) -> str:
    """The picture of one of a lesson's stops in the page's theme; "" if none is stored."""
    if not picture_file(name, LOOKS[0]).exists():
        return ""
    file = f"lessons/pictures/{name}"
    looks = ({"class": f"in-{look}", "src": f"{file}.{look}.svg", "alt": ""} for look in LOOKS)
    return "".join(h("img", {**look, "loading": "lazy"}) for look in looks)
