"""Served models: the same tokens as the same model here, and one sentence for whatever goes wrong."""

import json
import re
import time

import pytest

from decoders import registry
from decoders.engine import served as engine_of_servers
from decoders.engine.served import ServerProblem
from decoders.engine.tree import Tree
from decoders.lane import Lane, Limits
from decoders.models import openai_server
from decoders.models.address import listed, short
from decoders.models.catalog import by_role
from decoders.models.loading import check_pair, load
from decoders.trace import trace
from decoders.trace.events import Distribution, Forward
from decoders.trace.number_format import number
from tests.helpers.fake_server import fake_server

PROMPT = [40, 41, 42, 40, 41]


def address(server, folder) -> str:
    return f"{server.base}#tiny,tokenizer={folder}"


def lane(model, strategy="greedy", draft=None, seed=0, new_tokens=10, **parameters) -> Lane:
    models = {"target": model} | ({"draft": draft} if draft else {})
    return Lane(strategy, PROMPT, models, parameters, seed, Limits(max_new_tokens=new_tokens))


def test_a_served_model_scores_a_tree_as_the_model_here(server, folder, here):
    served, tree = load(address(server, folder)), Tree(PROMPT)
    left, right = tree.add(4, 7), tree.add(4, 8)
    leaf = tree.add(left, 9)
    scorer = served.engine.attach(tree)
    ours = here.engine.attach(tree).score([right, leaf, 4]).log_softmax(-1)
    assert (scorer.score([right, leaf, 4]) - ours).abs().max() < 1e-4
    assert scorer.work.tokens == 8 and scorer.work.rows == 3
    asked = server.requests[-1]
    assert asked["prompt"] == [tree.text(n) for n in (right, leaf, 4)] and asked["max_tokens"] == 1
    scorer.score([leaf])
    assert server.requests[-1] is asked and scorer.work.tokens == 0
    check_pair(served, here)


@pytest.fixture(scope="module")
def served(here, folder):
    """The model of a truthful server, connected to once."""
    with fake_server(here) as made:
        yield load(address(made, folder))


@pytest.mark.parametrize("name", [name for name in registry.strategies() if name != "server_stream"])
def test_every_strategy_decodes_with_it_as_here_or_is_refused_in_a_sentence(name, served, here, tiny_model):
    """The draft stays here: a model at the edge, and its target in the cloud."""
    draft = tiny_model("llama", 1)
    try:
        there = lane(served, name, draft, seed=3, new_tokens=7)
    except ValueError as error:
        assert str(error).endswith(".") and len(str(error)) > 40
        assert name not in FIT
        return
    found = there.run()
    assert name not in UNFIT
    trace.check_trace(found.to_json())
    if name not in ROUNDING:
        assert found.output() == lane(here, name, draft, seed=3, new_tokens=7).run().output()


ROUNDING = {"coupling"}  # pairs tokens in the order of their probabilities, which rounding may change
FIT = {
    "greedy",
    "sample",
    "beam",
    "speculative",
    "speculative_tree",
    "specinfer",
    "prompt_lookup",
    "mirostat",
}
UNFIT = {"contrastive_search", "layerskip", "kangaroo", "dola", "clasp", "lantern"}


def test_where_a_server_names_few_tokens_the_lane_says_so(here, folder):
    with fake_server(here, limit=20) as server:
        served = load(address(server, folder))
        assert served.engine.top == 20
        found = lane(served, "sample", new_tokens=6).run()
        assert "20 most likely tokens" in found.to_json()["steps"][0]["events"][0]["text"]
        rows = [event for step in found.steps for event in step.of(Distribution)]
        assert rows and {event.view for event in rows} == {"target"}
        assert {event.among for event in rows} == {20} and all(0.0 < event.unseen < 1.0 for event in rows)
        most = max(event.unseen for event in rows)
        assert found.badge == "sampled" and found.costs.unseen == most
        assert found.promise == f"sampled within the top 20; rest mass up to {number(most, 2)}"
        assert trace.from_json(found.to_json()).promise == found.promise
        assert lane(served).run().promise.startswith("equal to generate within the top 20; rest mass up to")
        scorer = served.engine.attach(Tree(PROMPT))
        row = scorer.score([4])[0]
        assert row.isfinite().sum() == 20
        assert scorer.unseen[4] == pytest.approx(1 - row.exp().sum().item())
        greedy = lane(here).run().output()
        assert lane(served).run().output() == greedy


