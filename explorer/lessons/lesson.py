"""Guided lessons: each is a saved setup with stops; a stop has a question and an answer taken from the run.

A lesson is a data file in assets/lessons/ (schema: assets/lesson.schema.json). Its sentences have slots,
which are filled with facts computed from the traces on screen. Where a claim that a stop relies on does not
hold in this run, the stop says so instead.
"""

import argparse
import asyncio
import re
import zlib
from dataclasses import dataclass
from functools import cache

from decoders.models.catalog import DRAFT, TARGET
from decoders.packages import assets
from decoders.refusal import Refusal
from decoders.strategy import shortened
from decoders.trace.trace import Trace
from explorer.lessons import (  # noqa: F401 (found by name)
    canvas_stops,
    loop_stops,
    path,
    search_stops,
    speculative_stops,
)
from explorer.lessons.facts import FACTS, Reading
from explorer.lessons.handout import handout
from explorer.lessons.stop_cards import pages, stop_card
from explorer.lessons.stops import PLACES, Place
from explorer.page_requests import Call, Lesson
from explorer.runs.model_pool import Loader
from explorer.runs.validation import as_json, check
from visualizers.scene.words import probability

ASSETS = assets()
COMPARE = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def functions(runs, loader: Loader) -> list:
    """The server functions: all lessons, and one lesson filled with the facts of a run."""

    async def explorer_lessons(request: Call) -> str:
        """`{lessons}`: the content of every lesson, along the path, with its pages in the guide."""
        return await as_json(
            asyncio.to_thread(lambda: {"lessons": list(map(with_pages, lessons().values()))})
        )

    async def explorer_lesson(request: Lesson) -> str:
        """The lesson `{lesson}` filled with the facts of the run `{run}`: see `fill_lesson`."""

        def read_run() -> dict:
            run, lesson = runs.find(request.run), find(request.lesson)
            if any(record.lane is not None for record in run.records):
                raise Refusal("This run has not ended yet; the lesson can read it once all lanes are done.")
            return fill_lesson(lesson, [record.trace for record in run.records])

        return await as_json(asyncio.to_thread(read_run))

    return [explorer_lessons, explorer_lesson]


@cache
def lessons() -> dict[str, dict]:
    """Name -> lesson, in the order of the path: see `path.chapters`."""
    return {lesson["name"]: lesson for chapter in path.chapters() for lesson in chapter["lessons"]}


def find(name: str) -> dict:
    """The lesson called `name`. Refusal with one sentence if there is none."""
    if name not in lessons():
        raise Refusal(f"There is no lesson {shortened(name)}; choose one of the {len(lessons())} in Lessons.")
    return lessons()[name]


def with_pages(lesson: dict, saved: bool = False) -> dict:
    """The lesson as the guide takes it, in the app or in a `saved` page."""
    return {**lesson, "pages": pages(lesson, saved, following(lesson["name"]))}


def following(name: str) -> dict | None:
    """The lesson that comes next on the path; None after the last one."""
    names = list(lessons())
    return lessons().get(dict(zip(names, names[1:], strict=False)).get(name))


def fill_lesson(lesson: dict, traces: list[Trace]) -> dict:
    """A lesson filled with the facts of a run: `{stops}`, each from `fill_stop` with its card, and the two
    texts of `handout`. Refusal if the run has other lanes than the lesson.
    """
    wanted = [lane["strategy"] for lane in lesson["setup"]["lanes"]]
    if [trace.strategy for trace in traces] != wanted:
        raise Refusal("These lanes are no longer those of the lesson; Restart brings them back.")
    lanes = {number: Reading(trace) for number, trace in enumerate(traces, 1)}
    stops = [fill_stop(stop, lanes) for stop in lesson["stops"]]
    for stop, filled in zip(lesson["stops"], stops, strict=True):
        filled["card"] = stop_card(stop["title"], filled)
    return {"stops": stops, **handout(lesson, stops)}


def fill_stop(stop: dict, lanes: dict[int, Reading]) -> dict:
    """One stop with its slots filled.

    `{found, holds, lane, step, nodes: {lane: [node]}, text, question, choices: [{text, right}], answer}`.
    `holds` is False where the run lacks what the stop is about; `text` then says so and there is no question.
    """
    place = find_place(stop["find"], lanes)
    if place is None:
        return {
            "found": False,
            "holds": False,
            "lane": 1,
            "step": None,
            "nodes": {},
            "text": stop["lost"],
            "question": None,
            "choices": [],
            "answer": None,
        }
    values = {**place.values, **compute_facts(stop.get("facts", {}), lanes, place)}
    shared = {"found": True, "lane": place.lane, "step": place.step, "nodes": place.nodes}
    unknown = {name for name, value in values.items() if value is None}
    if unknown & required_values(stop) or not all(holds(claim, values) for claim in stop.get("claims", [])):
        text = fill_slots(stop["otherwise"], values)
        return {**shared, "holds": False, "text": text, "question": None, "choices": [], "answer": None}
    choices = [
        {"text": fill_slots(choice["text"], values), "right": is_right(choice["right"], values)}
        for choice in shuffled(stop)
    ]
    words = {key: fill_slots(stop[key], values) for key in ("text", "question", "answer")}
    return {**shared, "holds": True, "choices": choices, **words}


