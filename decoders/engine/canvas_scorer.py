"""The base of scorers for canvases. A lane asks every scorer to forget and release nodes and for attention,
but a canvas has no slot per node and records no attention.
"""

from typing import Any

from decoders.engine.engine import Work


class CanvasScorer:
    """Scores canvases for one lane. `work` counts what the last forward computed."""

    def __init__(self, engine: Any):
        self.engine, self.work = engine, Work()
        self.used = self.peak = 0

    def attention(self, nodes: list[int]) -> None:
        return None

    def forget(self, nodes: list[int]) -> None:
        pass

    def release(self, nodes: list[int]) -> None:
        pass

    def close(self) -> None:
        pass
