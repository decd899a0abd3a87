"""What sliders get to compute with: which lanes have which, and numbers that are those of the run."""

import math

import pytest

from decoders.chooser import uniform
from decoders.lane import Lane, Limits
from decoders.trace.events import Verdict
from decoders.trace.scores import Measure
from decoders.trace.trace import from_json
from explorer.catalog import recorded_runs
from explorer.inspector.knobs import NOT_HERE, OTHER_RULE, SAMPLER, TRUNCATED, knobs
from tests.helpers import tiny_models


@pytest.fixture(scope="module")
def models():
    return {"target": tiny_models.make(endings=0.0), "draft": tiny_models.make(seed=1, endings=0.0)}


def decoded(models, strategy: str, begin=None, tokens: int = 16, **parameters):
    prompt = models["target"].encode("the cat sat on a mat; the cat")
    return Lane(strategy, prompt, models, parameters, 3, Limits(max_new_tokens=tokens), begin=begin).run()


@pytest.mark.parametrize(
    ("strategy", "parameters", "names"),
    [
        ("sample", {}, SAMPLER),
        ("greedy", {}, SAMPLER),
        ("contrastive_decoding", {"temperature": 1.0}, SAMPLER),
        ("speculative", {}, ("num_assistant_tokens", *SAMPLER)),
        ("speculative", {"temperature": 1.0}, SAMPLER),
        ("lenient", {"temperature": 1.0}, ("lenience", *SAMPLER)),
        ("lenient", {"temperature": 1.0, "top_k": 5}, ("lenience",)),
        ("typical_acceptance", {}, ("epsilon", "delta")),
    ],
)
def test_a_lane_has_sliders_for_what_its_stored_distributions_can_answer(models, strategy, parameters, names):
    found = knobs(decoded(models, strategy, **parameters))
    assert tuple(knob["name"] for knob in found["knobs"]) == names
    for knob in found["knobs"]:
        assert knob["low"] <= knob["value"] == found["values"][knob["name"]] <= knob["high"]


@pytest.mark.parametrize("strategy", ["beam", "mirostat", "speculative_tree", "fuzzy", "ead", "jacobi"])
def test_strategies_that_decide_in_other_ways_have_none(models, strategy):
    assert knobs(decoded(models, strategy)) == {"why": OTHER_RULE}


def test_a_sentence_says_what_is_not_stored(models):
    assert knobs(decoded(models, "speculative", temperature=1.0, top_p=0.9)) == {"why": TRUNCATED}
    assert "top_h" in knobs(decoded(models, "sample", top_h=0.5))["why"]
    assert "repetition_penalty" in knobs(decoded(models, "speculative", repetition_penalty=1.2))["why"]
    file = decoded(models, "sample").to_json()
    assert knobs(from_json({**file, "strategy": "another"})) == {"why": NOT_HERE}
    assert "seed" in knobs(from_json({**file, "seed": 4}))["why"]


def test_a_trace_from_before_a_parameter_has_its_default_and_the_stored_run_has_sliders():
    beam, speculative = map(knobs, recorded_runs.traces())
    assert beam == {"why": OTHER_RULE}
    older = recorded_runs.traces()[1].to_json()
    del older["parameters"]["min_p"]
    assert knobs(from_json(older))["values"]["min_p"] == 0.0
    assert [knob["name"] for knob in speculative["knobs"]][:2] == ["num_assistant_tokens", "temperature"]


def test_a_place_has_the_numbers_of_the_run(models):
    trace = decoded(models, "sample", temperature=0.7)
    found = knobs(trace)
    drawn = {e.node: e for s in trace.steps for e in s.of(Measure) if e.name == "draw"}
    assert [one["token"] for one in found["places"]] == trace.output()
    for one in found["places"]:
        draw, offer = drawn[one["node"]], one["p"]
        assert (one["u"], offer["temperature"]) == (draw.total, 0.7)
        named = dict(zip(offer["ids"], offer["logs"], strict=True))
        own = named.get(one["token"], (offer["extra"] or {}).get("log"))
        assert (own is None) == (offer["beside"] is None)
        if own is not None:
            place, before = offer["beside"], [token for token in named if token < one["token"]]
            assert place["id"] == one["token"] and place["count"] == min(
                offer["others"], one["token"] - len(before)
            )
            below = place["below"] + math.fsum(math.exp(named[token]) for token in before)
            assert below == pytest.approx(draw.parts["low"], abs=1e-5)
            assert math.exp(own) == pytest.approx(draw.parts["high"] - draw.parts["low"], rel=1e-4)
        known = math.fsum(map(math.exp, offer["logs"])) + (
            math.exp(offer["extra"]["log"]) if offer["extra"] else 0.0
        )
        assert known + offer["rest"] == pytest.approx(1.0, abs=1e-5)


def test_penalties_that_run_before_the_temperature_are_in_the_offer(models):
    found = knobs(decoded(models, "sample", repetition_penalty=1.5, temperature=0.5, top_k=4))
    plain = knobs(decoded(models, "sample", temperature=0.5, top_k=4))
    assert found["places"][0]["p"]["temperature"] == plain["places"][0]["p"]["temperature"] == 0.5
    assert found["places"][0]["p"]["logs"] != plain["places"][0]["p"]["logs"]
    assert all(one["p"]["others"] > 0 and one["p"]["beside"] is None for one in found["places"])


def test_a_test_of_a_chain_has_its_draft_and_its_numbers(models):
    trace = decoded(models, "speculative", temperature=1.0, tokens=24)
    found = knobs(trace)
    verdicts = {v.node: v for s in trace.steps for v in s.of(Verdict)}
    tested = [one["draft"] for one in found["places"] if "draft" in one]
    judged = [v for v in verdicts.values() if v.status in ("accepted", "rejected")]
    assert len(tested) == len(judged) and any(not one["accepted"] for one in tested)
    for one in tested:
        verdict = verdicts[one["node"]]
        assert (one["tested"], one["u"]) == (verdict.p, verdict.u)
        assert one["accepted"] == (verdict.status == "accepted")


def test_a_greedy_lane_asks_what_sampling_with_its_seed_would_draw(models):
    trace = decoded(models, "greedy")
    found = knobs(trace)
    assert (found["run_as"], found["values"]["temperature"]) == ("sample", 0.0)
    first = uniform(3, ("sample", len(trace.prompt)))
    assert found["places"][0]["u"] == first


def test_a_branch_has_places_for_what_it_decoded_itself(models):
    before = decoded(models, "sample").output()[:3]
    trace = decoded(models, "sample", begin={"tokens": before, "forced": [2]})
    assert [one["position"] for one in knobs(trace)["places"]] == list(range(4, 17))
