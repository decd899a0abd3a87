"""Steps of a text: sentences or lines, as searches over whole steps write them."""

from decoders.lane import Lane

ENDS = {"sentence": b".!?", "line": b""}  # what ends a step besides a line break


def step_ends(lane: Lane, nodes: list[int], step: str) -> bool:
    """Whether a step, a path of nodes, ends with its newest one; a step without text does not."""
    pieces = [lane.models["target"].bytes_of(lane.tree.tokens[node]) for node in nodes]
    marks = pieces[-1].rstrip(b"\"' \n")[-1:]
    ends = b"\n" in pieces[-1] or (marks != b"" and marks in ENDS[step])
    return ends and bool(b"".join(pieces).strip())


def shared(paths: list[list[int]]) -> list[int]:
    """The common prefix of all paths."""
    common = []
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return common
