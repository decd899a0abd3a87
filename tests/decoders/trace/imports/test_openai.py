"""Answers of other servers become traces: OpenAI's log-probabilities, vLLM's metrics of a request."""

import json
import math

import pytest

from decoders.explain.trust import verdict
from decoders.refusal import Refusal
from decoders.trace.events import Commit, Distribution, Note, Propose, Verdict
from decoders.trace.imports import writer
from decoders.trace.imports.dialects import trace_of as from_response
from decoders.trace.trace import from_json
from decoders.trace.trust import Fault, Trust
from explorer.export.foreign_traces import declarations, viewed
from explorer.export.run_file import unpack
from visualizers.analysis.cost_summary import TABLE, strip, table_row
from visualizers.analysis.speculation_report import microscope

HALF = math.log(0.5)


def entry(token: str, logprob: float = HALF, top: list | None = None, **more) -> dict:
    named = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in top or []]
    return {"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": named} | more


def response(count: int = 7, drafted: list | None = None, accepted: list | None = None, **metrics) -> dict:
    """An answer of `count` tokens, perhaps with vLLM's detailed metrics."""
    words = [" a", " b", "c", ".", " d", "<b>", "\n"]
    content = [entry(words[i % 7], top=[(words[i % 7], 0.5), (" x", 0.25)]) for i in range(count)]
    answer = {"model": "some/model", "choices": [{"logprobs": {"content": content}}]}
    if drafted is not None:
        metrics |= {"per_step_drafted": drafted, "per_step_accepted": accepted}
    return answer | ({"metrics": {"speculative_decoding": metrics}} if metrics else {})


def test_log_probabilities_become_one_step_a_token():
    trace = from_response(response(3))
    assert trace.text() == " a bc" and trace.models == {"target": "some/model"}
    assert [len(step.of(Verdict)) for step in trace.steps] == [0, 0, 0]
    (offer,) = [e for e in trace.steps[1].events if type(e).__name__ == "Distribution"]
    assert [trace.vocabulary[t] for t, _ in offer.top] == [b" b", b" x"] and offer.rest == pytest.approx(0.25)
    # One bit of the half, and two quarters of two bits: 1.5 bits.
    assert offer.entropy == pytest.approx(1.5 * math.log(2))
    assert "lower bounds" in trace.steps[0].of(Note)[0].text
    assert trace.costs.logprob == pytest.approx(3 * HALF)


def test_rounds_are_those_that_vllm_told():
    """Seven tokens: one of the prefill, then rounds that gain 3, 1 and 2."""
    trace = from_response(response(7, [3, 3, 1], [2, 0, 1]))
    found = microscope(trace)
    values = {one["name"]: one["value"] for one in found["metrics"]}
    assert values["num_drafts"] == 3 and values["num_draft_tokens"] == 7
    assert values["num_accepted_tokens"] == 3 and values["acceptance_histogram"] == [1, 1, 1]
    assert values["mean_acceptance_length"] == 2.0 and values["num_accepted_tokens_per_pos"] == [2, 1, 0]
    assert [row["own"] for row in found["rounds"]] == ["resampled", "resampled", "bonus"]
    assert {fate["fate"]: fate["count"] for fate in found["fates"]} == {
        "accepted": 3,
        "rejected": 2,
        "after a rejection": 2,
    }
    assert len(trace.output()) == 7 and trace.text() == " a bc. d<b>\n"


def test_a_last_round_that_was_cut_and_tokens_that_no_round_wrote():
    cut = from_response(response(3, [2, 2], [2, 2]))
    assert len(cut.output()) == 3 and len(cut.steps) == 1
    assert "that no metric counts: 1." in cut.steps[0].of(Note)[-1].text
    early = from_response(response(6, [2], [1]))
    assert len(early.steps) == 5 and len(early.output()) == 6
    assert "4 tokens were written outside" in early.steps[0].of(Note)[-1].text
    summary = from_response(response(2, num_spec_steps=1, acceptance_histogram=[0, 1]))
    assert any("rounds are not shown" in note.text for note in summary.steps[0].of(Note))


def test_a_text_that_ends_inside_a_round_keeps_the_counts_of_its_file():
    trace = from_response(response(5, [3, 4], [2, 3]))
    assert trace.costs.per_step_drafted == [3, 4] and trace.costs.per_step_accepted == [2, 3]
    assert len(trace.output()) == 5 and trace.text() == " a bc. d"
    notes = [note.text for note in trace.steps[0].of(Note)]
    assert notes[-1].endswith("that the file counts and that are not in its text (□): 1.")
    assert from_json(trace.to_json()).costs.metrics(trace.ended) == trace.costs.metrics(trace.ended)
    assert trace.costs.metrics(trace.ended)["cut_rounds"] == 1


