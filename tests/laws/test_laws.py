"""The laws that every strategy passes, written once: a new strategy is tested the day it is registered.

They know no strategy by name. Models are tiny and random; a draft, where one is needed, is another random
model.
"""

import contextlib
import functools
import json
import random
from collections import Counter

import pytest
import torch

from decoders import registry, testing
from decoders.chooser import Random
from decoders.models.served_model import ServedModel
from decoders.refusal import Refusal
from decoders.speculative import draft_verify_loop
from decoders.trace import trace
from decoders.trace.endings import without_numbers
from decoders.trace.events import Commit, Note
from tests.helpers import tiny_models
from tests.helpers.in_company import in_company
from tests.laws.extremes import extremes
from tests.laws.running import (
    BREAKS_TIES,
    ENDING,
    NEW_TOKENS,
    PROMPTS,
    check_cells,
    damaged,
    every_case,
    every_strategy,
    generated,
    kept,
    start,
    without_ends,
    without_tree_mask,
)


@pytest.fixture(scope="module")
def models(name, target_for, tiny_model):
    """A target whose texts end, and a draft that agrees with it now and then."""
    dtype = torch.float64 if name.split()[0] in BREAKS_TIES else torch.float32
    return {"target": target_for(name.split()[0], dtype), "draft": tiny_model("llama", 1, dtype)}


@pytest.fixture(scope="module")
def endless(models):
    return {role: kept(without_ends, model) for role, model in models.items()}


@pytest.fixture(scope="module")
def ran(name, models):
    """ran(prompt, new_tokens=NEW_TOKENS, seed=0): the trace of a run, decoded once for all laws;
    ran.offered[id of the trace]: how many drafted tokens its verifiers were given, round by round.
    """

    @functools.cache
    def get(prompt, new_tokens=NEW_TOKENS, seed=0):
        counts, record = [], draft_verify_loop.record_verdicts

        def counting(lane, draft, *rest):
            if draft.nodes and getattr(lane, "leads", True):  # of a batch, its first text is the lane's own
                counts.append(len(draft.nodes))
            return record(lane, draft, *rest)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(draft_verify_loop, "record_verdicts", counting)
            found = start(name, models, prompt, new_tokens, seed).run()
        get.offered[id(found)] = counts
        return found

    get.offered = {}
    return get


@pytest.fixture(scope="module")
def runs(ran):
    """The trace of a run from each prompt."""
    return [ran(prompt) for prompt in PROMPTS]


def no_slot_in_use(*sets):
    """All KV slots are free; a canvas has none."""
    caches = [getattr(model.engine, "cache", None) for models in sets for model in models.values()]
    assert all(cache is None or cache.used == 0 for cache in caches)


@pytest.fixture(autouse=True)
def no_slot_is_lost(models, endless):
    """Whatever a test does, all slots are free afterwards."""
    yield
    no_slot_in_use(models, endless)
    for model in (*models.values(), *endless.values()):
        assert not getattr(model.engine, "trunks", None)


@every_case
def test_a_trace_is_well_formed_and_follows_the_schema(runs):
    for found in runs:
        testing.well_formed(found)


@every_case
def test_the_output_is_one_path_and_everything_else_is_judged(runs):
    for found in runs:
        testing.one_path(found)


@every_case
def test_costs_add_up(runs):
    for found in runs:
        testing.costs_add_up(found)


@every_case
def test_drafted_tokens_are_those_that_the_verifier_was_given(ran, runs):
    for found in runs:
        offered = ran.offered[id(found)]
        if offered:  # some strategies verify in a loop of their own
            assert found.costs.per_step_drafted == offered
        assert found.costs.proposed <= found.costs.draft_token_candidates


@every_case
def test_committed_log_probabilities_are_the_targets_own(name, models, runs):
    if registry.get(name.split()[0]).writes_with != "causal":  # each has its probability when it was filled
        for found in runs:
            check_cells(found)
        return
    target = models["target"].model
    for found in runs:
        text = torch.tensor([[*found.prompt, *found.output()]], device=target.device)
        logits = target(text).logits[0, len(found.prompt) - 1 : -1]
        own = logits.log_softmax(-1).gather(1, text[0, len(found.prompt) :, None])[:, 0].tolist()
        told = [p for step in found.steps for commit in step.of(Commit) for p in commit.logprobs]
        assert told == pytest.approx(own, abs=1e-3)


