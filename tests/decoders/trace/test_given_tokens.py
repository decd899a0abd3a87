"""Lanes that begin further on: what is given appears as given, then the lane goes on as its parent did."""

import math

import pytest

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.table_model import TableModel
from decoders.trace import given_tokens
from decoders.trace.events import Commit, Distribution, Forward, Propose, Verdict
from decoders.trace.trace import from_json, malformed
from tests.helpers.served_here import ServedHere
from tests.laws.running import Endless, without_ends

PROMPT = [40, 41, 42, 40, 41]
LIMITS = Limits(max_new_tokens=16)
SHORT = Limits(max_new_tokens=10)  # a few rounds of each strategy
every_strategy = pytest.mark.parametrize("name", list(registry.strategies()))
# What comes next follows from the text alone: never from how the text was cut into rounds.
MEMORYLESS = [
    ("greedy", {}),
    ("sample", {"temperature": 0.9}),
    ("sample", {"temperature": 1.2, "top_k": 20, "repetition_penalty": 1.3}),
    ("contrastive_search", {}),
    ("speculative", {}),
    ("speculative_tree", {}),
    ("prompt_lookup", {}),
    ("jacobi", {"block_size": 4, "dependencies": False}),
]


@pytest.fixture(scope="module")
def models(tiny_model):
    """Models whose texts stop at limits only."""
    return {
        role: Endless(m.name, m.model, m.tokenizer)
        for role, m in (("target", tiny_model("llama")), ("draft", tiny_model("llama", 1)))
    }


@pytest.fixture
def suited(name, models, target_for):
    """The same, with a target that the strategy can decode with."""
    other = target_for(name)
    if isinstance(other, ServedHere):
        return {**models, "target": without_ends(other)}
    if other.name == models["target"].name:
        return models
    return {**models, "target": Endless(other.name, other.model, other.tokenizer, tokens_of=models["target"])}


def finished(name: str, models: dict, limits: Limits = LIMITS, **more):
    return Lane(name, PROMPT, models, seed=3, limits=limits, **more).run()


@pytest.mark.parametrize(("name", "parameters"), MEMORYLESS)
@pytest.mark.parametrize("copied", [1, 7])
def test_a_lane_that_begins_with_its_parents_tokens_goes_on_as_the_parent_did(
    name, parameters, copied, models
):
    parent = finished(name, models, parameters=parameters)
    branch = finished(
        name, models, parameters=parameters, begin={"tokens": parent.output()[:copied], "forced": []}
    )
    assert branch.output() == parent.output()
    assert branch.text() == parent.text()
    assert branch.prompt == parent.prompt
    assert branch.ended == parent.ended


@every_strategy
def test_given_tokens_appear_as_given_and_cost_nothing(name, suited):
    tokens, forced = [9, 8, 7, 6], [1, 3]
    found = finished(name, suited, SHORT, begin={"tokens": tokens, "forced": forced})
    first, rest = found.steps[0], found.steps[1:]
    assert [(e.token, e.source) for e in first.of(Propose)] == [
        (9, "copied"),
        (8, "person"),
        (7, "copied"),
        (6, "person"),
    ]
    judged = [(v.node - len(PROMPT), v.status) for v in first.of(Verdict)]
    assert judged == [(1, "forced"), (3, "forced")]
    assert found.output()[:4] == tokens and len(found.output()) == SHORT.max_new_tokens
    decoded = [n for s in rest for c in s.of(Commit) for n in c.nodes]
    totals = found.costs.totals()
    assert totals["new_tokens"] == len(decoded) == SHORT.max_new_tokens - 4
    assert totals["steps"] == len(rest)
    assert given_tokens.of(found) == {"tokens": tokens, "forced": forced}
    again = from_json(found.to_json())
    assert again.to_json() == found.to_json() and given_tokens.of(again) == given_tokens.of(found)


@every_strategy
def test_a_forced_place_tells_what_was_on_offer_there_and_that_costs_the_lane_nothing(name, suited):
    plain = finished(name, suited, SHORT, begin={"tokens": [9, 8, 7], "forced": []})
    found = finished(name, suited, SHORT, begin={"tokens": [9, 8, 7], "forced": [1]})
    first = found.steps[0]
    if suited["target"].model_kind != "causal":  # what is on offer has no one next place
        assert not first.of(Forward) and found.output() == plain.output()
        return
    (offer,) = [e for e in first.of(Distribution) if e.view == "target"]
    assert offer.node == len(PROMPT) and offer.among == suited["target"].engine.vocabulary
    assert [e.kind for e in first.of(Forward)] == ["lens"]
    (verdict,) = first.of(Verdict)
    (commit,) = first.of(Commit)
    raw = commit.logprobs[1]
    assert commit.logprobs[0] is None and commit.logprobs[2] is None
    named = {int(token): logprob for token, logprob in offer.top}
    assert raw == named[8] if 8 in named else raw <= min(named.values())
    assert f"of {offer.among:,} here, p " in verdict.reason
    totals, same = found.costs.totals(), plain.costs.totals()
    assert totals.pop("lens_forwards") == same.pop("lens_forwards") + 1
    for timed in ("seconds", "tokens_per_second", "shared_tokens"):
        del totals[timed], same[timed]
    assert totals == pytest.approx(same) and found.output() == plain.output()


