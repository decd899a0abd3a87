"""Answers of other servers become traces: OpenAI's log-probabilities, vLLM's metrics of a request."""

import json
import math

import pytest

from decoders.trace.events import Note, Verdict
from decoders.trace.openai_import import from_response
from decoders.trace.trace import from_json
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
    assert "rounds are not shown" in summary.steps[0].of(Note)[1].text


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
    assert {"entropy", "draft_tree", "text"} <= set(declared["imported"]["views"])
    assert viewed(setup, declared, [trace])["lanes"][0]["view"] == "draft_tree" and "models" not in setup
    assert microscope(trace)["classes"] == [], (
        "what was rejected is not told, so shares by class would mislead"
    )
    assert unpack(json.dumps(response(2)).encode())[0]["lanes"][0]["view"] == "entropy"


def test_an_imported_lane_offers_what_it_has_and_says_what_it_does_not_know():
    drafted, plain = from_response(response(7, [3, 3, 1], [2, 0, 1])), from_response(response(3))
    views = [set(declarations([trace])["imported"]["views"]) for trace in (drafted, plain)]
    of_rounds = {"accepted_lengths", "draft_round", "draft_tree", "graph", "shortlist"}
    assert views[0] == {"entropy", "sampler", "text"} | of_rounds
    assert views[1] == {"entropy", "sampler", "text"}
    for trace in (drafted, plain):
        labels = {entry["name"]: entry["label"] for entry in strip(trace.costs)}
        assert labels["target forwards"] == labels["tokens / target forward"] == labels["tokens/s"] == "—"
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
    with pytest.raises(ValueError, match="ask the server with logprobs: true"):
        from_response(record)


def test_contradictions_and_sizes_are_told():
    with pytest.raises(ValueError, match="accepted more tokens than it drafted"):
        from_response(response(3, [1], [2]))
    with pytest.raises(ValueError, match="1 to 4,096 tokens"):
        from_response(response(0))
    tokens = [entry("é", bytes=None), {"token": "b", "logprob": -9999.0}]
    trace = from_response({"choices": [{"logprobs": {"content": tokens}}]})
    assert trace.text() == "éb" and trace.models == {"target": "unknown"}
