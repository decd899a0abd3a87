"""The endpoints for scripts and assistants, through a real Gradio client and a real MCP client."""

import asyncio
import json
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError, ValidationError
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

from decoders.lane import Lane, Limits
from decoders.models.loading import load
from decoders.registry import strategies
from decoders.trace.trace import from_json
from explorer.page.layout import build
from explorer.runs.lane_factory import lane_maker
from explorer.runs.scheduler import Runs
from tests.helpers.launched import launched
from tests.helpers.ready_loader import ready_loader
from tests.helpers.scripted_lane import ScriptedLane

MCP = "gradio_api/mcp/"


@pytest.fixture(scope="module")
def served():
    """The app on tiny models: `address, client, models, runs`. The prompt "slow" takes minutes."""
    loader = ready_loader()
    real = lane_maker(loader)

    def make(request):
        return [ScriptedLane([b" a"] * 20_000, 0.01)] if request.prompt == "slow" else real(request)

    runs = Runs(make)
    demo, launch = build(runs, loader)
    address = launched(demo, launch)
    client = Client(address, verbose=False, analytics_enabled=False)
    yield SimpleNamespace(address=address, client=client, models=loader.models, runs=runs)
    demo.close()
    runs.close()


def expected(models, **parameters):
    """What the library gives for the same call."""
    prompt = models["target"].encode("Once")
    return Lane("speculative", prompt, models, parameters, 5, Limits(12)).run()


def test_run_gives_what_the_library_gives(served):
    found = served.client.predict("Once", "speculative", {"num_assistant_tokens": 3}, 12, 5, api_name="/run")
    assert [one["text"] for one in found["sequences"]] == [found["text"]]
    wanted = expected(served.models, num_assistant_tokens=3)
    assert found["output_tokens"] == wanted.output() and len(found["output_tokens"]) == 12
    assert found["text"] == wanted.text() and found["ended"] == "Reached max_new_tokens = 12."
    assert found["totals"]["target_forwards"] == wanted.costs.totals()["target_forwards"]
    assert found["metrics"].keys() == wanted.costs.metrics().keys()


def test_a_trace_can_be_fetched_and_read_back(served):
    trace = from_json(served.client.predict("Once", "greedy", {}, 6, 0, api_name="/trace"))
    assert trace.strategy == "greedy" and len(trace.output()) == 6


def test_a_call_names_models_that_come_with_the_app(served):
    names = {"target": "llama-tiny-draft"}
    trace = from_json(served.client.predict("Once", "greedy", {}, 6, 0, names, api_name="/trace"))
    assert trace.models == names
    model = load("llama-tiny-draft")
    wanted = Lane("greedy", model.encode("Once"), {"target": model}, {}, 0, Limits(6)).run()
    assert trace.output() == wanted.output()


def test_strategies_are_listed_and_nothing_else_is_an_endpoint(served):
    listed = served.client.predict(api_name="/strategies")
    assert [s["name"] for s in listed] == list(strategies())
    named = served.client.view_api(return_format="dict")["named_endpoints"]
    assert sorted(named) == ["/run", "/strategies", "/trace"]
    told = {p["parameter_name"]: p for p in named["/run"]["parameters"]}
    assert list(told) == ["prompt", "strategy", "parameters", "max_new_tokens", "seed", "models"]
    assert not told["prompt"]["parameter_has_default"] and told["strategy"]["parameter_default"] == "greedy"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("", "greedy"), "prompt is empty"),
        (("a", "magic"), "no strategy 'magic'"),
        (("a", "beam", {"num_beams": 0}), "num_beams must be"),
        (("a", "greedy", {}, 10_000), "max_new_tokens must be a whole number from 1 to 512"),
        (("a", "greedy", {}, 4, -1), "the seed must be a whole number"),
        (("a", "greedy", {}, 4, 0, {"target": "../secrets"}), "No model '../secrets' comes with the app"),
        (("a", "greedy", {}, 4, 0, {"draft": "llama-tiny"}), "models must be"),
        (("a", "greedy", {}, 4, 0, {"target": "llama-tiny", "device": "cuda"}), "models must be"),
        (("a", "speculative", {}, 4, 0, {"target": "llama-tiny-draft"}), "needs a draft model"),
    ],
)
def test_errors_are_sentences(served, given, says):
    with pytest.raises(AppError, match=says) as raised:
        served.client.predict(*given, api_name="/run")
    assert "\n" not in str(raised.value)


