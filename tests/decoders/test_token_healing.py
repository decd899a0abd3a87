"""Token healing against `generate(token_healing=True)`, and that a healed token looks like more prompt."""

import pytest
import torch

from decoders import token_healing
from decoders.lane import Lane, Limits
from decoders.models.catalog import DRAFT, TARGET
from decoders.models.loading import load
from decoders.trace import given_tokens
from decoders.trace.events import Forward, Note, Propose
from explorer.runs.run_summary import before_text

PROMPTS = [
    "Once upon a time there was a little gir",
    "Lily and Tom went to the par",
    "The dog was very hap",
    "He saw a big bir",
    "One day, a boy named Ti",
]
# With a space at its end: `generate` takes it away, here the tokens that begin with it are on offer.
SPACE = "Once upon a time, there was a "


@pytest.fixture(scope="module")
def models():
    return {"target": load(TARGET, "cpu"), "draft": load(DRAFT, "cpu")}


def lane_of(models: dict, prompt: str, strategy: str = "greedy", **parameters) -> Lane:
    ids = models["target"].encode(prompt)
    return Lane(strategy, ids, models, {"token_healing": True, **parameters}, limits=Limits(8))


def by_generate(target, ids: list[int], **options) -> list[int]:
    tokenizer = target.tokenizer
    always = {"tokenizer": tokenizer, "pad_token_id": tokenizer.eos_token_id, "do_sample": False}
    given, mask = torch.tensor([ids]), torch.ones(1, len(ids))
    out = target.model.generate(given, attention_mask=mask, **always, **options)
    return out[0].tolist()


@pytest.mark.parametrize("prompt", [p for p in PROMPTS if p.endswith(("hap", "Ti"))])
def test_greedy_writes_what_generate_writes(models, prompt):
    """Prompts whose last token has no space before it: transformers 5.23 looks for those of byte-level
    tokenizers under a name that no token has, and heals none.
    """
    target = models["target"]
    trace = lane_of(models, prompt).run()
    wanted = by_generate(target, target.encode(prompt), max_new_tokens=7, token_healing=True)
    assert [*trace.prompt, *trace.output()] == wanted and len(trace.output()) == 8


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_healed_token_is_the_one_of_generate_s_bias(models, prompt):
    """The step of `heal_tokens` itself: one token under a bias of 10 for what goes on from the last token."""
    target = models["target"]
    ids = target.encode(prompt)
    last = target.tokenizer.decode(ids[-1])
    decoded = {t: target.tokenizer.decode(t) for t in range(target.engine.vocabulary)}
    bias = {(t,): 10.0 for t, text in decoded.items() if text.startswith(last)}
    bias[(ids[-1],)] += 1.0
    wanted = by_generate(target, ids[:-1], max_new_tokens=1, sequence_bias=bias)
    trace = lane_of(models, prompt).run()
    assert [*trace.prompt, trace.output()[0]] == wanted


def test_some_of_these_prompts_are_healed(models):
    """Else the comparison above would compare nothing."""
    healed = [lane_of(models, prompt).advance() for prompt in PROMPTS]
    assert sum("Token healing" in note.text for step in healed for note in step.of(Note)) >= 4


def test_a_space_at_the_end_begins_the_next_word(models):
    trace = lane_of(models, SPACE).run()
    text = before_text(SPACE, trace) + trace.text()
    assert text.startswith(SPACE) and "  " not in text
    assert trace.text().startswith(" ")


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("greedy", {}),
        ("sample", {}),
        ("sample", {"num_return_sequences": 2}),
        ("beam", {"num_beams": 3}),
        ("speculative", {}),
        ("speculative_tree", {}),
        ("prompt_lookup", {}),
        ("lookahead", {}),
        ("dola", {}),
    ],
)
def test_what_was_healed_looks_like_more_prompt(models, strategy, parameters):
    trace = lane_of(models, PROMPTS[0], strategy, **parameters).run()
    (first,) = [e.token for e in trace.steps[0].of(Propose)]
    alone = Lane(strategy, [*trace.prompt, first], models, parameters, limits=Limits(7)).run()
    assert trace.output() == [first, *alone.output()]
    assert trace.costs.new_tokens == len(trace.output()) == 8 or trace.output()[-1] in models["target"].eos
    assert trace.costs.target_forwards == alone.costs.target_forwards + 1


@pytest.mark.parametrize("strategy", ["guidance", "context_aware"])
def test_where_a_prompt_has_a_second_view_it_is_text_as_what_a_lane_begins_with(models, strategy):
    trace = lane_of(models, PROMPTS[0], strategy).run()
    start = {"tokens": trace.output()[:1]}
    assert (
        Lane(strategy, trace.prompt, models, begin=start, limits=Limits(8)).run().output() == trace.output()
    )


def test_a_lane_that_branched_off_begins_with_the_healed_token_and_heals_nothing(models):
    trace = lane_of(models, PROMPTS[0]).run()
    ids, start = models["target"].encode(PROMPTS[0]), {"tokens": trace.output()[:3], "forced": [2]}
    again = Lane("greedy", ids, models, {"token_healing": True}, limits=Limits(8), begin=start).run()
    assert again.prompt == trace.prompt and again.output() == trace.output()
    assert given_tokens.of(again) == start


def test_special_tokens_and_prompts_of_one_token_are_left_alone(models):
    target = models["target"]
    (eos,) = target.eos
    some = target.encode(PROMPTS[0])
    assert token_healing.cut({"token_healing": True}, target, [*some, eos]) == ([*some, eos], [])
    assert token_healing.cut({"token_healing": True}, target, some[:1]) == (some[:1], [])
    assert token_healing.cut({"token_healing": False}, target, some) == (some, [])
    prompt, allowed = token_healing.cut({"token_healing": True}, target, some)
    assert prompt == some[:-1] and allowed[0] == some[-1] and len(allowed) > 1


def test_every_token_on_offer_begins_with_the_text_of_the_last_one(models):
    target = models["target"]
    last = target.encode(PROMPTS[0])[-1]
    found = token_healing.extensions(target, last)
    text, every = target.bytes_of(last), range(target.engine.vocabulary)
    wanted = {t for t in every if target.bytes_of(t).startswith(text)}
    assert found[0] == last and set(found) == wanted - set(target.bytes_of.special)


def test_its_forward_counts_and_the_prompt_is_read_again(models):
    trace = lane_of(models, PROMPTS[0]).run()
    forwards = [e for step in trace.steps for e in step.of(Forward)]
    assert [f.kind for f in forwards[:2]] == ["prefill", "prefill"]
    whole = before_text(PROMPTS[0], trace) + trace.text()
    assert whole.startswith("Once upon a time there was a little girl")
