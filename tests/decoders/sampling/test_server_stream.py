"""Following a server's own decoding: its tokens, its log-probabilities, and one sentence for each fault."""

import re
import time

import pytest

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.sampling.server_stream import SEVERAL
from decoders.trace import trace
from decoders.trace.events import Distribution, Forward, Note
from tests.helpers.fake_server import fake_server

PROMPT = [40, 41, 42, 40, 41]


@pytest.fixture
def served(server, folder):
    return load(f"{server.base}#tiny,tokenizer={folder}")


def follow(model, new_tokens=10, seed=3, **parameters) -> Lane:
    return Lane("server_stream", PROMPT, {"target": model}, parameters, seed, Limits(new_tokens))


def test_at_temperature_0_it_is_greedy_decoding(served, here):
    found = follow(served, temperature=0.0).run()
    greedy = Lane("greedy", PROMPT, {"target": here}, limits=Limits(10)).run()
    assert found.output() == greedy.output() and found.promise == "as the server decodes"
    assert found.costs.totals()["logprob"] == pytest.approx(greedy.costs.totals()["logprob"], abs=1e-4)
    ours, theirs = ([e for s in t.steps for e in s.of(Distribution)] for t in (found, greedy))
    for mine, whole in zip(ours, theirs, strict=True):
        assert [t for t, _ in mine.top] == [t for t, _ in whole.top] and mine.among == 20
        assert [p for _, p in mine.top] == pytest.approx([p for _, p in whole.top], abs=1e-4)
        assert mine.rest == pytest.approx(whole.rest, abs=1e-4) and 0.0 < mine.unseen < mine.rest
    trace.check_trace(found.to_json())


@pytest.mark.parametrize("at_once", [1, 3])
def test_its_tokens_are_the_server_s_and_an_event_is_a_step(at_once, server, served):
    server.at_once = at_once
    found = follow(served, temperature=1.5).run()
    (asked,) = [one for one in server.requests if one.get("stream")]
    assert found.output() == [token for token, _ in server.written(asked)]
    assert asked["prompt"] == PROMPT and asked["max_tokens"] == 10 and asked["seed"] == 3
    assert len(found.steps) == -(-len(found.output()) // at_once)
    forwards = [f for s in found.steps for f in s.of(Forward)]
    assert sum(f.rows for f in forwards) == len(found.output())
    assert sum(f.tokens for f in forwards) == len(PROMPT) + len(found.output()) - 1
    told = [e.text for s in found.steps for e in s.of(Note)]
    assert [SEVERAL in told, told.count(SEVERAL)] == [at_once > 1, at_once > 1]
    assert forwards[0].kind == "prefill" and all(f.kind == "decode" for f in forwards[1:])


def test_only_what_was_changed_is_sent(server, served):
    follow(served, top_p=0.9, repetition_penalty=1.2).advance()
    (asked,) = [one for one in server.requests if one.get("stream")]
    assert asked["top_p"] == 0.9 and asked["repetition_penalty"] == 1.2 and asked["temperature"] == 1.0
    assert "top_k" not in asked and "min_p" not in asked


def test_a_lane_that_is_stopped_closes_the_stream(server, served):
    real = server.written
    server.written = lambda asked: (time.sleep(0.02) or one for one in real(asked))
    lane = follow(served, new_tokens=200)
    lane.advance()
    lane.close()
    assert len(lane.trace.output()) == 1 and lane.trace.ended == "Stopped by hand."
    assert server.finished == 0
    again = follow(served, new_tokens=200, max_length=len(PROMPT) + 2).run()
    assert len(again.output()) <= 2


def test_the_end_of_the_server_s_text_ends_the_lane(server, served):
    real = server.written
    server.written = lambda asked: (one for _, one in zip(range(2), real(asked), strict=False))
    found = follow(served, temperature=0.0).run()
    assert len(found.output()) == 2 and found.ended == "The server ended the text."


def test_few_log_probabilities_are_told_with_their_rest(here, folder):
    with fake_server(here, limit=5) as server:
        found = follow(load(f"{server.base}#tiny,tokenizer={folder}"), temperature=1.5).run()
    rows = [e for s in found.steps for e in s.of(Distribution)]
    assert all(5 <= row.among <= 6 and 0.0 < row.unseen < 1.0 for row in rows)
    assert server.requests[-1]["logprobs"] == 5


def test_a_model_here_has_no_stream_and_another_strategy_is_named(here):
    with pytest.raises(ValueError, match=r"follows a model behind an address .* or choose Sampling\."):
        follow(here)


def event(tops: bytes, tokens: bytes = b'["token_id:3"]', own: bytes = b"[-1.0]") -> bytes:
    told = b'{"tokens": %b, "token_logprobs": %b, "top_logprobs": [%b]}' % (tokens, own, tops)
    return b'{"choices": [{"index": 0, "text": "x", "logprobs": %b}]}' % told


FAULTS = {
    "busy": ({"status": 429}, r"too much to do \(429\)"),
    "broken": ({"status": 500}, r"failed \(500\)"),
    "no key": ({"status": 401}, "needs a valid key"),
    "refused": ({"status": 404}, r"refuses this \(404\)"),
    "no stream": ({"raw": b"<html>"}, "it is not a stream of events"),
    "not JSON": ({"event": b"{'"}, "it is not JSON"),
    "cut off": ({"event": b""}, "broke off before its text was at an end"),
    "gave up": ({"event": b'{"error": {"message": "No memory"}}'}, r"gave up: No memory\."),
    "another shape": ({"event": b'{"choice": 0}'}, "no log-probabilities in it"),
    "a text alone": (
        {"event": b'{"choices": [{"text": "x", "logprobs": null}]}'},
        "no log-probabilities in it",
    ),
    "too few": ({"event": event(b'{"token_id:3": -1.0}')}, "fewer tokens than the 20"),
    "above 1": ({"change": lambda row: {k: v + 30.0 for k, v in row.items()}}, "probabilities above 1"),
    "sum above 1": ({"change": lambda row: dict.fromkeys(row, -0.1)}, "add up to more than 1"),
    "unknown ids": ({"change": lambda row: row | {"token_id:99999": -1.0}}, "the tokenizer does not have"),
    "texts": ({"event": event(b'{"the": -1.0}', b'["the"]')}, "by their texts"),
    "not numbers": ({"change": dict.fromkeys}, "probabilities above 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_lane_with_a_sentence_and_keeps_its_trace(fault, here, folder):
    with fake_server(here, limit=20) as server:
        served = load(f"{server.base}#tiny,tokenizer={folder}")
        settings, says = FAULTS[fault]
        at_start = {"status", "raw"} & settings.keys()
        server.good_events = 2
        for name, value in settings.items():
            setattr(server, name, value)
        found = follow(served, temperature=1.5).run()
    assert len(found.output()) == (0 if at_start else 2)
    assert re.search(says, found.ended) and found.ended.endswith(".")
    trace.check_trace(found.to_json())


def test_a_slow_server_ends_the_lane(server, served):
    real = server.written
    served.client.http.timeout = 0.1

    def slow(asked):
        for number, one in enumerate(real(asked)):
            time.sleep(0.5 if number == 2 else 0.0)
            yield one

    server.written = slow
    found = follow(served, temperature=1.5).run()
    assert "took more than" in found.ended and len(found.output()) == 2