def required_values(stop: dict) -> set[str]:
    """The names of the values that a stop's sentences and claims need."""
    sentences = [stop[key] for key in ("text", "question", "answer")]
    sentences += [choice["text"] for choice in stop["choices"]]
    rights = [choice["right"] for choice in stop["choices"] if isinstance(choice["right"], list)]
    sides = {side for left, _, right in (*stop["claims"], *rights) for side in (left, right)}
    return {name for sentence in sentences for name in re.findall(r"{(\w+)", sentence)} | sides


def shuffled(stop: dict) -> list[dict]:
    """The choices of a stop in an order that does not reveal which is right and is the same at every
    visit.
    """
    return sorted(stop.get("choices", []), key=lambda c: zlib.crc32((stop["title"] + c["text"]).encode()))


def find_place(wanted: dict, lanes: dict[int, Reading]) -> Place | None:
    """The place that a stop asks for."""
    given = {key: value for key, value in wanted.items() if key != "place"}
    return PLACES[wanted["place"]](lanes, **given)


def compute_facts(wanted: dict[str, dict], lanes: dict[int, Reading], place: Place) -> dict:
    """The facts that a stop asks for; "$position" and the like are values of the place."""
    values = {}
    for name, spec in wanted.items():
        given = {key: value for key, value in spec.items() if key != "fact"}
        known = {key: place.values[v[1:]] if str(v).startswith("$") else v for key, v in given.items()}
        values[name] = FACTS[spec["fact"]](lanes, **known)
    return values


def holds(claim: list, values: dict) -> bool:
    """Whether `[left, comparison, right]` is true; a side is a name or a number."""
    left, how, right = claim
    sides = (values[side] if isinstance(side, str) else side for side in (left, right))
    return COMPARE[how](*sides)


def is_right(right: bool | list, values: dict) -> bool:
    """Whether a choice is right: fixed in the lesson, or decided by a claim about this run."""
    return right if isinstance(right, bool) else holds(right, values)


def fill_slots(text: str, values: dict) -> str:
    """The text with its slots filled: see `Slot`."""
    return text.format_map({name: Slot(value) for name, value in values.items()})


@dataclass
class Slot:
    """A value in a sentence. Format p prints a probability as everywhere in the app; |was|were prints a count
    with the matching word; an unknown value is printed as `?`.
    """

    value: float | int | str | None

    def __format__(self, spec: str) -> str:
        if self.value is None:
            return "?"
        if spec == "p":
            return probability(self.value)
        if spec.startswith("|"):
            _, one, many = spec.split("|")
            return f"{self.value} {one if self.value == 1 else many}"
        text = format(self.value, spec)
        return text if isinstance(self.value, str) else text.replace("-", "−").replace("%", " %")


def report(loader: Loader, seeds: int) -> None:
    """Prints which stops of each lesson hold on the loaded models, with the lesson's own seeds and with later
    ones.

    For use after training new weights: a lesson whose stops no longer hold needs another seed.
    """
    from explorer.runs.lane_factory import lane_maker

    make = lane_maker(loader)
    for name, lesson in lessons().items():
        for seed in range(seeds):
            setup = lesson["setup"]
            moved = [{**lane, "seed": lane.get("seed", 0) + seed} for lane in setup["lanes"]]
            filled_lesson = fill_lesson(
                lesson, [lane.run() for lane in make(check({**setup, "lanes": moved}))]
            )
            marks = "".join("✓" if stop["holds"] else "✕" for stop in filled_lesson["stops"])
            print(f"{name}: seeds {[lane['seed'] for lane in moved]} {marks}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Shows which stops of the lessons hold on a pair of models.")
    parser.add_argument("--model", default=TARGET)
    parser.add_argument("--draft", default=DRAFT)
    parser.add_argument(
        "--seeds", type=int, default=1, help="how many seeds to try, starting at the lesson's own"
    )
    options = parser.parse_args()
    chosen = Loader(options.model, options.draft, "cpu")
    chosen.load()
    report(chosen, options.seeds)