def test_an_imported_lane_is_a_sound_trace_that_the_page_can_show():
    data = json.dumps(response(7, [3, 3, 1], [2, 0, 1])).encode()
    setup, (trace,) = unpack(data)
    again = from_json(json.loads(json.dumps(trace.to_json(), allow_nan=False)))
    assert microscope(again) == microscope(trace) and again.text() == trace.text()
    declared = declarations([trace])
    assert {"entropy", "draft_rounds", "text"} <= set(declared["imported"]["views"])
    assert viewed(setup, declared, [trace])["lanes"][0]["view"] == "draft_rounds" and "models" not in setup
    assert microscope(trace)["classes"] == [], (
        "what was rejected is not told, so shares by class would mislead"
    )
    assert unpack(json.dumps(response(2)).encode())[0]["lanes"][0]["view"] == "entropy"


def test_an_imported_lane_offers_what_it_has_and_says_what_it_does_not_know():
    drafted, plain = from_response(response(7, [3, 3, 1], [2, 0, 1])), from_response(response(3))
    views = [set(declarations([trace])["imported"]["views"]) for trace in (drafted, plain)]
    of_rounds = {"accepted_lengths", "one_round", "draft_rounds", "target_top_tokens"}
    assert views[0] == {"entropy", "sampler", "text"} | of_rounds
    assert views[1] == {"entropy", "sampler", "text"}
    for trace in (drafted, plain):
        named = {entry["name"] for entry in strip(trace.costs)}
        assert not named & {"target forwards", "tokens / target forward", "tokens/s"}
        cells = dict(zip(TABLE, table_row(trace.costs), strict=True))
        assert cells["target forwards"]["label"] == cells["target tokens"]["label"] == "—"
    assert from_response(response(2) | {"model": "owner/a-model"}).title == "Imported: owner/a-model"
    assert from_response(response(2) | {"model": "m" * 500}).title == "Imported: " + "m" * 60
    assert from_response(response(2) | {"model": 7}).title == "Imported"


@pytest.mark.parametrize(
    "record",
    [
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"content": [{"token": "a"}]}}]},
        {"choices": [{"logprobs": {"content": [{"token": 1, "logprob": -1.0}]}}]},
        {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": "x"}]}}]},
        {"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -1.0, "bytes": [300]}]}}]},
        response(3) | {"metrics": 5},
        response(3, [1, 2], [1]),
        response(3, ["x"], [1]),
    ],
)
def test_answers_that_cannot_be_read_say_what_to_do(record):
    with pytest.raises(Refusal, match="ask the server with logprobs: true"):
        from_response(record)


def test_contradictions_and_sizes_are_told():
    with pytest.raises(ValueError, match="accepted more tokens than it drafted"):
        from_response(response(3, [1], [2]))
    with pytest.raises(ValueError, match="1 to 4,096 tokens"):
        from_response(response(0))
    tokens = [entry("é", bytes=None), {"token": "b", "logprob": -9999.0}]
    trace = from_response({"choices": [{"logprobs": {"content": tokens}}]})
    assert trace.text() == "éb" and trace.models == {"target": "unknown"}


def of(*entries: dict) -> dict:
    """An answer of these tokens."""
    return {"choices": [{"logprobs": {"content": list(entries)}}]}


def named(token: str, logprob: float | None, *top: tuple[str, float | None]) -> dict:
    """A token as servers that leave out the bytes send it."""
    tops = [{"token": name, "logprob": value} for name, value in top]
    return {"token": token, "logprob": logprob, "top_logprobs": tops}


def first(record: dict) -> tuple[list, list, list[str]]:
    """Of the first token: what was on offer, (text, log-probability); its own number as proposed and as
    committed; all notes.
    """
    trace = from_response(record)
    from_json(json.loads(json.dumps(trace.to_json(), allow_nan=False)))
    offers, (birth,) = trace.steps[0].of(Distribution), trace.steps[0].of(Propose)
    offer = [(trace.vocabulary[t].decode(), value) for one in offers for t, value in one.top]
    notes = [note.text for step in trace.steps for note in step.of(Note)]
    return offer, [birth.logprob, *trace.steps[0].of(Commit)[0].logprobs], notes


@pytest.mark.parametrize(
    ("entry_", "says"),
    [
        (named("a", 12.5, ("a", 12.5), ("b", 3.0)), "Token 1 .* log-probability of 12.5, .* raw logits"),
        (named("a", -0.5, ("a", -0.5), ("b", 0.25)), "log-probability of 0.25"),
        (named("a", 0.6, ("a", 0.6), ("b", 0.4)), "or probabilities"),
        (named("a", 2.0), "log-probability of 2"),
    ],
)
def test_numbers_that_are_no_log_probabilities_are_refused(entry_, says):
    with pytest.raises(Refusal, match=says):
        from_response(of(entry_))
    with pytest.raises(Refusal, match="(T|t)oken 2"):
        from_response(of(named("x", -1.0, ("x", -1.0)), entry_))


