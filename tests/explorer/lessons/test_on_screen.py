"""What a stop says is on screen: quoted words, outlined tokens and the positions that it names, at its step.

Looked for in the views that the stop shows, in the lanes that it names, and in the line of chips above each
of them, of which only the last few are sure to be seen.
"""

import re

import pytest

from decoders.trace.trace import Trace
from explorer.lessons import lesson as lessons
from explorer.lessons.facts import Reading
from visualizers.registry import deltas
from visualizers.scene.marks import Header

LESSONS = lessons.lessons()
STOPS = [(name, index) for name, lesson in LESSONS.items() for index in range(len(lesson["stops"]))]
LINE = 12  # chips that fit into the line of a narrow lane
PLACED = {"position": "token", "first": "phrase", "second": "phrase", "target": "token"}  # where: what


def shown(trace: Trace, view: str, step: int) -> list[dict]:
    """The marks of a view after a step, in order of birth."""
    header = Header(trace.prompt, trace.vocabulary, trace.shaping, trace.title)
    head, fed = deltas(view, header, trace.steps[: step + 1])
    marks = {op["id"]: dict(op) for op in head.get("ops", [])}
    for op in (op for delta in fed for op in delta["ops"]):
        if "kind" in op:
            marks[op["id"]] = dict(op)
        elif "set" in op:
            marks[op["id"]].update(op["set"])
    return [mark for mark in marks.values() if not mark.get("gone") and mark.get("drawn", True)]


def plain(text: str) -> str:
    """A token or a text as it is read: no marks for spaces, no line breaks."""
    return " ".join(text.replace("␣", " ").replace("↵", " ").replace("⇥", " ").split())


def chips(trace: Trace, step: int, view: str) -> list[dict]:
    """The chips that are seen: all where the view is the text, else the end of the line."""
    found = shown(trace, "text", step)
    return found if view == "text" else found[-LINE:]


def begins(found: list[dict], quoted: str) -> bool:
    """Whether the first few chips read as what is quoted."""
    texts = [chip["text"] for chip in found[: LINE + 1]]
    return any(plain("".join(texts[:count])) == quoted for count in range(1, len(texts) + 1))


def says(found: list[dict], quoted: str) -> bool:
    """Whether consecutive chips, those of rejected tokens left out or not, read as what is quoted."""
    given = [chip for chip in found if chip["state"] != "rejected"]
    return any(begins(kept[start:], quoted) for kept in (found, given) for start in range(len(kept)))


def told(name: str, index: int, shipped) -> tuple[dict, dict, dict, list[Trace]]:
    """The stop, what is told of it, the values of its place, and the traces."""
    lesson = LESSONS[name]
    traces, stop = shipped(lesson["setup"]), lesson["stops"][index]
    lanes = {number: Reading(trace) for number, trace in enumerate(traces, 1)}
    return stop, lessons.fill_stop(stop, lanes), lessons.find_place(stop["find"], lanes).values, traces


@pytest.mark.parametrize(("name", "index"), STOPS)
def test_what_a_stop_quotes_and_outlines_is_on_screen(name, index, shipped):
    stop, said, values, traces = told(name, index, shipped)
    seen, marks = [], {}
    for look in stop["look"]:
        trace = traces[look["lane"] - 1]
        line = chips(trace, said["step"], look["view"])
        drawn = line if look["view"] == "text" else shown(trace, look["view"], said["step"])
        seen.append((line, {mark["text"].strip("␣ ") for mark in drawn if mark.get("text")}))
        marks.setdefault(look["lane"], set()).update(mark.get("node") for mark in (*line, *drawn))
    words = [said["text"], said["question"], said["answer"], *(choice["text"] for choice in said["choices"])]
    for quoted in re.findall("“([^”]*)”", " ".join(words)):
        words = plain(quoted.removesuffix(" …"))
        found = (quoted.strip("␣ ") in texts or words and says(line, words) for line, texts in seen)
        assert any(found), f"“{quoted}” is not seen"
    for lane, nodes in said["nodes"].items():
        assert nodes and set(nodes) <= marks.get(lane, set()), f"outlined in lane {lane}, but not there"
    text = "".join(stop[key] for key in ("text", "question", "answer"))
    for slot, word in PLACED.items():
        if f"{{{slot}}}" in text and isinstance(values[slot], int):
            assert stands(traces[said["lane"] - 1], said["step"], values[slot], values[word])


def stands(trace: Trace, step: int, position: int, words: str) -> bool:
    """Whether the words are read in the text from a position on (1: the first new token)."""
    own = [chip for chip in shown(trace, "text", step) if chip["state"] not in ("prompt", "rejected")]
    return begins([chip for chip in own if chip["position"] >= position], plain(words.removesuffix(" …")))


def test_a_phrase_that_comes_twice_is_outlined_twice(shipped):
    _, said, values, traces = told("why-beam-search-repeats", 0, shipped)
    text = {chip["node"]: chip["position"] for chip in shown(traces[0], "text", said["step"])}
    count = min(values["length"], 12)
    twice = [range(values[start], values[start] + count) for start in ("first", "second")]
    assert [text[node] for node in said["nodes"][1]] == [*twice[0], *twice[1]]


def test_the_right_answer_is_not_mostly_the_first_and_stays_where_it_is(shipped):
    order = []
    for name, index in STOPS:
        stop, said, _, _ = told(name, index, shipped)
        assert (
            said["choices"]
            == lessons.fill_lesson(LESSONS[name], shipped(LESSONS[name]["setup"]))["stops"][index]["choices"]
        )
        assert sorted(len(c["text"]) for c in said["choices"]) or not stop["choices"]
        if said["choices"]:
            order.append([choice["right"] for choice in said["choices"]].index(True))
    assert len(order) >= 25
    assert 0.25 <= order.count(0) / len(order) <= 0.5
    assert set(order) >= {0, 1, 2}


def test_the_sampler_lesson_draws_its_lanes_on_one_scale_with_one_random_number(shipped):
    stop, said, _, traces = told("temperature-and-top-p", 1, shipped)
    assert {look["view"] for look in stop["look"]} == {"sampler"} and len(stop["look"]) == 4
    drawn = [shown(trace, "sampler", said["step"]) for trace in traces]
    lengths = [[m["w"] for m in marks if m["kind"] == "cell" and m["y"] == 0] for marks in drawn]
    assert len({row[0] for row in lengths}) == 1  # the model's own distribution, the same in all
    assert len({row[-1] for row in lengths}) == 4  # what each samples from
    assert len({m["x"] for marks in drawn for m in marks if m["kind"] == "symbol"}) == 1
