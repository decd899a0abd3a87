"""Named endpoints for scripts and assistants: /strategies, /run, /trace; for any Gradio client, or by MCP.

They go through the same runs as the page, so a script waits its turn; a client that goes away stops its run.
Knows nothing of pages.
"""

import json
import secrets
from importlib.util import find_spec
from typing import Any

import anyio.to_thread
import gradio as gr
from gradio.context import LocalContext

from decoders.models.catalog import shipped
from decoders.registry import strategies as declared
from decoders.strategy import shortened
from decoders.trace.trace import Trace
from explorer.runs.model_pool import Loader
from explorer.runs.run_summary import summary
from explorer.runs.scheduler import Runs
from explorer.runs.validation import check_models
from explorer.schema import Asked, Value, read

AT_ONCE = 16  # calls that may decode at the same time; more wait in line
# A cursor beyond the end: nothing is sent, the run continues.
END = {"view": "text", "ops": 2**31, "rows": 2**31}
ASK_AGAIN = 0.5  # seconds between two looks whether the client is still there
PARAMETERS = """Parameters:
    prompt: The beginning of a text, at most 20000 characters.
    strategy: The name of a strategy, as /strategies lists it.
    parameters: The strategy's own, for example {"num_beams": 4}; what is left out has its default.
    max_new_tokens: How many tokens to write at most, 1 to 512.
    seed: A whole number of at least 0; the same seed gives the same draws.
    models: Models that come with the app, for example {"target": "llama-tiny"}, with a "draft" too if the
        strategy needs one; left out, those that the app was started with.
"""


class Nothing(Asked):
    """/strategies takes no inputs."""


class Decode(Asked):
    """The inputs of /run and /trace, in their order."""

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
    """Declares the endpoints; to be called inside the Blocks. Functions carry the tools' names."""

    async def decoded(*inputs: Any) -> Trace:
        session = "script " + secrets.token_hex(8)
        try:
            asked = read(Decode, dict(zip(Decode.model_fields, inputs, strict=True)))
            lane = {"strategy": asked.strategy, "parameters": asked.parameters or {}, "seed": asked.seed}
            request = {"prompt": asked.prompt, "max_new_tokens": asked.max_new_tokens, "lanes": [lane]}
            if asked.models:
                request["models"] = named(asked.models, loader)
                await loader.settled(check_models(request["models"]))
            started = await anyio.to_thread.run_sync(runs.start, request, session)
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error
        try:
            while started.state == "running" and wanted():
                await runs.pull(started.id, [END], ASK_AGAIN, "running")
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error
        finally:  # whatever happened: nobody else knows this run
            runs.drop(started.id)
        if started.records[0].problem:
            raise gr.Error(started.records[0].problem, print_exception=False)
        return started.records[0].trace

    async def run(
        prompt: str,
        strategy: str = "greedy",
        parameters: dict = {},  # noqa: B006
        max_new_tokens: int = 64,
        seed: int = 0,
        models: dict = {},  # noqa: B006
    ) -> dict:
        return for_client(summary(await decoded(prompt, strategy, parameters, max_new_tokens, seed, models)))

    async def trace(
        prompt: str,
        strategy: str = "greedy",
        parameters: dict = {},  # noqa: B006
        max_new_tokens: int = 64,
        seed: int = 0,
        models: dict = {},  # noqa: B006
    ) -> dict:
        trace_made = await decoded(prompt, strategy, parameters, max_new_tokens, seed, models)
        return for_client(await anyio.to_thread.run_sync(trace_made.to_json))

    run.__doc__ = f"Decodes a prompt to its end with one strategy: text, tokens, costs.\n\n{PARAMETERS}"
    trace.__doc__ = (
        f"Decodes a prompt to its end: every candidate, verdict and forward, as a trace.\n\n{PARAMETERS}"
    )

    async def strategies() -> list:
        """Lists all decoding strategies with their parameters, what they need, and their views."""
        return for_client([s.declaration() for s in declared().values()])

    gr.api(strategies, api_name="strategies", queue=False)
    for function in (run, trace):
        gr.api(function, api_name=function.__name__, queue=False, concurrency_limit=AT_ONCE)


def named(models: dict, loader: Loader) -> dict:
    """The models of a call in the form that a run takes. ValueError with one sentence if they do not come
    with the app; scripts load nothing else.
    """
    if "target" not in models or set(models) - {"target", "draft"}:
        raise ValueError('models must be {"target": name}, with "draft": name if the strategy needs one.')
    offered = shipped()
    for name in models.values():
        if name not in offered:
            raise ValueError(
                f"No model {shortened(name)} comes with the app; models takes one of {', '.join(offered)}."
            )
    return {**models, "dtype": loader.choice.dtype, "device": loader.choice.device}


def for_client(value: dict | list) -> dict | list | str:
    """The answer; as JSON text for an MCP client, to whom Gradio would else give Python's own notation."""
    url = getattr(LocalContext.request.get(None), "url", None)
    return json.dumps(value) if url is not None and "/mcp" in url.path else value


def tools(demo: gr.Blocks) -> dict[str, str]:
    """Name of each MCP tool -> name of its endpoint."""
    server = getattr(demo, "mcp_server_obj", None)
    return {tool: name.removeprefix("/") for tool, name in server.tool_to_endpoint.items()} if server else {}


def waits(demo: gr.Blocks, session: str) -> bool:
    """Whether there is something to be fetched for a session of Gradio's queue, or for a job by its id."""
    queue = demo._queue
    jobs = queue.pending_event_ids_session
    return (
        session in queue.pending_messages_per_session
        or session in queue.event_ids_to_events
        or any(session in ids for ids in list(jobs.values()))
    )


def wanted() -> bool:
    """Whether the client that asked is still there: Gradio marks a job when its client's connection ends."""
    blocks, job = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    if blocks is None or job is None:  # not in the queue: it is cancelled when its client leaves
        return True
    return all(one.alive for jobs in blocks._queue.active_jobs if jobs for one in jobs if one._id == job)
