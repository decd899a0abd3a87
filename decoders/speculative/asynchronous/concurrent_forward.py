"""Runs the target's forward concurrently with the lane's own work, in a separate thread, or after it.

Two models compute at the same time if they are two engines; on a GPU the target gets a stream of its own. The
recorded events and their order are the same either way; only the times differ.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext

import torch

from decoders.lane import Lane
from decoders.trace.events import Forward

ALONE = 4  # the first forwards of the target, which run in turn
FIRST = f"The first {ALONE} rounds run one model after the other, which shows what a forward costs alone."
ONE_MODEL = "Target and draft are the same model here, so they take turns."


class ConcurrentForward:
    """A context manager whose `score` begins a forward of the target and returns a function that waits for
    it. Meanwhile the lane may do anything but use the target. The thread ends with the context. The first
    forwards do not run concurrently, so that the lane's own times show what concurrency gains.
    """

    def __init__(self, lane: Lane, concurrent: bool):
        self.lane, self.worker, self.stream, self.asked = lane, None, None, 0
        self.alone = ExitStack()  # while a forward is under way no other lane may ask the target
        if not concurrent:
            return
        target, draft = lane.models["target"].engine, lane.models["draft"].engine
        if target is draft:
            lane.note(ONE_MODEL)
            return
        lane.note(FIRST)
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="target")
        device = getattr(target, "device", None)
        if device is not None and device.type == "cuda":
            self.stream = torch.cuda.Stream(device)

    def __enter__(self) -> "ConcurrentForward":
        return self

    def __exit__(self, *error: object) -> None:
        if self.worker is not None:
            self.worker.shutdown(wait=True)
        self.alone.close()

    def score(self, nodes: list[int], kind: str = "verify") -> Callable[[], torch.Tensor]:
        """Begins a target forward over existing `nodes`. Returns a function, to be called once, that waits
        for the forward (or runs it, if the models take turns), records it and returns the logits [N, V].
        """
        lane = self.lane
        self.asked += 1
        if self.worker is None or self.asked <= ALONE:
            return lambda: lane.score(nodes, kind)
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        self.alone.enter_context(lane.undivided())
        running = self.worker.submit(self._forward, nodes, kind)

        def answer() -> torch.Tensor:
            logits, forward = running.result()
            self.alone.close()
            lane.record_forward(forward)
            return logits

        return answer

    def _forward(self, nodes: list[int], kind: str) -> tuple[torch.Tensor, Forward | None]:
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            return self.lane.unrecorded_score(nodes, kind, "target")
