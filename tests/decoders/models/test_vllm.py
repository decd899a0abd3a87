"""A real vLLM server on the shipped target: strategies decode with it what they decode with the model here.

Needs the second environment that `make vllm` sets up; left out without it.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from decoders.lane import Lane, Limits
from decoders.models.catalog import DRAFT, SHIPPED, TARGET
from decoders.models.loading import load

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".vllm" / "bin" / "python"
PROMPT = "Once upon a time, there was a little girl named Lily."
WAIT_SECONDS = 600  # until the server answers
OPTIONS = ["--dtype", "float32", "--max-logprobs", "-1", "--max-model-len", "512", "--enforce-eager"]
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make vllm` sets up the server that these tests need"),
]


@pytest.fixture(scope="module")
def served():
    """The shipped target, held by a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(SHIPPED / TARGET)]
    command += ["--served-model-name", TARGET, "--host", "127.0.0.1", "--port", str(port), *OPTIONS]
    quiet = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    server = subprocess.Popen(
        command, env=os.environ | quiet, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )
    try:
        until = time.monotonic() + WAIT_SECONDS
        while not answers(port):
            assert server.poll() is None and time.monotonic() < until, "the server did not start"
            time.sleep(1)
        yield load(f"http://127.0.0.1:{port}/v1#{TARGET}")
    finally:
        server.terminate()
        server.wait(30)


def answers(port: int) -> bool:
    """Whether the server is up."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def here():
    return load(TARGET, "cpu"), load(DRAFT, "cpu")


def test_it_names_the_whole_vocabulary(served, here):
    assert served.engine.top is None and served.engine.vocabulary == here[0].engine.vocabulary
    assert served.context == 512


@pytest.mark.parametrize(
    ("strategy", "parameters"),
    [
        ("greedy", {}),
        ("sample", {"temperature": 0.8, "top_p": 0.9}),
        ("beam", {}),
        ("mirostat", {}),
        ("prompt_lookup", {}),
        ("speculative", {}),
        ("speculative", {"temperature": 0.7}),
        ("speculative_tree", {}),
        ("specinfer", {}),
        ("jacobi", {}),
    ],
)
def test_a_strategy_decodes_with_it_as_here(strategy, parameters, served, here):
    """Speculative methods draft here and verify there."""
    local, draft = here
    prompt, limits = local.encode(PROMPT), Limits(max_new_tokens=24)
    traces = [
        Lane(strategy, prompt, {"target": target, "draft": draft}, parameters, 3, limits).run()
        for target in (served, local)
    ]
    assert traces[0].output() == traces[1].output()
    theirs, ours = traces[0].costs.totals(), traces[1].costs.totals()
    assert theirs["logprob"] == pytest.approx(ours["logprob"], abs=1e-3)
