"""The tab Lessons: the path through all guided lessons, chapter by chapter, each with a button that starts it
in the lanes.

The page's script draws the guide beside the lanes and marks what was begun and what is done
(assets/web/page/lessons.js).
"""

from collections.abc import Callable

import gradio as gr
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from explorer.lessons.lesson import lessons
from explorer.lessons.path import LOOKS, chapters, picture_file
from explorer.markup import Html, h
from explorer.page.tabs.method_rows import PICTURES, thumbnail

ABOUT = (
    "Each lesson decodes a prompt in the page's own lanes and stops where something interesting happens. It "
    "asks a question, you guess, and the answer comes from the run that you see."
)
KIND = "lesson"  # of pictures, see method_rows.thumbnail
START = """element.addEventListener("click", ({ target }) => {
    const { start } = target.closest("[data-start]")?.dataset || {};
    if (start) ExplorerPage.app.guide.start(start);
});
ExplorerPage.markPath(element);"""


def build() -> None:
    """Declares the contents of the tab."""
    gr.HTML(str(lesson_path(button, picture)), js_on_load=START, apply_default_css=False)


def lesson_path(
    opens: Callable[[dict], Html], drawn: Callable[[str], str], shown: list[dict] | None = None
) -> Html:
    """The path as HTML. `opens`: a lesson's button or link; `drawn`: its picture, "" for none; `shown`:
    chapters as of `path.chapters`, by default all.
    """
    parts = chapters() if shown is None else shown
    every = [lesson for part in parts for lesson in part["lessons"]]
    length = f"{len(every)} lessons, about {sum(one['minutes'] for one in every)} minutes to read alone"
    return h(
        "div",
        "lesson-path explorer",
        h("p", "path-about", ABOUT),
        h("p", "caption", length, h("span", "path-done")),
        *(chapter(part, opens, drawn) for part in parts),
    )


def chapter(part: dict, opens: Callable[[dict], Html], drawn: Callable[[str], str]) -> Html:
    """A chapter of the path, with its lessons."""
    colour = f"--family: var(--family-{part['family']})" if part["family"] else None
    time = f"{sum(lesson['minutes'] for lesson in part['lessons'])} min"
    return h(
        "section",
        {"class": "path-chapter", "style": colour},
        h("h2", "", part["title"], " ", h("small", "", time)),
        h("p", "", part["about"]) if part["about"] else None,
        h("ol", "", *(station(lesson, opens, drawn) for lesson in part["lessons"])),
    )


def station(lesson: dict, opens: Callable[[dict], Html], drawn: Callable[[str], str]) -> Html:
    """A lesson on the path: its picture, what one learns, its length, and whether it was begun or is done."""
    lanes, stops = len(lesson["setup"]["lanes"]), len(lesson["stops"])
    length = f"{lesson['minutes']} min · {lanes} {'lane' if lanes == 1 else 'lanes'} · {stops} stops"
    return h(
        "li",
        {"class": "station", "data-lesson": lesson["name"]},
        h("div", "station-picture", Html(drawn(lesson["name"]))),
        h(
            "div",
            "station-words",
            h("h3", "", f"{lesson['number']}. {lesson['title']}"),
            h("p", "", lesson["learns"]),
            h("p", "caption", length, " ", h("b", "lesson-state")),
        ),
        opens(lesson),
    )


def button(lesson: dict) -> Html:
    """The button that starts a lesson in the lanes."""
    label = f"Start lesson {lesson['number']}: {lesson['title']}"
    return h("button", {"type": "button", "data-start": lesson["name"], "aria-label": label}, "Start")


def picture(name: str) -> str:
    """The picture of one of a lesson's stops in the page's theme; "" if none is stored."""
    return thumbnail(name, "", KIND) if picture_file(name, LOOKS[0]).exists() else ""


def routes() -> list[Route]:
    """Routes for Gradio's app: the pictures of lessons."""

    async def served(request: Request) -> Response:
        name, look = request.path_params["name"], request.path_params["look"]
        if name not in lessons() or look not in LOOKS or not picture_file(name, look).exists():
            return Response("There is no such picture.", status_code=404, media_type="text/plain")
        # the address contains the start time of the app, so browsers may cache the picture
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return FileResponse(picture_file(name, look), headers=headers, media_type="image/svg+xml")

    return [Route(f"/{PICTURES}/{KIND}/{{name}}/{{look}}", served)]
