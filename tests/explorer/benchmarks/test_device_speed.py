"""The bench of one device: which rows its table has. What they say is not tested."""

from argparse import Namespace
from functools import partialmethod

import pytest
import torch

from decoders.engine.engine import Engine
from explorer import timing
from explorer.benchmarks import device_speed
from tests.helpers import tiny_models

TINY = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "tie_word_embeddings": True}
OF_A_MODEL = (
    "greedy against generate",
    "greedy against generate with a static cache",
    "beam 4 against generate(num_beams=4)",
)
OF_FORWARDS = (
    "a forward over 64 nodes against one over one node",
    "share of the memory bandwidth in a forward",
)


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """One round of two tokens; forwards are captured by the tracer alone, without a compiler."""
    monkeypatch.setattr(timing, "NEW_TOKENS", 2)
    monkeypatch.setattr(timing, "ROUNDS", 1)
    monkeypatch.setattr(device_speed, "TIMES", 1)
    monkeypatch.setattr(device_speed, "COPIED", 1 << 16)
    monkeypatch.setattr(device_speed, "PROMPTS", device_speed.PROMPTS[:1])
    monkeypatch.setattr(Engine, "capture", partialmethod(capture, Engine.capture))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def capture(engine: Engine, plain, **compiler) -> None:
    """What is asked to be compiled is traced."""
    plain(engine, **({"backend": "eager"} if compiler else {}))


def names_of(rows: list[dict]) -> list[str]:
    for row in rows:
        assert row["value"] > 0.0 and row["unit"] in ("x", "")
    return [row["name"] for row in rows]


def of_one_model(name: str) -> list[str]:
    loaded = [f"{name}: {row}" for row in (*OF_A_MODEL, *OF_FORWARDS)]
    ways, rows = ("captured", "captured and compiled"), (OF_A_MODEL[0], *OF_FORWARDS)
    return loaded + [f"{name}, {how}: {row}" for how in ways for row in rows]


def test_the_table_of_the_processor(tmp_path):
    target = tiny_models.save(tmp_path / "target", seed=0)
    draft = tiny_models.save(tmp_path / "draft", seed=1)
    rows = list(device_speed.device(Namespace(model=target, draft=draft, device="cpu")))
    expected = of_one_model(target)
    expected.insert(5, f"{target}: speculative against generate(assistant_model=...)")
    assert names_of(rows) == expected
    assert {row["goal"] for row in rows} == {"none"}  # the goals are those of a GPU


def test_a_llama_with_random_weights(monkeypatch):
    """As on a GPU, at toy size: bfloat16, the shipped tokenizer, a goal against `generate`."""
    shared = device_speed.SHARED | {"num_attention_heads": 2, "num_key_value_heads": 1}
    monkeypatch.setattr(device_speed, "SHARED", shared | {"vocab_size": 4096})
    rows = list(device_speed.large("Llama of 1.2 B parameters", TINY, [[5, 6, 7, 8]], "cpu"))
    assert names_of(rows) == of_one_model("Llama of 1.2 B parameters")
    assert [row["goal"] for row in rows if row["goal"] != "none"] == ["≥ 3 x"]


def test_what_does_not_fit_is_left_out(monkeypatch):
    monkeypatch.setattr("decoders.engine.kv_cache.free_bytes", lambda device: 1)
    (row,) = device_speed.large("8 B", TINY, [[5, 6]], "cpu")
    assert row == {"name": "8 B", "note": "left out: it does not fit in memory"}