@pytest.mark.parametrize(
    ("entry_", "mass"),
    [
        (named("a", math.log(0.7), ("a", math.log(0.7)), ("b", math.log(0.7))), 1.4),
        (named("a", math.log(0.7), ("b", math.log(0.7))), 1.4),
        (named("a", -0.3, ("b", -9999.0), ("c", -0.7), ("d", -3.0), ("e", -2.4)), 1.38),
    ],
)
def test_probabilities_over_1_are_untrusted_and_not_drawn(entry_, mass):
    trace = from_response(of(named("x", -1.0, ("x", -1.0)), entry_))
    trust = Trust.from_json(trace.trust)
    found = trust.faults[0]
    assert (found.fault, found.count, found.at) == (Fault.MASS_OVER_1, 1, 2)
    assert found.value == pytest.approx(mass, abs=0.01) and not trust.trusted
    assert [len(step.of(Distribution)) for step in trace.steps] == [1, 0]
    assert "add up to more than 1" in verdict(trust)
    assert from_json(json.loads(json.dumps(trace.to_json()))).trust == trace.trust


@pytest.mark.parametrize(
    "tops",
    [
        [round(math.log(p), 2) for p in (0.5, 0.3, 0.2)],  # two decimals: 1.0031
        [-0.6875, -1.2, -1.6],  # as bfloat16 rounds: .503 + .301 + .202
        [1.2e-7, -9999.0, -9999.0],  # as float32 rounds the logarithm of 1
        [0.0, -3.4028234663852886e38, -3.4028234663852886e38],  # llama.cpp's logarithm of 0
        [0.0, None, None],  # minus infinity, as some JSON writers have it
    ],
)
def test_what_rounding_does_is_legitimate(tops):
    offer, own, _ = first(of(named("a", tops[0], *zip("abc", tops, strict=True))))
    known = [value for value in tops if value is not None and value > -9000]
    assert offer == list(zip("abc", [min(value, 0.0) for value in known], strict=False))
    assert own == [min(tops[0], 0.0)] * 2


@pytest.mark.parametrize("marker", [-9999.0, -9999, -3.4028234663852886e38, None])
def test_a_token_without_a_log_probability_has_none(marker):
    """OpenAI's marker of a written token that is not among the most likely."""
    offer, own, notes = first(of(named("a", marker, ("b", -0.1)), named("b", -0.1, ("b", -0.1))))
    assert offer == [("b", -0.1)] and own == [None, None]
    assert [note for note in notes if "no log-probability for 1 of the 2 tokens" in note]


def test_a_token_outside_the_listed_ones_gets_no_rank():
    offer, own, _ = first(of(named("a", -3.0, ("b", -0.5), ("c", -1.5))))
    assert offer == [("b", -0.5), ("c", -1.5)] and own == [-3.0, -3.0]
    offer, own, notes = first(of(named("a", -3.0)))
    assert offer == [] and own == [-3.0, -3.0] and writer.NOTHING_LISTED in notes


def test_one_token_listed_twice_is_one():
    offer, own, notes = first(of(named("a", -1.0, ("a", -1.0), ("a", -1.0), ("b", -2.0))))
    assert offer == [("a", -1.0), ("b", -2.0)] and own == [-1.0, -1.0]
    assert writer.LISTED_TWICE in notes


def test_tokens_that_share_their_text_are_told_apart():
    """Servers write � for every token that is a part of a character."""
    record = of(named("�", -2.0, ("�", -0.5), ("b", -1.5), ("�", -2.0)))
    trace = from_response(record)
    ((offer,), (birth,)) = trace.steps[0].of(Distribution), trace.steps[0].of(Propose)
    assert len({token for token, _ in offer.top}) == 3 and birth.token == offer.top[2][0]
    assert first(record)[2][-1] == writer.SAME_TEXT


def test_of_several_answers_the_first_is_shown_and_that_is_said():
    record = response(2)
    record["choices"] *= 3
    assert any("holds 3 answers; this is the first" in note for note in first(record)[2])


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"choices": [{"delta": {"content": "a"}, "logprobs": None}]}, "stream: false"),
        ({"content": "a", "completion_probabilities": []}, "with n_probs"),
        ([{"generated_text": "a", "details": {"tokens": []}}], "TGI's own endpoint"),
        ({"text": "a", "meta_info": {"completion_tokens": 1}}, "return_logprob: true"),
        ({"object": "response", "output": []}, "message.output_text.logprobs"),
        ({"candidates": []}, "Gemini"),
        ({"model": "m", "message": {"content": "a"}, "done": True}, "Ollama.*stream: false"),
        ({"error": {"message": "no such model"}}, "error message"),
        ({"object": "error", "message": "no such model", "code": 404}, "error message"),
    ],
)
def test_answers_without_what_is_needed_say_how_to_ask(record, says):
    with pytest.raises(Refusal, match=says):
        unpack(json.dumps(record).encode())


def test_a_stream_that_was_saved_is_named():
    for data in (b'data: {"choices": []}\n\ndata: [DONE]\n', b'event: x\ndata: {"a": 1}\n\n'):
        with pytest.raises(Refusal, match="stream: false"):
            unpack(data)
