"""The path through the lessons: chapters in the order in which a teacher would take them, and how long each
lesson takes.

The path is data, assets/lesson_path.json: `[{title, about, family, lessons}]`, `lessons` being names and
`family` that of the colour, "" for none. A lesson that it does not name comes at its end, in a chapter with
the title of the lesson's group.
"""

import json
import math
import re
from functools import cache
from itertools import groupby
from pathlib import Path

from decoders.packages import assets

FOLDER = assets() / "lessons"
LOOKS = ("light", "dark")  # of a picture
READING, LOOKING = 200, 0.75  # words a minute; minutes for the picture and the guess at each stop


@cache
def chapters() -> list[dict]:
    """`[{title, about, family, lessons}]` with the lessons themselves, numbered along it: see `on_path`."""
    files = sorted(FOLDER.glob("*.json"))
    known = {(lesson := json.loads(file.read_text("utf-8")))["name"]: lesson for file in files}
    listed = json.loads((assets() / "lesson_path.json").read_text("utf-8"))
    rest = [one for name, one in known.items() if not any(name in chapter["lessons"] for chapter in listed)]
    rest.sort(key=lambda lesson: lesson["group"])
    listed += [
        {"title": group, "about": "", "family": "", "lessons": [one["name"] for one in members]}
        for group, members in groupby(rest, lambda lesson: lesson["group"])
    ]
    numbers = {name: at for at, name in enumerate((n for one in listed for n in one["lessons"]), 1)}
    return [
        {**chapter, "lessons": [on_path(known[name], numbers[name]) for name in chapter["lessons"]]}
        for chapter in listed
    ]


def on_path(lesson: dict, number: int) -> dict:
    """A lesson with `number`, `minutes`, and `learns`, which is how it begins if it does not say more."""
    learns = lesson.get("learns") or re.split(r"(?<=[.?!]) ", lesson["about"])[0]
    return {**lesson, "number": number, "minutes": minutes(lesson), "learns": learns}


def minutes(lesson: dict) -> int:
    """How long a lesson takes somebody who reads all of it and looks at each stop; a class takes longer."""
    texts = [lesson["about"]]
    for stop in lesson["stops"]:
        texts += [stop["text"], stop["question"], stop["answer"], *(one["text"] for one in stop["choices"])]
    words = sum(len(text.split()) for text in texts)
    return math.ceil(words / READING + LOOKING * len(lesson["stops"]))


def picture_file(name: str, look: str) -> Path:
    """The picture of one of a lesson's stops, as `explorer.lessons.publish_pictures` draws it."""
    return FOLDER / "pictures" / f"{name}.{look}.svg"
