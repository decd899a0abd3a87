"""The server's side of the page's live proof: many short lanes, counted a little at a time.

Knows runs, models and decoders.speculative.losslessness, nothing of how it looks. A page asks again and
again; if it stops asking, nothing goes on.
"""

import asyncio
import secrets

from explorer.page.branch import models_of
from explorer.page.page_requests import CountOn, Prove
from explorer.runs.lane_factory import CALLBACKS
from explorer.runs.model_pool import Loader
from explorer.runs.scheduler import Runs
from explorer.runs.validation import said

SAMPLES, LENGTHS = (1, 10_000), (2, 6)  # what may be asked for
SLICE_SECONDS, SLICES = 0.1, 4  # of counting between two steps of other runs; in one answer
MOST = 8  # proofs that are kept; the oldest makes room
GONE = "This proof is gone: it made room for others. Press Prove to start again."


def functions(runs: Runs, loader: Loader) -> list:
    """The server functions, see `explorer.page.layout.server_functions`."""
    proofs: dict[str, tuple[object, asyncio.Lock]] = {}  # by unguessable id; one counts at a time

    async def explorer_prove(request: Prove) -> str:
        """`{run, lane, temperature, samples, length, broken}` gives `{proof}`: continuations of the lane's
        prompt with its strategy and parameters, but this temperature.
        """

        async def begun() -> dict:
            proof = await asyncio.to_thread(begin, runs, loader, request)
            while len(proofs) >= MOST:
                proofs.pop(next(iter(proofs)))
            name = secrets.token_urlsafe(18)
            proofs[name] = proof, asyncio.Lock()
            return {"proof": name}

        return await said(begun())

    async def explorer_proof(request: CountOn) -> str:
        """`{proof}` counts on for a moment and gives its `decoders.speculative.losslessness.Proof.state`."""

        async def counted() -> dict:
            proof, alone = proofs.get(request.proof, (None, None))
            if proof is None:
                raise ValueError(GONE)
            async with alone:
                for _ in range(SLICES):
                    await asyncio.wrap_future(runs.on_worker(lambda: proof.advance(SLICE_SECONDS)))
                return proof.state()

        return await said(counted())

    return [explorer_prove, explorer_proof]


def begin(runs: Runs, loader: Loader, request: Prove):
    """The proof that is asked for. ValueError with one sentence if there can be none."""
    run = runs.find(request.run)
    trace, samples, length = run.lane(request.lane).trace, request.samples, request.length
    for what, value, (low, high) in (("seeds", samples, SAMPLES), ("tokens", length, LENGTHS)):
        if not low <= value <= high:
            raise ValueError(f"A proof takes {low:,} to {high:,} {what}, not {value:,}.")
    if "temperature" not in trace.parameters or "do_sample" in trace.parameters:
        raise ValueError(
            f"{trace.title} does not draw its text from the target's law, so nothing is to be proved."
        )
    models = models_of(trace, loader.find(run.models).wait())
    parameters = {**trace.parameters, "temperature": request.temperature}
    with_broken = request.broken and "draft" in models

    def make():
        from decoders.speculative.losslessness import Proof  # torch is there by now

        same = (trace.strategy, trace.prompt, models, parameters)
        return Proof(*same, length, samples, with_broken, CALLBACKS)

    return runs.on_worker(make).result()
