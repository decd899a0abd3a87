"""A real vLLM server on the shipped target: strategies decode with it what they decode with the model here.
What its own speculation does is tested in tests/decoders/watch/test_vllm_itself.py.

Needs the second environment that `make vllm` sets up; left out without it.
"""

import json
import os
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from decoders import registry
from decoders.lane import Lane, Limits
from decoders.models.catalog import DRAFT, SHIPPED, TARGET
from decoders.models.loading import load
from explorer.benchmarks.free_port import free_port

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".vllm" / "bin" / "python"
PROMPT = "Once upon a time, there was a little girl named Lily."
WAIT_SECONDS = 600  # until the server answers
OPTIONS = ["--dtype", "float32", "--max-logprobs", "-1", "--max-model-len", "512", "--enforce-eager"]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"  # of its chat
QUIET = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
IN_PROCESS = f"{TARGET},max_model_len=512,enforce_eager=true"
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON.exists(), reason="`make vllm` sets up the server that these tests need"),
]


@pytest.fixture(scope="module")
def served():
    """The shipped target, held by a server."""
    port = free_port()
    command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(SHIPPED / TARGET)]
    command += ["--served-model-name", TARGET, "--host", "127.0.0.1", "--port", str(port), *OPTIONS]
    command += ["--chat-template", TEMPLATE]
    server = subprocess.Popen(
        command, env=os.environ | QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
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


SPECULATIVE = [name for name, one in registry.strategies().items() if one.family == "speculative"]


@pytest.mark.parametrize("name", [name for name in SPECULATIVE if name != "judge"])
def test_a_speculative_method_drafts_here_and_verifies_there(name, served, here):
    """All of them, or a sentence says what a served model lacks. `judge` has a trained head for the model
    here, and so accepts other tokens than there.
    """
    local, draft = here
    prompt, outputs = local.encode(PROMPT), []
    for target in (served, local):
        try:
            lane = Lane(name, prompt, {"target": target, "draft": draft}, {}, 3, Limits(8))
        except ValueError as error:
            assert target is served and str(error).endswith(".")
            return
        outputs.append(lane.run().output())
    assert outputs[0] == outputs[1]


def test_its_own_decoding_is_followed(served, here):
    """Without chance it writes what greedy decoding writes here, and tells the same log-probabilities."""
    prompt, limits = here[0].encode(PROMPT), Limits(max_new_tokens=24)
    follow = {"temperature": 0.0}
    found = Lane("server_stream", prompt, {"target": served}, follow, 3, limits).run()
    greedy = Lane("greedy", prompt, {"target": here[0]}, {}, 3, limits).run()
    assert found.output() == greedy.output()
    theirs, ours = found.costs.totals(), greedy.costs.totals()
    assert theirs["logprob"] == pytest.approx(ours["logprob"], abs=1e-3)


def test_its_chat_is_followed(served, here):
    """Which names tokens by their texts; the template leaves the message as it is."""
    chat, prompt = load(f"{served.name},endpoint=chat"), here[0].encode(PROMPT)
    assert not chat.engine.scores and chat.engine.top == 20
    found = Lane("server_stream", prompt, {"target": chat}, {"temperature": 0.0}, 3, Limits(24)).run()
    greedy = Lane("greedy", prompt, {"target": here[0]}, {}, 3, Limits(24)).run()
    assert found.output() == greedy.output()
    theirs, ours = found.costs.totals(), greedy.costs.totals()
    assert theirs["logprob"] == pytest.approx(ours["logprob"], abs=1e-3)
    with pytest.raises(ValueError, match="The server's own decoding"):
        Lane("sample", prompt, {"target": chat})


def test_a_text_that_the_server_ends_is_ended_here(served, here):
    prompt, limits = here[0].encode(f"{PROMPT} The end. They lived happily ever after."), Limits(300)
    found = Lane("server_stream", prompt, {"target": served}, {"temperature": 0.0}, 3, limits).run()
    assert found.output() == Lane("greedy", prompt, {"target": here[0]}, {}, 3, limits).run().output()
    assert found.ended == "The model wrote its end-of-text token."


def test_vllm_in_one_process_decodes_as_here(here):
    """`--engine vllm`, run in the environment that has vLLM."""
    command = [str(PYTHON), "-m", "explorer", "run", "--engine", "vllm", "--model", IN_PROCESS]
    command += ["--strategy", "beam", "--prompt", PROMPT, "--max-new-tokens", "16", "--json"]
    told = subprocess.run(
        command, env=os.environ | QUIET, cwd=ROOT, capture_output=True, timeout=WAIT_SECONDS
    )
    assert told.returncode == 0, told.stderr.decode()[-2000:]
    lines = told.stdout.decode().splitlines()  # vLLM writes there, too
    answer = json.loads(next(line for line in lines if line.startswith('{"strategy"')))
    local = Lane("beam", here[0].encode(PROMPT), {"target": here[0]}, {}, 0, Limits(16)).run()
    assert answer["output_tokens"] == local.output()
    assert answer["totals"]["logprob"] == pytest.approx(local.costs.totals()["logprob"], abs=1e-3)
