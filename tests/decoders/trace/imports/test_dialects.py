"""Every dialect's sample is recognised by its fields, read, checked and drawn; what breaks it is found."""

import copy
import json
import math

import pytest

from decoders.explain import trust as words
from decoders.refusal import Refusal
from decoders.trace.events import Commit, Distribution, Note, Propose
from decoders.trace.imports import dialects
from decoders.trace.scores import Measure, Rank, ScoreName
from decoders.trace.trace import from_json
from decoders.trace.trust import Fault, Trust
from explorer.export.run_file import counts, unpack
from tests.decoders.trace.imports import samples

TOKENS = {  # dialects that list tokens and likely ones: name -> sample
    "openai-chat": samples.CHAT,
    "openai-completions": samples.COMPLETION,
    "openai-responses": samples.RESPONSES,
    "llama-server": samples.LLAMA,
    "sglang": samples.SGLANG,
    "ollama": samples.OLLAMA,
}
SHAPES = {
    **TOKENS,
    "llama-server, old": samples.LLAMA_OLD,
    "llama-server, after samplers": samples.LLAMA_POST,
    "FastDeploy": samples.FASTDEPLOY,
    "predicted outputs": samples.PREDICTED,
}
RECORDS = {
    "lm-eval": samples.HARNESS,
    "prime-rl": samples.PRIME,
    "slime": samples.SLIME,
    "verl": samples.VERL,
}


def opened(record: dict):
    """The trace of a record as it is opened from a file, and its report."""
    _, (trace,) = unpack(json.dumps(record).encode())
    assert from_json(json.loads(json.dumps(trace.to_json(), allow_nan=False))).to_json() == trace.to_json()
    return trace, Trust.from_json(trace.trust)


def faults(record: dict) -> list[str]:
    return [finding.fault for finding in opened(record)[1].faults]


@pytest.mark.parametrize("name", {**TOKENS, **RECORDS})
def test_a_record_is_of_one_dialect(name):
    record = {**TOKENS, **RECORDS}[name]
    assert [one.name for one in dialects.DIALECTS if one.fits(record)] == [name]


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_gives_the_same_tokens_and_is_trusted(name):
    trace, trust = opened(SHAPES[name])
    assert trace.text() == samples.TEXT and trust.trusted and trust.tokens == trust.numbered == 4
    offer = trace.steps[0].of(Distribution)[0]
    assert [trace.vocabulary[token] for token, _ in offer.top] == [b"The", b" dog"]
    assert [math.exp(value) for _, value in offer.top] == pytest.approx([samples.P, samples.REST])
    assert trust.missing == pytest.approx(1 - samples.P - samples.REST) and trust.listed == 2
    assert trust.surprise == pytest.approx(-4 * samples.OWN)
    spread = trust.missing * math.log(2**18)
    assert trust.entropy_high - trust.entropy_low == pytest.approx(spread)
    assert words.verdict(trust) == words.TRUSTED


def test_the_stage_is_told_where_the_dialect_says_it():
    stages = {name: opened(record)[1].processed for name, record in SHAPES.items()}
    assert stages["llama-server"] is False and stages["openai-chat"] is None
    assert stages["llama-server, old"] is stages["llama-server, after samplers"] is True
    assert "after the server's processors" in words.report(opened(samples.LLAMA_OLD)[1])[1]


def test_the_drafts_probabilities_are_drawn_beside_the_targets():
    trace, _ = opened(samples.FASTDEPLOY)
    drafts = [offer for step in trace.steps for offer in step.of(Distribution) if offer.view == "draft"]
    assert len(drafts) == 4 and drafts[0].top[0][1] == pytest.approx(math.log(0.5))
    short = copy.deepcopy(samples.FASTDEPLOY)
    short["choices"][0]["draft_logprobs"]["content"].pop()
    trace, trust = opened(short)
    assert [finding.fault for finding in trust.faults] == [Fault.DRAFT_PLACES]
    assert not [1 for step in trace.steps for offer in step.of(Distribution) if offer.view == "draft"]


def test_a_stream_of_ollama_is_one_answer():
    _, (trace,) = unpack(samples.lines(*samples.OLLAMA_STREAM))
    assert trace.text() == samples.TEXT and Trust.from_json(trace.trust).trusted


def changed(record: dict, **fields) -> dict:
    return copy.deepcopy(record) | fields


def test_tokens_that_do_not_spell_the_text():
    assert faults(changed(samples.LLAMA, content="The cow sat.")) == [Fault.SPELLING]
    assert opened(changed(samples.LLAMA, content="The cow sat."))[1].faults[0].at == 6
    assert faults(changed(samples.LLAMA, content="The cat sat")) == []  # what ended it was cut
    assert faults(changed(samples.LLAMA, content=" The cat sat.\n")) == []
    raw = [("Ġ" + w.strip() if w[0] == " " else w) for w in samples.WORDS]
    pieces = copy.deepcopy(samples.ENTRIES)
    for entry, token in zip(pieces, raw, strict=True):
        for one in (entry, entry["top_logprobs"][0]):
            one.update(token=token, bytes=None)
    assert faults(changed(samples.OLLAMA, logprobs=pieces)) == [Fault.SPELLING]
    thought = changed(samples.OLLAMA, response="sat.", thinking="The cat")
    assert faults(thought) == []


def test_counts_that_do_not_add_up():
    assert faults(changed(samples.OLLAMA, eval_count=9)) == [Fault.TOKEN_COUNT]
    assert faults(changed(samples.OLLAMA, eval_count=5)) == []  # the end of the text counts too
    timings = {"predicted_n": 4, "draft_n": 3, "draft_n_accepted": 5}
    assert faults(changed(samples.LLAMA, timings=timings)) == [Fault.DRAFT_COUNT]
    facts = samples.SGLANG["meta_info"] | {"spec_accept_histogram": [1, 1, 1]}
    assert faults(changed(samples.SGLANG, meta_info=facts)) == [Fault.ROUND_COUNT]