def test_inputs_of_another_kind_are_refused_at_once_and_a_client_says_why(served):
    with pytest.raises(ValidationError, match="prompt must be text, not 5."):
        served.client.predict(5, api_name="/run")
    for data, says in [
        (
            ["Once"],
            "/run takes 6 inputs, prompt, strategy, parameters, max_new_tokens, seed, models; 1 were given.",
        ),
        (["Once", "greedy", {}, 4, 0, []], "models must be an object, not a list."),
        (
            ["Once", "magic", {}, 4, 0, {}],
            "There is no strategy 'magic'; choose one of those listed, such as ",
        ),
    ]:
        answer = httpx.post(served.address + "gradio_api/run/run", json={"data": data})
        assert answer.status_code == 422 and answer.json()["detail"].startswith(says)


def test_calls_run_side_by_side_and_leave_nothing_behind(served):
    jobs = [served.client.submit("Once", "greedy", {}, 8, seed, api_name="/run") for seed in range(6)]
    assert len({tuple(job.result(timeout=60)["output_tokens"]) for job in jobs}) == 1
    assert [run for run in served.runs.runs.values() if run.session] == []


def test_a_client_that_goes_away_stops_its_run(served):
    call = f"Client({served.address!r}, verbose=False).predict('slow', api_name='/run')"
    client = subprocess.Popen([sys.executable, "-c", "from gradio_client import Client\n" + call])
    wait_for(lambda: any(len(r.records[0].rows) > 60 for r in mine(served)), 60)
    (run,) = mine(served)
    client.kill()
    wait_for(lambda: not mine(served), 30)
    assert run.state == "stopped"
    client.wait()


def test_the_endpoints_are_mcp_tools(served):
    tools, answers = asyncio.run(spoken(served.address, 5))
    assert sorted(tool.name for tool in tools) == ["run", "strategies", "trace"]
    schema = next(tool.inputSchema for tool in tools if tool.name == "run")
    assert schema["required"] == ["prompt"]
    assert "num_beams" in schema["properties"]["parameters"]["description"]
    listed, found, wrong = answers
    assert [s["name"] for s in json.loads(listed.content[0].text)] == list(strategies())
    assert json.loads(found.content[0].text)["text"] == expected(served.models).text()
    assert wrong.isError and "no strategy 'magic'" in wrong.content[0].text


def test_an_mcp_client_that_goes_away_stops_its_run(served):
    async def leave():
        async with connected(served.address) as session:
            with anyio.move_on_after(60):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(session.call_tool, "run", {"prompt": "slow"})
                    while not any(len(r.records[0].rows) > 2 for r in mine(served)):
                        await anyio.sleep(0.02)
                    tasks.cancel_scope.cancel()

    asyncio.run(leave())
    wait_for(lambda: not mine(served), 30)


async def spoken(address: str, seed: int):
    """The tools, and what three calls answer."""
    async with connected(address) as session:
        tools = (await session.list_tools()).tools
        asked = {"prompt": "Once", "strategy": "speculative", "max_new_tokens": 12, "seed": seed}
        answers = [
            await session.call_tool("strategies", {}),
            await session.call_tool("run", asked),
            await session.call_tool("run", {**asked, "strategy": "magic"}),
        ]
    return tools, answers


@asynccontextmanager
async def connected(address: str):
    """An MCP client's session with the app."""
    async with (
        streamablehttp_client(address + MCP) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


def mine(served) -> list:
    """The runs of scripts that are under way."""
    return [run for run in list(served.runs.runs.values()) if run.session.startswith("script ")]


def wait_for(condition, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
