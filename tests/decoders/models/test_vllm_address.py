"""Names of models that vLLM holds in this process. `test_vllm.py` runs one."""

import sys
from types import SimpleNamespace

import pytest

from decoders.engine.served import ServedEngine, ServerProblem
from decoders.engine.tree import Tree
from decoders.models.address import held_by
from decoders.models.loading import load
from decoders.models.vllm_client import VllmClient


def test_an_engine_makes_a_name_an_address():
    assert held_by("vllm", "llama-tiny") == "vllm:llama-tiny" == held_by("vllm", "vllm:llama-tiny")
    assert held_by("transformers", "llama-tiny") == "llama-tiny"
    assert held_by("vllm", "http://gpu/v1#mine") == "http://gpu/v1#mine"


def test_where_vllm_is_not_installed_a_sentence_says_where_it_is(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ValueError, match=r"vLLM is not installed here; `make vllm` sets up"):
        load("vllm:llama-tiny")
    with pytest.raises(ValueError, match="There is no model 'nowhere'"):
        load("vllm:nowhere")


def test_what_vllm_raises_is_a_problem_of_the_server(monkeypatch):
    def generate(prompts, how, use_tqdm):
        raise RuntimeError("Engine core\n died.")

    config = SimpleNamespace(get_vocab_size=lambda: 3, max_model_len=8)
    llm = SimpleNamespace(generate=generate, llm_engine=SimpleNamespace(model_config=config))
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=dict))
    engine = ServedEngine(VllmClient(llm), 8)
    assert not engine.streams
    with pytest.raises(ServerProblem, match=r"^vLLM failed: Engine core died\.$"):
        engine.attach(Tree([0, 1])).score([1])