@every_strategy
def test_with_a_memory_it_decodes_or_says_that_it_cannot(name, models):
    memory = {"memory": "lm-infinite", "memory_drift": True}
    with contextlib.suppress(Refusal):
        testing.well_formed(start(name, models, new_tokens=3, parameters=memory).run())


@every_case
def test_one_seed_gives_one_trace(name, models, ran):
    first, second = ran(PROMPTS[0]), start(name, models, PROMPTS[0]).run()
    assert [testing.events_without_clock(s) for s in first.steps] == [
        testing.events_without_clock(s) for s in second.steps
    ]


class Once(Random):
    """Random, which counts how often each tag is asked for."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.asked: Counter = Counter()

    def bernoulli(self, probability, tag):
        self.asked[tag] += 1
        return super().bernoulli(probability, tag)

    def categorical(self, weights, tag):
        self.asked[tag] += 1
        return super().categorical(weights, tag)

    def uniforms(self, count, tag):
        self.asked[tag] += 1
        return super().uniforms(count, tag)


@every_strategy
def test_no_number_decides_twice(name, models):
    """A draw that was looked at and thrown away says something: asked for again, it would bend the law of the
    text. Whatever a person may choose, the same tag never comes again in a lane. What has a group is shared
    by many strategies and off unless more is typed.
    """
    strategy, hot = registry.get(name), {}
    if any(p.name == "temperature" for p in strategy.parameters):
        hot = {"temperature": 0.9}
    own = [p for p in strategy.parameters if not p.group]
    chosen = [{p.name: value} for p in own for value in p.choices or () if value != p.default]
    for parameters in ({}, *chosen):
        chooser = Once(0)
        try:
            lane = start(name, models, parameters=hot | parameters, chooser=chooser)
        except ValueError:  # two parameters do not fit together, or a scorer is not there
            continue
        lane.run()
        assert chooser.asked.total() == len(chooser.asked), chooser.asked.most_common(3)


def beside(models):
    """A strategy that runs with the same models."""
    kind = models["target"].model_kind
    others = {"causal": "greedy", "diffusion": "masked_diffusion", "flow": "drax"}
    return others.get(kind, kind)  # or of the same name


@every_strategy
def test_lanes_do_not_disturb_each_other(name, models, ran):
    prompts = (PROMPTS[0], PROMPTS[0], PROMPTS[2])
    alone = [ran(prompt).output() for prompt in prompts]
    lanes = [start(name, models, prompt) for prompt in prompts]
    lanes.append(start(beside(models), models, PROMPTS[2]))
    while [lane for lane in lanes if lane.advance()]:
        pass
    assert [lane.trace.output() for lane in lanes[:3]] == alone


@every_case
def test_lanes_in_joint_forwards_decode_as_alone(name, models, ran):
    prompts = (PROMPTS[0], PROMPTS[0], PROMPTS[2])
    alone = [ran(prompt).output() for prompt in prompts]
    makers = [lambda calls, p=prompt: start(name, models, p, callbacks=calls) for prompt in prompts]
    makers.append(lambda calls: start(beside(models), models, PROMPTS[2], callbacks=calls))
    lanes = in_company(makers)
    assert [lane.trace.output() for lane in lanes[:3]] == alone
    for lane in lanes:
        assert (
            trace.malformed((e for s in lane.trace.steps for e in s.events), len(lane.trace.prompt)) is None
        )


@every_case
def test_a_lane_may_be_stopped_after_any_step(name, models, ran):
    """The first ones, the last ones and one between stand for all."""
    whole = [
        testing.events_without_clock(s) for s in ran(PROMPTS[0], 5).steps
    ]  # few: each count of steps is a run
    for count in sorted({0, 1, len(whole) // 2, len(whole) - 1, len(whole)}):
        lane = start(name, models, new_tokens=5)
        for _ in range(count):
            lane.advance()
        lane.close()
        lane.close()
        assert [testing.events_without_clock(s) for s in lane.trace.steps] == whole[:count]
        assert lane.trace.ended
        assert lane.advance() is None
        no_slot_in_use(models)
        trace.check_trace(lane.trace.to_json())


@every_strategy
def test_the_limit_of_new_tokens_is_exact(name, endless):
    """Within the first round and within a later one."""
    for new_tokens in (1, 2, 7):
        found = start(name, endless, new_tokens=new_tokens).run()
        assert len(found.output()) == new_tokens
        assert found.ended == f"Reached max_new_tokens = {new_tokens}."


@every_strategy
def test_the_models_context_is_filled_to_the_last_token_and_no_further(name, endless):
    prompt = [i % 250 for i in range(tiny_models.CONTEXT - 3)]
    found = start(name, endless, prompt, new_tokens=30).run()
    assert len(found.output()) == 3
    assert found.ended == f"The model's context of {tiny_models.CONTEXT} tokens is full."


@every_strategy
def test_the_limit_of_nodes_ends_a_lane_with_a_sentence(name, endless):
    found = start(name, endless, new_tokens=40, max_nodes=len(PROMPTS[0]) + 6).run()
    assert found.ended.startswith("Stopped at the limit of 11 nodes")
    trace.check_trace(found.to_json())


@every_strategy
def test_the_limit_of_seconds_is_looked_at_wherever_a_step_is(name, endless, monkeypatch):
    times = iter(range(10**9))
    monkeypatch.setattr("decoders.lane.time.perf_counter", lambda: next(times) / 10)
    late = start(name, endless, new_tokens=40, max_seconds=3.0).run()
    assert late.ended == "Stopped at the limit of 3 seconds of computing; the text is kept."
    trace.check_trace(late.to_json())


@every_strategy
def test_models_that_take_no_tree_mask_decode_the_same(name, models, ran):
    if models["target"].model_kind != "causal" or isinstance(models["target"], ServedModel):
        return  # a canvas is no tree, and a server scores texts
    slow = {role: kept(without_tree_mask, model) for role, model in models.items()}
    found = start(name, slow, PROMPTS[2]).run()
    assert found.output() == ran(PROMPTS[2]).output()
    assert any("cannot take a tree mask" in note.text for step in found.steps for note in step.of(Note))


@every_case
def test_an_end_token_ends_the_text(name, models, ran):
    """In what the other laws decoded, and in further texts until one has ended."""

    def over(found):
        ends = [token in models["target"].eos for token in found.output()]
        assert not any(ends[:-1])
        assert ends[-1] == (found.ended == "The model wrote its end-of-text token.")
        return ends[-1]

    seen, parameters = [over(ran(prompt)) for prompt in PROMPTS], ENDING.get(name.split()[0])
    further = ([first, first + 1] for first in range(0, 250, 25))
    runs = (start(name, models, prompt, 25, parameters=parameters).run() for prompt in further)
    assert any(seen) or any(map(over, runs))


@every_strategy
def test_json_gives_back_the_trace(models, ran, tmp_path):
    found = ran(PROMPTS[0])
    if getattr(models["target"].engine, "cache", None) is not None:  # a canvas has none
        assert all(step.slots for step in found.steps)
    for path in (tmp_path / "trace.json", tmp_path / "trace.json.gz"):
        found.save(path)
        again = trace.load(path)
        assert again.to_json() == found.to_json()
        assert again.text() == found.text()
        assert again.costs == found.costs  # all that a page, a table or a picture shows as costs


@every_strategy
def test_scores_that_are_no_numbers_end_a_lane_with_a_sentence_and_a_trace(name, models, ran, tmp_path):
    """They begin where the second token that it writes is read, if it is read."""
    sound = ran(PROMPTS[0])
    token = sound.output()[:2][-1]
    for role in registry.get(name).needs:
        own = models | {role: damaged(models[role], token)}
        found = start(name, own).run()
        assert without_numbers(found.ended) or found.output() == sound.output()
        found.save(tmp_path / "trace.json")
        assert trace.load(tmp_path / "trace.json").to_json() == found.to_json()
        no_slot_in_use(own)


@every_case
def test_a_lossless_badge_is_true(name, models, ran):
    lane = start(name, models)
    lane.close()
    badge = lane.trace.badge
    assert badge in registry.BADGES
    if badge in ("lossless: equal to greedy", "deterministic", "equal to generate"):
        outputs = {tuple(ran(PROMPTS[2], seed=seed).output()) for seed in range(3)}
        assert len(outputs) == 1
    if badge == "lossless: equal to greedy":
        for prompt in PROMPTS:
            assert ran(prompt).output() == kept(generated, models["target"], prompt)
    if badge == "lossless: equal to stepwise":
        for prompt in PROMPTS:
            want = start("masked_diffusion", models, prompt).run()
            found = ran(prompt)
            assert found.output() == want.output()
            assert found.costs.target_forwards <= want.costs.target_forwards


@every_strategy
def test_the_extremes_of_every_parameter_work(name, models):
    """One by one; the processors that many strategies share, which have groups, all at an extreme at once.
    With two tokens left most probabilities are 0, whose logarithm no trace can hold.
    """
    parameters = registry.get(name).parameters
    alone = [p for p in parameters if not p.group or p.kind in ("ints", "floats")]
    tried = [{p.name: value} for p in alone for value in extremes(p) if value != p.default]
    shared = {p.name: extremes(p) for p in parameters if p not in alone}
    tried += [{p: values[1 % len(values)] for p, values in shared.items()}] if shared else []  # the lowest
    tried += [{p: values[-1] for p, values in shared.items()}] if shared else []
    if {"temperature", "top_k"} <= {p.name for p in parameters}:
        tried.append({"temperature": 0.8, "top_k": 2})
    for chosen in tried:
        try:
            lane = start(name, models, new_tokens=3, parameters=chosen)
        except ValueError as error:  # two parameters do not fit together: a sentence says how
            assert str(error).endswith(".")
            continue
        found = lane.run()
        assert len(found.output()) in (1, 2, 3) or found.ended.startswith("The processors left no token")
        json.dumps(found.to_json(), allow_nan=False)


@every_strategy
def test_bad_prompts_and_limits_are_refused_with_a_sentence(name, models):
    with pytest.raises(ValueError, match="The prompt has no tokens; type at least one character"):
        start(name, models, [])
    with pytest.raises(ValueError, match=r"The prompt has 300 tokens, but the model reads at most 256"):
        start(name, models, [1] * 300)
    with pytest.raises(ValueError, match="max_new_tokens must be at least 1"):
        start(name, models, new_tokens=0)
    with pytest.raises(ValueError, match="is empty; type at least one character"):
        models["target"].encode("")


ODD = "👩‍👩‍👧🏽🇪🇺 e\u0301n\u0303\u0323 שלום مرحبا \u202e\u200f \x00\x07\x1b\x7f\r\n\t <img onerror=x>"


def drawn(seed: str) -> str:
    """Characters of one byte to four, most of them unassigned or never seen together."""
    draw = random.Random(seed)
    ranges = ((0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x110000))  # between them: surrogates
    return "".join(chr(draw.randrange(*draw.choice(ranges))) for _ in range(12))


@every_strategy
def test_any_text_is_read_decoded_and_traced(name, models):
    """Other texts for each strategy; one of a single token, one of all that is odd."""
    target = models["target"]
    for text in (ODD, "\0", drawn(name), drawn(f"{name} again")):
        prompt = target.encode(text)
        assert b"".join(target.bytes_of(t) for t in prompt) == text.encode()
        found = start(name, models, prompt, new_tokens=3).run()
        assert found.prompt == prompt
        assert b"".join(found.vocabulary[t] for t in found.prompt) == text.encode()
        said = b"".join(target.bytes_of(t) for t in found.output())
        assert found.text() == said.decode("utf-8", "replace")
        assert trace.from_json(found.to_json()).text() == found.text()
