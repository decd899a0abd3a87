"""What a model's name means: a table of names and what `resolve` makes of them."""

from pathlib import Path

import pytest

from decoders.models.address import InVllm, Server
from decoders.models.catalog import SHIPPED, with_weights
from decoders.models.names import Edited, Folder, Hub, Shipped, place, resolve, stored
from decoders.models.shared_tokens import folder_of_tokens, same_tokens
from decoders.refusal import Refusal
from tests.helpers import tiny_models

TINY = Shipped("llama-tiny", SHIPPED / "llama-tiny")
VERILOG = Shipped("llama-tiny-verilog", SHIPPED / "llama-tiny-verilog")
GPU = "http://gpu:8000/v1"
NAMES = {
    "llama-tiny": TINY,
    "owner/model": Hub("owner/model", "owner/model", None),
    "owner/model@v1.0": Hub("owner/model@v1.0", "owner/model", "v1.0"),
    "owner/c++": Hub("owner/c++", "owner/c++", None),
    "llama-tiny:bits=4": Edited("llama-tiny:bits=4", TINY, (), (("bits", "4"),)),
    "llama-tiny:drop=": Edited("llama-tiny:drop=", TINY, (), (("drop", ""),)),
    "owner/model@main:wanda=0.5:drop=a3.m5.7": Edited(
        "owner/model@main:wanda=0.5:drop=a3.m5.7",
        Hub("owner/model@main", "owner/model", "main"),
        (),
        (("wanda", "0.5"), ("drop", "a3.m5.7")),
    ),
    "llama-tiny+0.5*llama-tiny-verilog+-1*o/m:bits=4": Edited(
        "llama-tiny+0.5*llama-tiny-verilog+-1*o/m:bits=4",
        TINY,
        ((0.5, VERILOG), (-1.0, Hub("o/m", "o/m", None))),
        (("bits", "4"),),
    ),
    "llama-tiny:bits=4+1*llama-tiny-verilog": Edited(
        "llama-tiny:bits=4+1*llama-tiny-verilog",
        Edited("llama-tiny:bits=4", TINY, (), (("bits", "4"),)),
        ((1.0, VERILOG),),
        (),
    ),
    f"{GPU}/#Qwen/Qwen3-8B": Server(f"{GPU}/#Qwen/Qwen3-8B", GPU, *["Qwen/Qwen3-8B"] * 2, False),
    f"{GPU}#m,tokenizer=./t": Server(f"{GPU}#m,tokenizer=./t", GPU, "m", "./t", False),
    f"{GPU}#m:bits=4": Server(f"{GPU}#m:bits=4", GPU, *["m:bits=4"] * 2, False),
    f"{GPU}#m,endpoint=chat": Server(f"{GPU}#m,endpoint=chat", GPU, "m", "m", True),
    "vllm:llama-tiny": InVllm("vllm:llama-tiny", "llama-tiny", {}),
    "vllm:o/m,tensor_parallel_size=4,backend=ray,enforce_eager=true": InVllm(
        "vllm:o/m,tensor_parallel_size=4,backend=ray,enforce_eager=true",
        "o/m",
        {"tensor_parallel_size": 4, "backend": "ray", "enforce_eager": True},
    ),
}
REFUSED = {
    **dict.fromkeys(("nosuch", "./nosuch", "/nosuch", "~nobody-here/m", "a/b/c", "a:b"), "There is no model"),
    "nosuch:bits=4": "There is no model 'nosuch'",
    "llama-tiny+1*nothing": "There is no model 'nothing'",
    "llama-tiny:bits=99": "write one from 2 to 16",
    **dict.fromkeys(
        ("vllm:", "vllm:,dtype=float32", "vllm:me,fast", "vllm:me,max_logprobs=5"),
        "A model in vLLM is named vllm:name",
    ),
    "http://127.0.0.1:1/v1": "A served model is named http://host:port/v1#name",
    "http://me:key@127.0.0.1:1/v1#tiny": "holds no key",
    "http://127.0.0.1:1/v1?key=1#tiny": "holds no key",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return Path(tiny_models.save(tmp_path_factory.mktemp("models") / "base"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means(name):
    assert resolve(name) == NAMES[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_means_nothing_is_refused_in_a_sentence(name):
    with pytest.raises(Refusal, match=REFUSED[name]):
        resolve(name)


def test_a_folder_with_config_and_weights_is_a_model(folder, tmp_path, monkeypatch):
    assert resolve(str(folder)) == Folder(str(folder), folder)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert resolve("~/base:bits=4") == Edited("~/base:bits=4", Folder("~/base", folder), (), (("bits", "4"),))
    with pytest.raises(Refusal, match=r"holds no config\.json"):
        resolve(str(tmp_path))
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(Refusal, match=r"holds no \.safetensors weights"):
        resolve(str(tmp_path))


def test_a_model_is_read_from_one_place(folder):
    """An edited one from where its base is."""
    assert place(stored(resolve(f"{folder}:bits=4"))) == (str(folder), None) == place(resolve(str(folder)))
    assert place(stored(resolve("owner/model@v1:bits=4:rank=0.5"))) == ("owner/model", "v1")


def test_tokens_are_compared_by_the_files_of_both(folder):
    for name in ("llama-tiny", "llama-tiny:bits=4", "vllm:llama-tiny", f"{GPU}#m,tokenizer=llama-tiny"):
        assert folder_of_tokens(resolve(name)) == with_weights("llama-tiny")
        assert same_tokens(name, "llama-tiny-draft")
    assert same_tokens(str(folder), "llama-tiny") is False
    for name in ("owner/model", f"{GPU}#owner/model", "nosuch"):
        assert same_tokens(name, "llama-tiny") is None
