"""How long the forwards of a lane's models take on this machine, measured when the lane starts.

For methods whose tree, window or draft length follows from the ratio of these times. Nothing is measured
unless a parameter asks for it: a clock differs from run to run.
"""

import time

import torch

from decoders.engine.pieces import in_pieces
from decoders.engine.tree import Tree
from decoders.lane import Lane
from decoders.parameters import choice
from decoders.strategy import Parameter
from decoders.trace.events import Forward

ASSUMED, MEASURED = "assumed", "measured"
REPEATS = 3
clock = time.perf_counter  # seconds


def costs_parameter(help: str) -> Parameter:
    """The choice between assumed costs and those of this machine."""
    return choice("costs", ASSUMED, help, (ASSUMED, MEASURED))


def forward_seconds(lane: Lane, role: str, sizes: list[int]) -> dict[int, float]:
    """Seconds of a forward of a role's model over n new tokens, by n: the fastest of REPEATS.

    The tokens stand side by side after the lane's prompt, each a child of its last token, and are dropped
    again. These forwards are recorded as `lens`: they are not part of decoding.
    """
    tree = Tree(lane.tree.tokens[: lane.tree.trunk])
    scorer, last = lane.models[role].engine.attach(tree), tree.trunk - 1
    vocabulary = lane.models[role].engine.vocabulary

    def timed(nodes: list[int]) -> float:
        start, began = lane.clock(), clock()
        logits, work = in_pieces(scorer, nodes, False, lane.check_limits)
        if logits.is_cuda:
            torch.cuda.current_stream(logits.device).synchronize()
        took, count = clock() - began, work.tokens + work.shared
        lane.record_forward(Forward(role, "lens", count, work.rows, start, took, shared=work.shared))
        return took

    def repeated(size: int) -> float:
        times = []
        for _ in range(REPEATS):
            lane.check_limits()
            nodes = [tree.add(last, token % vocabulary) for token in range(size)]
            times.append(timed(nodes))
            scorer.release(nodes)
        return min(times)

    try:
        timed([last])  # reads the prompt
        return {size: repeated(size) for size in sizes}
    finally:
        scorer.close()


def pair_seconds(lane: Lane) -> tuple[float, float]:
    """(draft, target): seconds of a forward of each over one token; a note gives them."""
    draft, target = (forward_seconds(lane, role, [1])[1] for role in ("draft", "target"))
    lane.note(f"Measured here: a draft forward takes {shown(draft)}, a target forward {shown(target)}.")
    return draft, target


def tokens_per_target_forward(lane: Lane, limit: int) -> int:
    """How many tokens the draft writes, one by one, in the time of one target forward: 1 to `limit`."""
    draft, target = pair_seconds(lane)
    return min(limit, max(1, round(target / max(draft, 1e-9))))


def shown(seconds: float) -> str:
    """`3.1 ms`."""
    return f"{1000 * seconds:.3g} ms"
