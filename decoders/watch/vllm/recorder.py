"""One worker's recording: hooks on its model runner, and the spool into which they write.

A fault in here ends the recording, never a request: every hook runs vLLM's own function first or after, with
what it was given, and passes on what it returned.
"""

import functools
import logging
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from decoders.watch.vllm.spool import Spool

LOG = logging.getLogger("vllm.decoding_explorer")  # vLLM's own handlers show it
ABSENT = object()


class Recorder:
    """The base of both runners' recorders: what a subclass hooks, it hooks with `replace`."""

    def __init__(self, runner: Any, folder: Path, top: int, engine: dict[str, Any]):
        """engine: what the traces say of it, see `plugin.described`."""
        self.runner, self.top = runner, top
        self.spool = Spool(folder)
        self.known: set[str] = set()  # requests whose beginning is written
        self.started = self.drafting = 0.0  # of this step; seconds of the drafter before it
        self.tokens: dict[str, int] = {}  # request -> tokens that the target reads in this step
        self._replaced: list[tuple[Any, str, Any]] = []
        self._waiting: deque[tuple[dict, dict[str, torch.Tensor], Any]] = deque()
        self.spool.write({"kind": "engine"} | engine)

    # ---- hooks ---------------------------------------------------------------------------------------

    def replace(self, owner: Any, name: str, make: Callable[[Callable], Callable]) -> None:
        """From now on, `owner.name` is `make(what it was)`, until `close`."""
        original = getattr(owner, name)
        self._replaced.append((owner, name, owner.__dict__.get(name, ABSENT)))
        setattr(owner, name, functools.wraps(original)(make(original)))

    def after(self, owner: Any, name: str, hear: Callable) -> None:
        """From now on, `hear(result, *args, **kwargs)` follows each call of `owner.name`."""

        def make(original: Callable) -> Callable:
            def method(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                self.safely(hear, result, *args, **kwargs)
                return result

            return method

        self.replace(owner, name, make)

    def before(self, owner: Any, name: str, hear: Callable) -> None:
        """From now on, `hear(*args, **kwargs)` precedes each call of `owner.name`."""

        def make(original: Callable) -> Callable:
            def method(*args: Any, **kwargs: Any) -> Any:
                self.safely(hear, *args, **kwargs)
                return original(*args, **kwargs)

            return method

        self.replace(owner, name, make)

    def safely(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """What a function of ours returns; None if it fails, and then recording is over."""
        try:
            return function(*args, **kwargs)
        except Exception as error:  # the request must not fail for being recorded
            LOG.warning("Decoding Explorer stops recording: %s: %s", type(error).__name__, error)
            self.close(f"recording stopped here: {type(error).__name__}: {error}")
            return None

    def close(self, fault: str = "") -> None:
        """Restores the runner's own functions, and ends what is unfinished in the spool."""
        for owner, name, before in reversed(self._replaced):
            if before is ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        if self._replaced:
            try:
                self._flush(wait=True)
                self.spool.write({"kind": "closed", "fault": fault, "requests": sorted(self.known)})
            except Exception as error:
                LOG.warning("Decoding Explorer: the last rounds are lost: %s", error)
        self._replaced.clear()
        self.spool.close()

    # ---- what is written -----------------------------------------------------------------------------

    def scheduled(self, output: Any, *_: Any, **__: Any) -> None:
        """A step begins: which requests are over, and which were put off."""
        self.started, self.tokens = time.perf_counter(), output.num_scheduled_tokens
        if over := self.known & set(output.finished_req_ids):
            self._flush(wait=True)
            self.spool.write({"kind": "ended", "requests": sorted(over)})
            self.known -= over
        if put_off := self.known & set(output.preempted_req_ids or ()):
            self._flush(wait=True)
            self.spool.write({"kind": "preempted", "requests": sorted(put_off)})

    def begin(self, request: str, prompt: list[int], written: list[int], params: Any) -> None:
        """A request is seen for the first time; `written`: what it wrote before recording began."""
        self.known.add(request)
        header = {"kind": "begun", "request": request, "prompt": prompt, "written": written}
        self.spool.write(header | {"at": time.time(), "params": wanted(params)})

    def step(self, header: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
        """A step has sampled. Tensors on a GPU are written once they have arrived, without waiting."""
        event = None
        if next(iter(tensors.values())).is_cuda:
            tensors = {
                name: torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)
                for name, tensor in tensors.items()
            }
            event = torch.cuda.Event()
            event.record()
        self._waiting.append((header, tensors, event))
        self._flush()

    def _flush(self, wait: bool = False) -> None:
        while self._waiting and (wait or self._waiting[0][2] is None or self._waiting[0][2].query()):
            header, tensors, event = self._waiting.popleft()
            if event is not None:
                event.synchronize()
            self.spool.write(header, {name: tensor.numpy() for name, tensor in tensors.items()})


def wanted(params: Any) -> dict[str, Any]:
    """What of vLLM's SamplingParams shapes or ends a text."""
    names = ("temperature", "top_p", "top_k", "min_p", "seed", "max_tokens", "min_tokens", "stop_token_ids")
    names += ("repetition_penalty", "presence_penalty", "frequency_penalty", "include_stop_str_in_output")
    found = {name: getattr(params, name, None) for name in names}
    stop, structured = getattr(params, "stop", None) or [], getattr(params, "structured_outputs", None)
    return found | {
        "eos": getattr(params, "eos_token_id", None),
        "stop": [stop] if isinstance(stop, str) else list(stop),
        "structured": structured is not None,
    }
