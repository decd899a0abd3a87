"""Computes a forward over many rows in pieces, so that other lanes need not wait long.

Rows see only their ancestors, so the pieces give the same numbers as one forward.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from decoders.engine.engine import Work

ROWS = 256  # of one piece: a tenth of a second on one core for the models that come with the project


def in_pieces(
    scorer: Any, nodes: list[int], hidden: bool, between: Callable[[], None]
) -> tuple[torch.Tensor, Work]:
    """(`scorer.score(nodes, hidden)` [N, V], the work of all pieces together, which count as one forward).
    `between` is called after each piece but the last. A piece has `ROWS` rows, or as many as the scorer's
    engine accepts in one call (`max_nodes`).
    """
    rows = getattr(scorer, "max_nodes", ROWS)
    logits = scorer.score(nodes[:rows], hidden)
    if len(nodes) <= rows:
        return logits, scorer.work
    logits_of_pieces, works = [logits], [scorer.work]
    for first in range(rows, len(nodes), rows):
        between()
        logits_of_pieces.append(scorer.score(nodes[first : first + rows], hidden))
        works.append(scorer.work)
    summed = ("tokens", "shared", "rows", "for_others")
    counts = {name: sum(getattr(work, name) for work in works) for name in summed}
    return torch.cat(logits_of_pieces), replace(works[-1], **counts)