def test_numbers_of_logits():
    """Above 0 they are refused; below, no softmax has so improbable a most likely token."""
    for values, says in (((4.28, 3.0), "log-probability of 4.28"), ((0.5, -1.0), "raw logits")):
        record = changed(samples.OLLAMA)
        for entry in record["logprobs"]:
            for one, value in zip((entry, *entry["top_logprobs"]), (values[0], *values), strict=True):
                one["logprob"] = value
        with pytest.raises(Refusal, match=says):
            unpack(json.dumps(record).encode())
    dim = changed(samples.OLLAMA)
    for entry in dim["logprobs"]:
        for one, value in zip((entry, *entry["top_logprobs"]), (-17.0, -17.0, -18.5), strict=True):
            one["logprob"] = value
    trace, trust = opened(dim)
    assert [finding.fault for finding in trust.faults] == [Fault.IMPROBABLE]
    assert "may be logits" in words.verdict(trust)
    with pytest.raises(Refusal, match="not probabilities"):
        old = changed(samples.LLAMA_OLD)
        old["completion_probabilities"][1]["probs"][0]["prob"] = 62.0
        unpack(json.dumps(old).encode())


def test_a_written_token_that_outdoes_the_listed_ones_is_of_another_stage():
    record = changed(samples.OLLAMA)
    record["logprobs"][2] |= {"token": " sat", "logprob": math.log(0.38)}
    tops = record["logprobs"][2]["top_logprobs"]
    tops[0] |= {"token": " ran", "bytes": None, "logprob": math.log(0.3)}
    assert faults(record) == [Fault.NOT_LISTED]


def test_a_token_without_a_number_is_at_least_as_surprising_as_the_last_listed_one():
    record = changed(samples.OLLAMA)
    record["logprobs"][0] |= {"token": "The", "bytes": None, "logprob": -9999}
    record["logprobs"][0]["top_logprobs"][0] |= {"token": "An", "bytes": None}
    trust = opened(record)[1]
    assert trust.numbered == 3 and trust.surprise_beyond == pytest.approx(-math.log(0.1))


def test_options_of_an_evaluation_are_ranked():
    trace, trust = opened(samples.HARNESS)
    assert trace.text() == " A cat" and trust.trusted
    ranks = {event.node: (event.rank, event.total) for event in trace.steps[0].of(Rank)}
    assert ranks == {1: (1, -2.5), 2: (2, -7.25)}
    notes = [note.text for note in trace.steps[0].of(Note)]
    assert "The right answer: 0" in notes and "Best first: ' A cat' -2.50; ' A fish' -7.25." in notes
    trace, _ = opened(samples.GENERATED)
    assert trace.text() == " 18 apples" and trace.steps[0].of(Commit)[0].logprobs == [None]


def test_a_rollout_has_what_the_trainer_measured():
    trace, trust = opened(samples.PRIME)
    assert trace.text() == "⟨8⟩⟨9⟩⟨10⟩" and trace.vocabulary[trace.prompt[0]] == "⟨7⟩".encode()
    assert [step.of(Propose)[0].logprob for step in trace.steps] == [-0.5, -1.0, -2.0]
    found = [[m.total for s in trace.steps for m in s.of(Measure) if m.name == name] for name in KINDS]
    log_ratio = 1.0  # of the last token, whose divergence the file leaves out
    assert found[0] == pytest.approx([0.0, 0.005, math.exp(log_ratio) - 1 - log_ratio])
    assert found[1] == [0.7, 1.5, 1.0] and trust.trusted
    trace, _ = opened(samples.SLIME)
    assert trace.text() == "⟨40⟩⟨41⟩" and trace.costs.logprob == pytest.approx(-1.0)
    trace, _ = opened(samples.VERL)
    assert trace.text() == "Five." and trace.vocabulary[trace.prompt[0]] == b"Add two and two."


def test_a_divergence_below_0_is_none():
    assert faults(changed(samples.PRIME, mismatch_kl=[None, 0.1, -0.5, None])) == [Fault.KL_BELOW_0]


KINDS = (ScoreName.DIVERGENCE, ScoreName.ENTROPY)


def test_what_is_not_recognised_names_what_was_looked_for():
    with pytest.raises(Refusal) as refused:
        unpack(b'{"something": "else"}')
    assert all(one.known_by in str(refused.value) for one in dialects.DIALECTS)
    assert str(refused.value).count("\n") == 0


def test_counts_of_answers_without_tokens():
    bare = changed(samples.CHAT, choices=[{"message": {"content": "a"}}], usage=samples.PREDICTED["usage"])
    found = counts(json.dumps(bare).encode())
    assert (found["num_drafts"], found["num_draft_tokens"], found["num_accepted_tokens"]) == (None, 5, 3)
    facts = {k: v for k, v in samples.SGLANG["meta_info"].items() if "logprobs" not in k}
    found = counts(json.dumps(samples.SGLANG | {"meta_info": facts}).encode())
    assert (found["num_drafts"], found["num_accepted_tokens_per_pos"]) == (2, [1, 1])
    assert counts(json.dumps(samples.LLAMA).encode()) is None  # a lane can be made of it
    timed = {k: v for k, v in samples.LLAMA.items() if k != "completion_probabilities"}
    assert counts(json.dumps(timed).encode())["num_draft_tokens"] == 3