@pytest.mark.parametrize(
    ("strategy", "settings", "promised"),
    [
        ("speculative", {"temperature": 1.0}, "exact within the top 20; rest mass up to "),
        ("prompt_lookup", {"temperature": 1.0}, "exact within the top 20; rest mass up to "),
        ("speculative", {"temperature": 0.0}, "lossless: equal to greedy"),
    ],
)
def test_the_badge_says_how_far_it_holds(strategy, settings, promised, here, folder, tiny_model):
    with fake_server(here, limit=20) as server:
        found = lane(load(address(server, folder)), strategy, tiny_model("llama", 1), **settings).run()
    assert found.promise.startswith(promised) and found.badge != found.promise or "lossless" in promised
    local = lane(here, strategy, tiny_model("llama", 1), **settings).run()
    assert local.promise == local.badge == found.badge and local.costs.named is None


@pytest.mark.parametrize("limit", [None, 20])
@pytest.mark.parametrize(("tells", "sequences"), [(True, [1]), (False, [1, 5]), (None, [1, 5])])
def test_a_path_is_read_once_where_the_server_names_tokens_along_it(tells, sequences, limit, here, folder):
    """Five places of a text: five token lists before, one with `prompt_logprobs`; the same numbers."""
    with fake_server(here, limit) as server:
        server.tells_prompts = tells
        served, tree = load(address(server, folder)), Tree(PROMPT)
        before, scorer = len(server.requests), served.engine.attach(tree)
        rows = scorer.score([3, 0, 4, 1, 2])
        assert [len(asked["prompt"]) for asked in server.requests[before:]] == sequences
        ours = here.engine.attach(tree).score([3, 0, 4, 1, 2]).double().log_softmax(-1)
        named = rows.isfinite()
        assert (rows - ours)[named].abs().max() < 1e-4
        assert (named.sum(-1) == (limit or served.engine.vocabulary)).all()
        again = served.engine.attach(Tree(PROMPT))
        again.score([0, 1, 2, 3, 4])  # what it refuses is not asked for again
        assert len(server.requests) == before + len(sequences) + 1


def test_a_call_for_many_nodes_is_several_requests(server, folder, here, tiny_model, monkeypatch):
    """An answer holds a million log-probabilities at most; here as many as three nodes have."""
    monkeypatch.setattr(engine_of_servers, "LOGPROBS", 3 * here.engine.vocabulary)
    served, draft = load(address(server, folder)), tiny_model("llama", 1)
    assert served.engine.max_nodes == 3
    found = lane(served, "speculative_tree", draft, temperature=0.0).run()
    assert max(len(asked["prompt"]) for asked in server.requests) == 3
    assert found.output() == lane(here, "speculative_tree", draft, temperature=0.0).run().output()
    forwards = [f for s in found.steps for f in s.of(Forward) if f.model == "target"]
    assert max(f.rows for f in forwards) > 3  # the requests of a call count as one forward


def test_few_places_of_a_long_text_are_read_one_by_one(server, folder):
    served, tree = load(address(server, folder)), Tree(PROMPT * 4)
    served.engine.attach(tree).score([18, 19])
    assert len(server.requests[-1]["prompt"]) == 2 and "prompt_logprobs" not in server.requests[-1]
    branch = Tree(PROMPT[:1])
    served.engine.attach(branch).score([branch.add(0, 7), branch.add(0, 8)])
    assert len(server.requests[-1]["prompt"]) == 2


def test_lies_about_a_path_are_refused(server, folder):
    scorer = load(address(server, folder)).engine.attach(Tree(PROMPT))
    server.change = lambda row: dict.fromkeys(row, {"logprob": 3.0}) if "0" in row else row
    with pytest.raises(ServerProblem, match="probabilities above 1"):
        scorer.score([0, 1, 2, 3, 4])
    server.change = lambda row: {"the": 1} if "0" in row else row
    with pytest.raises(ServerProblem, match="another form than vLLM's"):
        scorer.score([0, 1, 2, 3, 4])


def test_a_key_goes_into_the_header_and_nowhere_else(here, folder, monkeypatch, server):
    monkeypatch.setenv(openai_server.KEY_VARIABLE, "secret-of-mine")
    served = load(address(server, folder))
    found = lane(served).run()
    assert server.headers[-1]["Authorization"] == "Bearer secret-of-mine"
    assert "secret-of-mine" not in json.dumps(found.to_json()) + repr(served.facts()) + repr(served.client)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("http://127.0.0.1:1/v1#tiny", "There is no tokenizer 'tiny' here"),
        (
            "http://127.0.0.1:1/v1#tiny,tokenizer=llama-tiny:bits=4",
            "There is no tokenizer 'llama-tiny:bits=4' here",
        ),
    ],
)
def test_bad_addresses_are_refused_in_a_sentence(bad, says):
    with pytest.raises(ValueError, match=says):
        load(bad)


