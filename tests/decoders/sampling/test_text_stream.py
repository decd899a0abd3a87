"""Following servers that name tokens by their texts: chats, and completions without token ids."""

import json
import re

import pytest

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.trace import trace
from decoders.trace.events import Commit, Distribution, Propose
from tests.helpers.fake_server import fake_server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGE = "(*)(*"


@pytest.fixture(params=["chat", "texts"])
def spoken(request, server):
    """A server that has a chat alone, or completions that name tokens by their texts."""
    server.has = (CHAT,) if request.param == "chat" else (COMPLETIONS,)
    server.texts, server.limit = True, 20
    return server


def follow(model, new_tokens=10, seed=3, begin=None, **parameters) -> Lane:
    limits = Limits(new_tokens)
    prompt = model.encode(MESSAGE)
    return Lane("server_stream", prompt, {"target": model}, parameters, seed, limits, begin=begin)


def reached(server, folder, more="") -> str:
    return f"{server.base}#tiny,tokenizer={folder}{more}"


def test_at_temperature_0_it_is_greedy_decoding(spoken, folder, here):
    served = load(reached(spoken, folder))
    found = follow(served, temperature=0.0).run()
    greedy = Lane("greedy", here.encode(MESSAGE), {"target": here}, limits=Limits(10)).run()
    assert found.output() == greedy.output() and found.promise == "as the server decodes"
    ours, theirs = ([e for s in t.steps for e in s.of(Distribution)] for t in (found, greedy))
    for mine, whole in zip(ours, theirs, strict=True):
        assert [t for t, _ in mine.top] == [t for t, _ in whole.top] and mine.among == 20
        assert [p for _, p in mine.top] == pytest.approx([p for _, p in whole.top], abs=1e-4)
    assert "names tokens by their texts" in found.to_json()["steps"][0]["events"][0]["text"]
    trace.check_trace(found.to_json())


def test_a_chat_is_sent_the_prompt_as_a_message_and_how_to_draw(server, folder):
    server.has, server.limit = (CHAT,), 20
    served = load(reached(server, folder))
    assert not served.chats  # the server has the template
    found = follow(served, temperature=1.5, top_p=0.9).run()
    asked = server.requests[-1]
    assert asked["messages"] == [{"role": "user", "content": MESSAGE}] and asked["logprobs"] is True
    assert (asked["top_logprobs"], asked["max_tokens"], asked["top_p"]) == (20, 10, 0.9)
    assert found.output() == [token for token, _ in server.written(asked)]


def test_the_chat_is_followed_where_it_is_asked_for(server, folder):
    server.has = (CHAT, COMPLETIONS)
    assert load(reached(server, folder)).engine.scores
    served = load(reached(server, folder, ",endpoint=chat"))
    assert not served.engine.scores and served.facts()["log-probabilities"].endswith("in its own text")
    follow(served).advance()
    assert "messages" in server.requests[-1]


def test_all_other_strategies_are_refused_and_name_this_one(spoken, folder, tiny_model):
    models = {"target": load(reached(spoken, folder)), "draft": tiny_model("llama", 1)}
    for name in registry.strategies():
        if name != "server_stream":
            with pytest.raises(ValueError, match=r"choose .+\.$"):
                Lane(name, [40, 41], models)
    for name in ("greedy", "beam", "speculative"):
        says = r"names tokens by their texts does not give; choose The server's own decoding or the same"
        with pytest.raises(ValueError, match=says):
            Lane(name, [40, 41], models)


def test_a_text_goes_on_behind_given_tokens_and_a_chat_does_not(spoken, folder):
    served = load(reached(spoken, folder))
    lane = follow(served, begin={"tokens": served.encode("me"), "forced": []})
    ended = lane.run().ended
    if CHAT in spoken.has:
        assert ended.startswith("A chat answers a message from its beginning")
    else:
        assert spoken.requests[-1]["prompt"] == f"{MESSAGE}me"
        assert lane.trace.output()[:2] == served.encode("me") and len(lane.trace.output()) > 2
        assert ended == "The model wrote its end-of-text token."  # of this seed


