"""A link is read on the server: what the page makes of a setup comes back, all else is one sentence."""

import base64
import json
import zlib

import pytest

from explorer.page import links
from explorer.runs.model_pool import Loader
from tests.helpers.server_calls import ask

SETUP = {
    "version": 1,
    "prompt": "A fox 🦊 & <b>",
    "max_new_tokens": 9,
    "lanes": [
        {"strategy": "beam", "parameters": {"num_beams": 3}, "seed": 7, "view": "entropy"},
        {"strategy": "greedy", "parameters": {}, "begin": {"tokens": [5, 6], "forced": [1]}},
    ],
    "models": {"target": "llama-tiny", "draft": None},
    "chat": {"system": "Be brief."},
}


def packed(data: bytes) -> str:
    packer = zlib.compressobj(wbits=-15)
    return base64.urlsafe_b64encode(packer.compress(data) + packer.flush()).decode().rstrip("=")


@pytest.fixture
def read():
    loader = Loader("tiny", None)
    loader.done.set()
    (function,) = links.functions(None, loader)
    return lambda data: ask(function, {"packed": packed(data)})


def test_a_setup_comes_back_with_what_a_link_may_carry_and_nothing_else(read):
    odd = {**SETUP, "extra": 1, "lanes": [{**SETUP["lanes"][0], "extra": 1}, SETUP["lanes"][1]]}
    found = read(json.dumps(odd).encode())["setup"]
    lanes = [SETUP["lanes"][0], {**SETUP["lanes"][1], "seed": 0}]
    wanted = {key: SETUP[key] for key in ("prompt", "max_new_tokens", "chat")}
    assert found == {**wanted, "lanes": lanes, "models": {"target": "llama-tiny"}}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"prompt": 7}, "The prompt of a link has at most 20000 characters."),
        ({"prompt": "\ud800"}, links.DAMAGED),
        ({"max_new_tokens": 513}, "from 1 to 512"),
        ({"lanes": [SETUP["lanes"][0]] * 5}, "one to 4 lanes"),
        ({"lanes": [{"strategy": ["greedy"]}]}, "the strategy something"),
        ({"lanes": [{"strategy": "greedy", "parameters": {"max_new": 1}}]}, "max_new of Greedy"),
        ({"lanes": [{"strategy": "beam", "parameters": {"num_beams": {}}}]}, "num_beams of Beam search"),
        ({"lanes": [{"strategy": "greedy", "parameters": [1]}]}, links.DAMAGED),
        ({"lanes": [{"strategy": "greedy", "seed": 1.5}]}, "unusable seed"),
        ({"lanes": [{"strategy": "greedy", "begin": {"tokens": [-1]}}]}, links.DAMAGED),
    ],
)
def test_what_cannot_be_used_is_one_sentence(read, changed, says):
    assert says in read(json.dumps({**SETUP, **changed}).encode())["error"]


def test_an_unknown_view_is_left_out_and_so_are_odd_models_and_chats(read):
    odd = {"lanes": [{"strategy": "greedy", "view": "film"}], "models": {"target": 7}, "chat": 7}
    found = read(json.dumps({**SETUP, **odd}).encode())["setup"]
    assert set(found) == {"prompt", "max_new_tokens", "lanes"} and "view" not in found["lanes"][0]


@pytest.mark.parametrize("text", ["", "%", "abc", "é", "====", "AAAA"])
def test_a_damaged_link_says_so(text):
    with pytest.raises(ValueError, match="This link is damaged"):
        links.unpack(text)


@pytest.mark.parametrize("data", [b"null", b"[]", b"\xff", b"[" * 50_000, b" " * 10**7, b"{" * 9])
def test_bytes_that_are_no_setup_are_damaged_and_large_ones_are_not_unpacked(read, data):
    assert read(data) == {"error": links.DAMAGED}
