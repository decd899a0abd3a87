"""The report over many prompts: its numbers are the microscope's, and both sides of a comparison add up."""

import math
from statistics import fmean

import pytest

from decoders.lane import Lane, Limits
from tests.helpers import tiny_models
from visualizers.analysis import acceptance_report as module
from visualizers.analysis.acceptance_report import Guesses, Measured, Text, acceptance_report, worst_first
from visualizers.analysis.lane_stats import LaneFacts
from visualizers.analysis.speculation_report import microscope

PROMPTS = ([40, 41, 42], [7, 8], [200, 3, 3])


@pytest.fixture(scope="module")
def traces():
    models = {"target": tiny_models.make(), "draft": tiny_models.make(seed=1)}
    return [Lane("speculative", list(p), models, {}, 0, Limits(24)).run() for p in PROMPTS]


def texts_of(traces):
    made = []
    for at, trace in enumerate(traces):
        tokens = [one.text for one in LaneFacts(trace).tokens]
        made.append(Text(f"prompt {at}", None, tokens, [1.0] * len(tokens), [0.5] * len(tokens)))
    return made


def guesses(right):
    n = len(right)
    overlap = [None if one is None else float(one) for one in right]
    return Guesses(["x"] * n, [0.4] * n, right, [1] * n, [0.4] * n, overlap, [True] * n)


def values(draft):
    return {one["name"]: one["value"] for one in draft["metrics"]}


def test_the_metrics_of_one_prompt_are_the_microscopes(traces):
    for trace, text in zip(traces, texts_of(traces), strict=True):
        report = acceptance_report("t", 0.0, [text], [Measured("d", [trace])])
        assert report["drafts"][0]["metrics"] == microscope(trace)["metrics"]
        assert report["drafts"][0]["depths"] == microscope(trace)["depths"]


def test_the_metrics_of_many_prompts_are_vllms_formulas_over_all_rounds(traces):
    draft = acceptance_report("t", 0.0, texts_of(traces), [Measured("d", traces)])["drafts"][0]
    rounds = [made for trace in traces for made in LaneFacts(trace).rounds]
    drafted = [one for made in rounds for one in made.drafted]
    accepted = sum(one.accepted for one in drafted)
    found = values(draft)
    assert found["num_drafts"] == len(rounds) and found["num_draft_tokens"] == len(drafted)
    assert found["draft_acceptance_rate"] == accepted / len(drafted)
    assert found["mean_acceptance_length"] == 1 + accepted / len(rounds)
    assert sum(found["acceptance_histogram"]) == len(rounds)
    per_prompt = draft["prompts"]
    assert sum(one["num_drafts"] for one in per_prompt) == len(rounds)
    rejections = sum(one["rejections"] for one in per_prompt)
    assert rejections == sum(draft["causes"].values()) == len(draft["rejections"])
    tested = sum(len(made.tests) for made in rounds)
    assert sum(one["tested"] for one in draft["positions"]) == tested
    assert sum(one["tested"] for one in draft["entropies"]) == tested


def test_the_worst_prompt_comes_first_and_what_drafted_nothing_last():
    prompts = [{"mean_acceptance_length": value} for value in (3.0, None, 1.5, 2.0)]
    assert worst_first({"prompts": [{}] * 4, "drafts": [{"prompts": prompts}]}) == [2, 3, 0, 1]


def test_every_token_has_a_mark_and_every_rejection_is_marked_as_resampled(traces):
    draft = acceptance_report("t", 0.0, texts_of(traces), [Measured("d", traces)])["drafts"][0]
    for at, trace in enumerate(traces):
        marks = draft["prompts"][at]["marks"]
        assert len(marks) == len(trace.output())
        assert {one["place"] for one in draft["rejections"] if one["prompt"] == at} == {
            place for place, mark in enumerate(marks) if mark == "resampled"
        }


def test_two_drafters_at_the_same_places_add_up(traces):
    texts = texts_of(traces)
    a = [guesses([True] * len(t.tokens)) for t in texts]
    b = [guesses([None, *([False, True] * 20)][: len(t.tokens)]) for t in texts]
    sides = acceptance_report("t", 0.0, texts, [Measured("a", traces, a), Measured("b", traces, b)])["sides"]
    places = sum(len(t.tokens) - 1 for t in texts)  # where both can be asked
    assert sides["places"] == places
    assert sides["both"] + sides["only_a"] + sides["only_b"] + sides["neither"] == places
    assert (sides["only_b"], sides["neither"]) == (0, 0) and sides["only_a"] > 0
    assert sides["shares"][0] == 1.0 and sides["difference"] == pytest.approx(sides["only_a"] / places)
    per_prompt = [fmean(not one for one in g.right if one is not None) for g in b]
    assert sides["error"] == pytest.approx(module.stdev(per_prompt) / math.sqrt(len(b)))
    assert all(one["guess"] == "x" and one["token"] for one in sides["examples_a"])
    assert sides["examples_b"] == []


def test_above_temperature_0_places_are_compared_by_their_overlap(traces):
    texts = texts_of(traces)[:1]
    n = len(texts[0].tokens)
    a = Guesses(["x"] * n, [0.4] * n, [False] * n, [2] * n, [0.2] * n, [0.75] * n, [True] * n)
    b = Guesses(["x"] * n, [0.4] * n, [True] * n, [1] * n, [0.2] * n, [0.5] * n, [True] * n)
    drafts = [Measured("a", traces[:1], [a]), Measured("b", traces[:1], [b])]
    sides = acceptance_report("t", 1.0, texts, drafts)["sides"]
    assert sides["shares"] == [0.75, 0.5] and sides["difference"] == 0.25 and "both" not in sides


def test_a_drafter_that_cannot_be_asked_is_not_compared(traces):
    texts = texts_of(traces)
    known = Measured("a", traces, [guesses([True] * len(t.tokens)) for t in texts])
    assert acceptance_report("t", 0.0, texts, [known, Measured("b", traces)])["sides"] is None