def test_where_nothing_names_log_probabilities_the_first_refusal_is_told(here, folder):
    with fake_server(here, limit=0) as server:
        server.has = (CHAT, COMPLETIONS)
        with pytest.raises(ValueError, match="gives no log-probabilities"):
            load(reached(server, folder))
        with pytest.raises(ValueError, match="gives no log-probabilities"):
            load(reached(server, folder, ",endpoint=chat"))
        server.has = ()
        with pytest.raises(ValueError, match=r"refuses this \(404\)"):
            load(reached(server, folder))


def test_a_tokenizer_of_another_model_is_named(spoken, folder):
    served = load(reached(spoken, folder))
    served.client.__dict__["_ids"] = {b"(": 40}
    found = follow(served, temperature=0.0).run()
    assert "is not a token of the tokenizer; name the model's own tokenizer" in found.ended


FAULTS = {
    "busy": ({"status": 429}, r"too much to do \(429\)"),
    "no stream": ({"raw": b"<html>"}, "it is not a stream of events"),
    "cut off": ({"event": b""}, "broke off before its text was at an end"),
    "gave up": ({"event": b'{"error": {"message": "No memory"}}'}, r"gave up: No memory\."),
    "another shape": ({"event": b'{"choice": 0}'}, "another form than OpenAI's"),
    "a chat without": (
        {"event": b'{"choices": [{"delta": {"content": "x"}}]}'},
        "no log-probabilities in it",
    ),
    "a text without": ({"event": b'{"choices": [{"text": "x"}]}'}, "no log-probabilities in it"),
    "half a row": (
        {"event": b'{"choices": [{"logprobs": {"content": [{"token": "x"}]}}]}'},
        "another form than OpenAI's",
    ),
    "too few": ({"change": lambda row: dict([*row.items()][:3])}, "fewer tokens than the 20"),
    "above 1": ({"change": lambda row: {k: v + 30.0 for k, v in row.items()}}, "probabilities above 1"),
    "sum above 1": ({"change": lambda row: dict.fromkeys(row, -0.1)}, "add up to more than 1"),
    "not numbers": ({"change": dict.fromkeys}, "probabilities above 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_lane_with_a_sentence_and_keeps_its_trace(fault, spoken, folder):
    served = load(reached(spoken, folder))
    settings, says = FAULTS[fault]
    spoken.good_events = 2
    for name, value in settings.items():
        setattr(spoken, name, value)
    found = follow(served, temperature=1.5).run()
    assert len(found.output()) == (0 if {"status", "raw"} & settings.keys() else 2)
    assert re.search(says, found.ended) and found.ended.endswith(".")
    trace.check_trace(found.to_json())


def test_events_that_write_nothing_are_no_steps(server, folder):
    server.has, server.limit, server.good_events = (CHAT,), 20, 1
    served = load(reached(server, folder))
    server.event = b'{"choices": [{"delta": {"role": "assistant", "content": ""}, "logprobs": null}]}'
    found = follow(served, temperature=0.0).run()
    assert len(found.output()) == 10 and len(found.steps) == 10


def test_a_lane_that_is_stopped_closes_the_stream(spoken, folder):
    lane = follow(load(reached(spoken, folder)), new_tokens=200)
    lane.advance()
    lane.close()
    assert len(lane.trace.output()) == 1 and spoken.finished == 0


def test_a_written_token_without_a_log_probability_has_none(spoken, folder):
    """Servers write -9999 for a written token that is not among those that they list."""
    truthful = spoken.written

    def without(asked):
        for token, row in truthful(asked):
            others = {other: value for other, value in row.items() if other != token}
            yield token, others | {token: -9999.0}

    spoken.written = without
    found = follow(load(reached(spoken, folder)), new_tokens=3, top_logprobs=5).run()
    assert [value for s in found.steps for commit in s.of(Commit) for value in commit.logprobs] == [None] * 3
    assert all(e.logprob is None for s in found.steps for e in s.of(Propose))
    trace.check_trace(json.loads(json.dumps(found.to_json(), allow_nan=False)))
