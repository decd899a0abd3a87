"""Named endpoints for scripts: strategies, decode and trace, callable with any Gradio client.

They go through the same runs as the page, so a script waits its turn. Knows nothing of pages.
"""

import asyncio
import secrets

import gradio as gr

from decoders.registry import strategies
from explorer.runs import Record, Runs

ALL = {
    "view": "text",
    "ops": 2**31,
    "rows": 2**31,
}  # a cursor beyond the end: nothing is sent, the run goes on


def declare(runs: Runs) -> None:
    """Declares the endpoints; to be called inside the Blocks."""

    async def decode_once(
        prompt: str, strategy: str, parameters: dict, max_new_tokens: int, seed: int
    ) -> Record:
        lane = {"strategy": strategy, "parameters": parameters or {}, "seed": seed}
        request = {"prompt": prompt, "max_new_tokens": max_new_tokens, "lanes": [lane]}
        try:
            run = await asyncio.to_thread(runs.start, request, "script " + secrets.token_hex(8))
            while run.state == "running":
                await runs.pull(run.id, [ALL], 5.0, "running")
        except ValueError as error:
            raise gr.Error(str(error), print_exception=False) from error
        record = run.records[0]
        if record.problem:
            raise gr.Error(record.problem, print_exception=False)
        return record

    async def decode(
        prompt: str, strategy: str = "greedy", parameters: dict = {}, max_new_tokens: int = 64, seed: int = 0  # noqa: B006
    ) -> dict:  # fmt: skip
        """Decodes `prompt` to the end: parameters, prompt_tokens, output_tokens, text, totals, badge."""
        trace = (await decode_once(prompt, strategy, parameters, max_new_tokens, seed)).trace
        return {
            "strategy": trace.strategy,
            "parameters": trace.parameters,
            "prompt_tokens": trace.prompt,
            "output_tokens": trace.output(),
            "text": trace.text(),
            "totals": trace.costs.totals(),
            "badge": trace.badge,
            "ended": trace.ended,
        }

    async def trace(
        prompt: str, strategy: str = "greedy", parameters: dict = {}, max_new_tokens: int = 64, seed: int = 0  # noqa: B006
    ) -> dict:  # fmt: skip
        """Decodes `prompt` to the end and returns the whole trace in its published JSON form."""
        return (await decode_once(prompt, strategy, parameters, max_new_tokens, seed)).trace.to_json()

    def list_strategies() -> list:
        """All strategies as `python -m explorer strategies --json` lists them."""
        return [s.declaration() for s in strategies().values()]

    gr.api(decode, api_name="decode")
    gr.api(trace, api_name="trace")
    gr.api(list_strategies, api_name="strategies")