def test_what_is_on_offer_in_a_forced_place_is_the_models_own(models):
    """The lane's next choice is made from the same law as the one that is told for a forced place."""
    shaped = {"temperature": 0.7, "top_k": 5}
    parent = finished("sample", models, parameters=shaped)
    at = parent.steps[3].of(Distribution)
    branch = finished(
        "sample", models, parameters=shaped, begin={"tokens": parent.output()[:4], "forced": [3]}
    )
    told = branch.steps[0].of(Distribution)
    assert [(e.view, e.level) for e in told] == [(e.view, e.level) for e in at] and len(told) == 3
    for own, theirs in zip(told, at, strict=True):
        assert own.node == theirs.node and own.entropy == pytest.approx(theirs.entropy, abs=1e-4)
        assert [t for t, _ in own.top] == [t for t, _ in theirs.top]
    (verdict,) = branch.steps[0].of(Verdict)
    processed = dict(map(tuple, told[-1].top))
    assert verdict.p == pytest.approx(math.exp(processed[parent.output()[3]]), rel=1e-4)


@pytest.mark.parametrize(("token", "rank", "p"), [(0, 1, 0.5), (2, 3, 0.2), (3, 4, 0.0)])
def test_rank_and_probability_of_a_forced_token_are_those_of_the_table(token, rank, p):
    table = TableModel(lambda text: (0.5, 0.3, 0.2, 0.0), 4)
    lane = Lane("greedy", [1], {"target": table}, limits=Limits(4), begin={"tokens": [token], "forced": [0]})
    found = lane.run()
    (verdict,), (commit,) = found.steps[0].of(Verdict), found.steps[0].of(Commit)
    assert verdict.p == pytest.approx(p)
    assert f"ranks it {rank} of 4 here, p {f'{p:g}'.removeprefix('0') or '0'}." in verdict.reason
    assert commit.logprobs == [pytest.approx(math.log(p)) if p else None]
    from_json(found.to_json())


@every_strategy
def test_all_that_may_be_written_can_be_given(name, suited):
    found = finished(name, suited, begin={"tokens": list(range(16)), "forced": [15]})
    assert len(found.steps) == 1 and found.output() == list(range(16))
    assert found.ended == "Reached max_new_tokens = 16."
    cache = getattr(suited["target"].engine, "cache", None)  # canvases and servers have none
    assert suited["target"].model_kind != "causal" or cache is None or cache.used == 0


def test_an_end_of_text_token_ends_what_is_given(tiny_model):
    target = tiny_model("llama")
    end = min(target.eos)
    with pytest.raises(ValueError, match="Token 2 of the 3 that the lane begins with ends the text"):
        Lane("greedy", PROMPT, {"target": target}, begin={"tokens": [9, end, 9], "forced": []})
    found = Lane("greedy", PROMPT, {"target": target}, begin={"tokens": [9, end], "forced": [1]}).run()
    assert found.output() == [9, end] and found.ended == "The text was ended by hand."


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tokens": [], "forced": []}, "begins with a list of token ids"),
        ({"tokens": [1, -1], "forced": []}, "begins with a list of token ids"),
        ({"tokens": [1, True], "forced": []}, "begins with a list of token ids"),
        ({"tokens": "12", "forced": []}, "begins with a list of token ids"),
        ({"tokens": [1, 2], "forced": [2]}, "whole numbers from 0 to 1"),
        ({"tokens": [1, 2], "forced": 1}, "whole numbers from 0 to 1"),
        ({"tokens": [1, 99999], "forced": []}, "no token 99,999"),
        ({"tokens": [1] * 17, "forced": []}, "begins with 17 tokens, but may write only 16"),
    ],
)
def test_unusable_begins_are_refused_in_one_sentence(given, says, models):
    with pytest.raises(ValueError, match=says) as refusal:
        finished("greedy", models, begin=given)
    assert "\n" not in str(refusal.value)
    assert models["target"].engine.cache.used == 0


def test_given_tokens_anywhere_but_behind_the_prompt_are_a_contradiction():
    good = [Propose(2, 1, 7, None, "copied"), Propose(3, 2, 7, None, "person")]
    assert malformed(good, 2) is None
    late = [Propose(2, 1, 7, -0.5, "target"), Propose(3, 2, 7, None, "person")]
    assert malformed(late, 2) == "node 3 is said to be given, but does not follow the prompt."
