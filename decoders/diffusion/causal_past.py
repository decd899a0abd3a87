"""A canvas that grows after a causal past: masks are added when they are needed, and final tokens enter the
cache when they are read once, causally.
"""

import torch

from decoders.diffusion.canvas import Canvas
from decoders.lane import Lane

INPUT = "input"  # level of the cells that say what a forward read, in the order in which it read them


def empty(lane: Lane) -> Canvas:
    """The prompt alone."""
    prompt = lane.tree.text(lane.tip)
    start = len(prompt)
    return Canvas(list(prompt), start, start, lane.models["target"].engine.mask, committed=start)


def add_masks(lane: Lane, canvas: Canvas, count: int) -> None:
    """Adds this many masks at its end, or as many as the lane may still write; records them."""
    room = canvas.committed + lane.left - canvas.stop
    for _ in range(min(count, room)):
        lane.cell(canvas.stop, canvas.iteration, canvas.mask, "mask")
        canvas.tokens.append(canvas.mask)
        canvas.stop += 1


def read_positions(
    lane: Lane, canvas: Canvas, positions: list[int], sees: torch.Tensor, keep: int
) -> torch.Tensor:
    """Logits [N, V] of N positions, in the order given; one forward. The first `keep` positions stay in the
    cache.

    positions: each once, without a gap between the lowest and the highest; sees [N, N]: which see which.
    Records what was read as cells of level INPUT: "cached" (stays), "filled" or "mask" (read again).
    """
    tokens = [canvas.tokens[p] for p in positions]
    logits = lane.run_forward(lambda scorer: scorer.read(tokens, positions, sees, keep))
    for at, (position, token) in enumerate(zip(positions, tokens, strict=True)):
        state = "cached" if at < keep else "mask" if token == canvas.mask else "filled"
        if position >= canvas.start:
            lane.cell(position, canvas.iteration + 1, token, state, level=INPUT)
    by_position = sorted(range(len(positions)), key=positions.__getitem__)
    return logits[by_position]
