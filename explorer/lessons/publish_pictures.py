"""Draws the picture of each lesson: a small view at one of its stops, from a run of the lesson.

`python -m explorer.lessons.publish_pictures` decodes all lessons, or those that are named, with the shipped
models and writes the pictures to assets/lessons/pictures/, for both themes. They are stored since a run takes
seconds, and all of them take 200 kB.
"""

import argparse

from decoders import files
from decoders.models.catalog import DRAFT, TARGET
from decoders.trace.trace import Trace
from explorer.lessons.facts import Reading
from explorer.lessons.lesson import find, find_place, lessons
from explorer.lessons.path import LOOKS, picture_file
from explorer.runs.model_pool import Loader
from visualizers.figures.thumbnail import thumbnail


def picture(lesson: dict, traces: list[Trace], look: str) -> str:
    """The first view that the pictured stop of a lesson shows, after that stop's step, as a small SVG."""
    stop = lesson["stops"][lesson.get("pictured", 1) - 1]
    lanes = {number: Reading(trace) for number, trace in enumerate(traces, 1)}
    shown, place = stop["look"][0], find_place(stop["find"], lanes)
    trace = traces[shown["lane"] - 1]
    step = len(trace.steps) if place is None or shown.get("whole") else min(place.step + 1, len(trace.steps))
    return thumbnail(trace, look, shown["view"], step)


def publish(names: list[str]) -> None:
    """Decodes these lessons and writes their pictures. Refusal with one sentence for an unknown lesson."""
    from explorer.runs.lane_factory import lane_maker  # on demand: imports torch
    from explorer.runs.validation import check

    loader = Loader(TARGET, DRAFT, "cpu")
    loader.load()
    make = lane_maker(loader)
    for lesson in map(find, names):
        traces = [lane.run() for lane in make(check(lesson["setup"]))]
        for look in LOOKS:
            file = picture_file(lesson["name"], look)
            file.parent.mkdir(exist_ok=True)
            files.write(file, picture(lesson, traces, look))
        print(lesson["name"], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draws the pictures of lessons.")
    parser.add_argument("lessons", nargs="*", help="names of lessons (default: all)")
    publish(parser.parse_args().lessons or list(lessons()))
