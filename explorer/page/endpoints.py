"""Named endpoints for scripts and assistants: /strategies, /run and /trace, for Gradio clients and over MCP.

They share the scheduler with the page, so a script waits its turn. If a client disconnects, its run stops.
"""

import json
import secrets
from importlib.util import find_spec
from typing import Any

import anyio.to_thread
import gradio as gr
from gradio.context import LocalContext

from decoders.models.catalog import shipped
from decoders.refusal import Refusal
from decoders.registry import strategies as declared
from decoders.strategy import shortened
from decoders.trace.trace import Trace
from explorer.runs.model_pool import Loader
from explorer.runs.run_summary import summary
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check
from explorer.schema import Asked, Value, read

AT_ONCE = 16  # calls that can decode at the same time; further calls wait in a queue
# A cursor beyond the end: nothing is sent, and the run continues.
END = {"view": "text", "ops": 2**31, "rows": 2**31}
POLL_SECONDS = 0.5  # seconds between two checks whether the client is still connected
PARAMETERS = """Parameters:
    prompt: The text to continue, at most 20000 characters.
    strategy: The name of a strategy, as /strategies lists it.
    parameters: The strategy's parameters, for example {"num_beams": 4}; the others have their defaults.
    max_new_tokens: The maximum number of new tokens, 1 to 512.
    seed: A whole number of at least 0; the same seed gives the same draws.
    models: Models that come with the app, for example {"target": "llama-tiny"}, with a "draft" as well if
        the strategy needs one. By default, the models that the app was started with.
"""


class Nothing(Asked):
    """The inputs of /strategies: none."""


class Decode(Asked):
    """The inputs of /run and /trace, in order."""

    prompt: str
    strategy: str = "greedy"
    parameters: dict[str, Value] | None = None
    max_new_tokens: int = 64
    seed: int = 0
    models: dict[str, Value] | None = None


INPUTS = {"strategies": Nothing, "run": Decode, "trace": Decode}


def speaks_mcp() -> bool:
    """Whether the package `mcp` is installed, so that the endpoints can be MCP tools too."""
    return find_spec("mcp") is not None


def declare(runs: Runs, loader: Loader) -> None:
    """Declares the endpoints; call it inside the Blocks. The MCP tools are named after the functions."""

    async def decode(*inputs: Any) -> Trace:
        session = "script " + secrets.token_hex(8)
        try:
            call = read(Decode, dict(zip(Decode.model_fields, inputs, strict=True)))
            lane = {"strategy": call.strategy, "parameters": call.parameters or {}, "seed": call.seed}
            request = {"prompt": call.prompt, "max_new_tokens": call.max_new_tokens, "lanes": [lane]}
            if call.models:
                request["models"] = check_shipped(call.models, loader)
            checked = check(request)
            if checked.models:
                await loader.settled(checked.models)
            started = await anyio.to_thread.run_sync(runs.start, checked, session)
        except Refusal as error:
            raise gr.Error(str(error), print_exception=False) from error
        try:
            while started.state == "running" and client_is_connected():
                await runs.pull(started.id, [END], POLL_SECONDS, "running")
        except Refusal as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:  # nobody else knows this run
            runs.drop(started.id)
        if started.records[0].problem:
            raise gr.Error(started.records[0].problem, print_exception=False)
        return started.records[0].trace

    async def run(
        prompt: str,
        strategy: str = "greedy",
        parameters: dict = {},  # noqa: B006 - a client sees this default
        max_new_tokens: int = 64,
        seed: int = 0,
        models: dict = {},  # noqa: B006 - a client sees this default
    ) -> dict:
        return for_client(summary(await decode(prompt, strategy, parameters, max_new_tokens, seed, models)))

    async def trace(
        prompt: str,
        strategy: str = "greedy",
        parameters: dict = {},  # noqa: B006 - a client sees this default
        max_new_tokens: int = 64,
        seed: int = 0,
        models: dict = {},  # noqa: B006 - a client sees this default
    ) -> dict:
        result = await decode(prompt, strategy, parameters, max_new_tokens, seed, models)
        return for_client(await anyio.to_thread.run_sync(result.to_json))

    run.__doc__ = f"Continues a prompt with one strategy; returns text, tokens and costs.\n\n{PARAMETERS}"
    trace.__doc__ = (
        "Continues a prompt with one strategy; returns the trace: every candidate, verdict and forward pass."
        f"\n\n{PARAMETERS}"
    )

    async def strategies() -> list:
        """Lists all decoding strategies with their parameters, the models they need, and their views."""
        return for_client([s.declaration() for s in declared().values()])

    gr.api(strategies, api_name="strategies", queue=False)
    for function in (run, trace):
        gr.api(function, api_name=function.__name__, queue=False, concurrency_limit=AT_ONCE)


def check_shipped(models: dict, loader: Loader) -> dict:
    """The models of a call, in the form that a run takes. Scripts can load only models that come with the
    app; for others it raises Refusal with one sentence.
    """
    if "target" not in models or set(models) - {"target", "draft"}:
        raise Refusal('models must be {"target": name}, with "draft": name if the strategy needs one.')
    offered = shipped()
    for name in models.values():
        if name not in offered:
            raise Refusal(
                f"No model {shortened(name)} comes with the app; models takes one of {', '.join(offered)}."
            )
    return {**models, "dtype": loader.choice.dtype, "device": loader.choice.device}


def for_client(value: dict | list) -> dict | list | str:
    """The answer; JSON text for an MCP client, to which Gradio would otherwise send Python's repr."""
    url = getattr(LocalContext.request.get(None), "url", None)
    return json.dumps(value) if url is not None and "/mcp" in url.path else value


def tools(demo: gr.Blocks) -> dict[str, str]:
    """Maps the name of each MCP tool to the name of its endpoint."""
    server = getattr(demo, "mcp_server_obj", None)
    return {tool: name.removeprefix("/") for tool, name in server.tool_to_endpoint.items()} if server else {}


def has_messages(demo: gr.Blocks, session: str) -> bool:
    """Whether Gradio's queue has messages to fetch for `session`, which can also be the id of a job."""
    queue = demo._queue
    jobs = queue.pending_event_ids_session
    return (
        session in queue.pending_messages_per_session
        or session in queue.event_ids_to_events
        or any(session in ids for ids in list(jobs.values()))
    )


def client_is_connected() -> bool:
    """Whether the calling client is still connected: Gradio marks a job when its client disconnects."""
    blocks, job = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    if blocks is None or job is None:  # not queued: the call is cancelled when its client disconnects
        return True
    return all(
        event.alive for jobs in blocks._queue.active_jobs if jobs for event in jobs if event._id == job
    )
