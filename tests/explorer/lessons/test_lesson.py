"""Lessons: each is well made, and on the shipped models its stops are found and what they claim is so."""

import json
import math

import jsonschema
import pytest

from decoders.registry import get, strategies
from decoders.trace.events import Verdict
from explorer.lessons import lesson as lessons
from explorer.lessons.facts import FACTS, Reading, probability_of
from explorer.lessons.stops import PLACES
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from tests.helpers.ready_loader import ready_loader
from tests.helpers.server_calls import ask

LESSONS = lessons.lessons()
ON_THE_PATH = ("number", "minutes")  # what a lesson has besides the content of its file
TOPICS = (
    *(
        "greedy",
        "temperature",
        "beam",
        "speculative",
        "tree",
        "jacobi",
        "entropy",
        "cost",
        "residual",
        "why-trees",
    ),
    *(
        "overconfident",
        "kv-slots",
        "length-penalty",
        "contrastive",
        "coin",
        "best-first",
        "bayes",
        "costs-what",
    ),
    *("copying", "lenient"),
)


def changed(lesson: dict, lane: int, **parameters) -> dict:
    """The lesson's setup with other parameters in one lane."""
    setup = json.loads(json.dumps(lesson["setup"]))
    setup["lanes"][lane - 1]["parameters"] |= parameters
    return setup