def test_lists_and_short_names_of_addresses():
    names = "http://gpu/v1#mine,tokenizer=Qwen/Qwen3-8B, vllm:./big,seed=1,llama-tiny:bits=4"
    cut = ["http://gpu/v1#mine,tokenizer=Qwen/Qwen3-8B", "vllm:./big,seed=1", "llama-tiny:bits=4"]
    assert listed(names) == cut and list(by_role("t", names).values()) == ["t", *cut]
    assert [short(name) for name in cut] == ["mine", "big", "llama-tiny:bits=4"]
    assert short("https://gpu/v1#Qwen/Qwen3-8B,endpoint=chat") == "Qwen3-8B" and short("Qwen/Q/") == "Q"


def test_a_draft_may_be_served_too(server, folder, here, tiny_model):
    target, served = tiny_model("llama", 1), load(address(server, folder))
    there, local = (
        Lane("speculative", PROMPT, {"target": target, "draft": draft}, {}, 3, Limits(10)).run()
        for draft in (served, here)
    )
    assert there.output() == local.output() and there.models["draft"] == served.name


def test_nobody_there_and_no_such_model(server, folder):
    with pytest.raises(ValueError, match=r"Nothing answers at http://127.0.0.1:1/v1; start the server"):
        load(f"http://127.0.0.1:1/v1#tiny,tokenizer={folder}")
    with pytest.raises(ValueError, match=r"has no model 'large'; it has: 'tiny'"):
        load(f"{server.base}#large,tokenizer={folder}")


@pytest.mark.parametrize("limit", [0])
def test_a_server_without_log_probabilities_is_refused(here, folder, limit):
    with fake_server(here, limit) as server, pytest.raises(ValueError, match="gives no log-probabilities"):
        load(address(server, folder))


def shifted(row: dict, by: float) -> dict:
    return {name: value + by for name, value in row.items()}


FAULTS = {
    "busy": ({"status": 429}, r"too much to do \(429\)"),
    "broken": ({"status": 500}, r"failed \(500\)"),
    "no key": ({"status": 401}, "needs a valid key"),
    "refused": ({"status": 404}, r"refuses this \(404\)"),
    "not JSON": ({"raw": b"<html>"}, "it is not JSON"),
    "cut off": ({"raw": b'{"choices": [{"index": 0'}, "it is not JSON"),
    "another shape": ({"raw": b'{"choices": [{"index": 0}]}'}, "no log-probabilities in it"),
    "too few texts": ({"raw": b'{"choices": []}'}, "0 of the 1 rows"),
    "above 1": ({"change": lambda row: shifted(row, 3.0)}, "probabilities above 1"),
    "sum above 1": ({"change": lambda row: dict.fromkeys(row, -0.1)}, "add up to more than 1"),
    "unknown ids": ({"change": lambda row: {"token_id:99999": -1.0}}, "the tokenizer does not have"),
    "texts": ({"change": lambda row: {"the": -1.0}}, "by their texts"),
    "not numbers": ({"change": lambda row: dict.fromkeys(row)}, "probabilities above 1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_that_fails_or_lies_ends_the_lane_and_keeps_its_trace(fault, server, folder):
    running = lane(load(address(server, folder)), "sample", new_tokens=20)
    running.advance()
    before = running.trace.output()
    settings, says = FAULTS[fault]
    for name, value in settings.items():
        setattr(server, name, value)
    found = running.run()
    assert found.output() == before and len(before) == 1
    assert re.search(says, found.ended) and found.ended.endswith(".")


def test_a_slow_server_ends_the_lane(server, folder, monkeypatch):
    running = lane(load(address(server, folder)), "sample", new_tokens=20)
    running.advance()
    running.models["target"].client.http.timeout = 0.05
    real = server.completions
    monkeypatch.setattr(server, "completions", lambda asked: time.sleep(0.3) or real(asked))
    assert "took more than" in running.run().ended


def test_hidden_states_are_refused(server, folder):
    scorer = load(address(server, folder)).engine.attach(Tree(PROMPT))
    with pytest.raises(ValueError, match="probabilities alone"):
        scorer.score([4], hidden=True)