def test_there_are_the_lessons_that_the_issue_names():
    assert len(LESSONS) >= 20
    assert all(any(topic in name for name in LESSONS) for topic in TOPICS)


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_follows_the_schema_and_names_what_exists(name):
    lesson = {key: value for key, value in LESSONS[name].items() if key not in ON_THE_PATH}
    schema = json.loads((lessons.ASSETS / "lesson.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(lesson)
    lanes = lesson["setup"]["lanes"]
    for lane in lanes:
        strategy = get(lane["strategy"])
        strategy.check(lane["parameters"])
        assert lane["view"] in strategy.views_with(lane["parameters"])
    for stop in lesson["stops"]:
        assert stop["find"]["place"] in PLACES
        assert all(spec["fact"] in FACTS for spec in stop.get("facts", {}).values())
        for look in stop["look"]:
            lane = lanes[look["lane"] - 1]
            assert look["view"] in get(lane["strategy"]).views_with(lane["parameters"])
        assert len(stop["choices"]) != 1


@pytest.mark.parametrize("name", LESSONS)
def test_every_stop_is_found_and_its_claim_holds_on_the_shipped_models(name, shipped):
    lesson = LESSONS[name]
    traces = shipped(lesson["setup"])
    told = lessons.fill_lesson(lesson, traces)
    assert len(told["stops"]) == len(lesson["stops"])
    for stop, said in zip(lesson["stops"], told["stops"], strict=True):
        assert said["found"] and said["holds"], f"{name}, {stop['title']}: {said['text']}"
        words = [said["text"], said["question"], said["answer"], *(c["text"] for c in said["choices"])]
        assert all("{" not in w for w in words)
        assert not said["choices"] or sum(choice["right"] for choice in said["choices"]) == 1
        assert 0 <= said["step"] < max(len(trace.steps) for trace in traces)
        for lane, nodes in said["nodes"].items():
            assert set(nodes) <= set(traces[lane - 1].nodes())
    json.dumps(told)


def test_the_numbers_of_a_test_are_those_of_the_trace(shipped):
    lesson = LESSONS["speculative-acceptance"]
    (trace,) = shipped(lesson["setup"])
    accepted, rejected, replaced = lessons.fill_lesson(lesson, [trace])["stops"][:3]
    judged = [(step.index, v) for step in trace.steps for v in step.of(Verdict)]
    first = next((s, v) for s, v in judged if v.status == "accepted" and v.p < v.q)
    assert accepted["step"] == first[0] and accepted["nodes"] == {1: [first[1].node]}
    lost = next((s, v) for s, v in judged if v.status == "rejected")
    assert rejected["nodes"] == {1: [lost[1].node]}
    assert f"q = {lost[1].q:.3g}".replace("0.", ".")[:6] in rejected["text"]
    own = next((s, v) for s, v in judged if v.status == "resampled")
    assert (
        replaced["nodes"][1][0] == own[1].node and f"{own[1].p:.0%}".replace("%", " %") in replaced["answer"]
    )


def test_totals_are_summed_from_the_trace(shipped):
    lanes = {n: Reading(t) for n, t in enumerate(shipped(LESSONS["cost-against-quality"]["setup"]), 1)}
    for number, own in lanes.items():
        per_token = [t.logprob for t in own.tokens]
        assert lessons.FACTS["logprob"](lanes, number) == pytest.approx(sum(per_token))
        assert lessons.FACTS["logprob"](lanes, number, first=3) == pytest.approx(sum(per_token[:3]))
        forwards = sum(
            e.model == "target" and e.kind != "lens"
            for s in own.trace.steps
            for e in s.events
            if type(e).__name__ == "Forward"
        )
        assert lessons.FACTS["total"](lanes, number, "target_forwards") == forwards
        entropies = [t.entropy / math.log(2) for t in own.tokens]
        assert lessons.FACTS["mean_entropy"](lanes, number) == pytest.approx(sum(entropies) / len(entropies))


def test_a_repetition_is_one(shipped):
    trace = shipped(LESSONS["why-beam-search-repeats"]["setup"])[0]
    found = PLACES["first_repeat"]({1: Reading(trace)}, 1)
    text, values = trace.output(), found.values
    a, b, n = values["first"] - 1, values["second"] - 1, values["length"]
    assert n >= 4 and b >= a + 4 and text[a : a + n] == text[b : b + n]
    grams = [tuple(text[i : i + 4]) for i in range(b)]
    assert not any(grams[i] in grams[: max(0, i - 3)] for i in range(b))  # nothing was repeated before


def test_a_stop_says_so_when_its_fact_is_not_so_in_this_run(shipped):
    lesson = LESSONS["greedy-or-sampling"]
    told = lessons.fill_lesson(lesson, shipped(changed(lesson, 2, temperature=0.0)))["stops"]
    parting, likelier = told[1], told[3]
    assert not parting["found"] and parting["text"] == lesson["stops"][1]["lost"]
    assert likelier["found"] and not likelier["holds"] and "came out more probable" in likelier["text"]
    assert parting["question"] is None and not likelier["choices"] and likelier["answer"] is None
    trees = LESSONS["temperature-and-top-p"]
    flat = lessons.fill_lesson(trees, shipped(changed(trees, 3, temperature=0.2)))["stops"][0]
    assert not flat["holds"] and "Restart" in flat["text"]


def test_slots_and_claims():
    values = {"a": -1.5, "n": 3, "word": "-x%", "gone": None, "p": 0.00123}
    filled = lessons.fill_slots("{a:.1f} {n} {word} {gone:.2f} {p:p} {p:.1%}", values)
    assert filled == "−1.5 3 -x% ? .0012 0.1 %"
    assert lessons.fill_slots("{n:|was|were}, {one:|was|were}", {"n": 3, "one": 1}) == "3 were, 1 was"
    assert lessons.holds(["a", "<", "n"], values) and not lessons.holds(["n", ">=", 3.5], values)
    assert lessons.is_right(True, values) and not lessons.is_right(["n", "=", 4], values)
    assert probability_of(None, 3) is None


def test_the_page_gets_lessons_and_what_they_say_of_a_run():
    loader = ready_loader()
    runs = Runs(lane_maker(loader))
    listed, told = lessons.functions(runs, loader)
    assert [lesson["name"] for lesson in ask(listed, {})["lessons"]] == list(LESSONS)
    lesson = LESSONS["draft-trees"]
    run = runs.start(check(lesson["setup"] | {"max_new_tokens": 8}), "a", "paused")
    assert "has not ended yet" in ask(told, {"run": run.id, "lesson": lesson["name"]})["error"]
    runs.control(run.id, "stop")
    make = lane_maker(loader)  # on the worker, where the stopped run may still be at its first step
    decoded = runs.on_worker(
        lambda: [lane.run() for lane in make(check(lesson["setup"] | {"max_new_tokens": 8}))]
    )
    done = runs.show(decoded.result())
    assert len(ask(told, {"run": done.id, "lesson": lesson["name"]})["stops"]) == len(lesson["stops"])
    assert (
        "no longer those of the lesson"
        in ask(told, {"run": done.id, "lesson": "cost-against-quality"})["error"]
    )
    assert "There is no lesson 'magic'" in ask(told, {"run": done.id, "lesson": "magic"})["error"]
    assert "is gone" in ask(told, {"run": "guess", "lesson": "draft-trees"})["error"]
    assert ask(told, {})["refused"] == "run is missing."
    runs.close()


def test_a_run_that_wrote_nothing_is_no_traceback(shipped):
    for lesson in LESSONS.values():
        empty = [lane_of(lane) for lane in lesson["setup"]["lanes"]]
        for said in lessons.fill_lesson(lesson, empty)["stops"]:
            assert not said["holds"] and said["text"]


def lane_of(lane: dict):
    """A trace without a step."""
    from decoders.trace.trace import Trace

    assert lane["strategy"] in strategies()
    return Trace(lane["strategy"], "", {}, 0, {}, [1, 2])
