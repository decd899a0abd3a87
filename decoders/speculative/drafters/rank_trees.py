"""Trees of ranks: which of the most likely guesses at each depth are drafted, fixed before decoding.

A path (0, 1) of ranks is the second most likely token after the most likely one; ranks count from 0. Which
paths are worth drafting is computed from how often the guess of each rank is right, depth by depth (Cai et
al. 2024, Medusa, section 2.3.3).
"""

import heapq
from collections.abc import Callable, Sequence

from decoders.lane import Lane
from decoders.speculative.drafters.fixed_trees import Guess, largest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Shape

Path = tuple[int, ...]  # of ranks
Accuracy = Sequence[Sequence[float]]  # [depth - 1][rank]


def topology_from_rank_accuracy(accuracy: Accuracy, count: int) -> list[Path]:
    """The `count` paths of the largest value, parents first: the value of (r_1 .. r_j) is the product of
    accuracy[i][r_i]. A path is never worth more than its parent, and of equal ones the shorter comes first,
    so they form a tree.
    """
    best, heap = [], [(-1.0, 0, ())]  # (-value, depth, path); the root is no path
    while heap and len(best) <= count:
        value, depth, path = heapq.heappop(heap)
        best.append(path)
        if depth < len(accuracy):
            for rank, share in enumerate(accuracy[depth]):
                if share > 0.0:
                    heapq.heappush(heap, (value * share, depth + 1, (*path, rank)))
    return best[1:]


def expected_tokens(accuracy: Accuracy, paths: Sequence[Path]) -> float:
    """Tokens per target forward that a tree of these paths promises, if ranks at different depths are right
    independently: 1 and the sum of the paths' values.
    """
    total = 1.0
    for path in paths:
        value = 1.0
        for depth, rank in enumerate(path):
            value *= accuracy[depth][rank]
        total += value
    return total


def tree_of_ranks(paths_for: Callable[[Lane], Sequence[Path]], says: str) -> Shape:
    """A tree whose paths of ranks are fixed: `paths_for(lane)`, asked once. `says`: what they are, in a
    sentence. Nothing is drawn.
    """
    ranks: dict[Path, list[int]] = {}  # a path -> the ranks that follow it

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        if not ranks:
            for *above, rank in paths_for(lane):
                ranks.setdefault(tuple(above), []).append(rank)
        places = {lane.tip: ()}
        for _ in range(max_levels):
            level = [node for node in places if places[node] in ranks]
            if not level:
                break
            places = chosen(lane, draft, guess(level), {node: places[node] for node in level}, ranks)
            open_nodes = set(open_ends(lane, list(places)))
            places = {node: path for node, path in places.items() if node in open_nodes}

    return Shape(grow, FIXED, "tree of fixed ranks", says)


def chosen(
    lane: Lane, draft: Draft, scores, places: dict[int, Path], ranks: dict[Path, list[int]]
) -> dict[int, Path]:
    """Drafts the tokens of the wanted ranks below each node of `places`, whose scores are [level, V]. Returns
    the new nodes with their paths.
    """
    logprobs, born = scores.log_softmax(-1), {}
    widest = 1 + max(rank for path in places.values() for rank in ranks[path])
    values, tokens = largest(logprobs, widest)
    if widest == 1:  # ties as greedy decoding breaks them
        tokens = scores.argmax(-1, keepdim=True)
    for row, (parent, path) in enumerate(places.items()):
        row_values, row_tokens = values[row].tolist(), tokens[row].tolist()
        for rank in ranks[path]:
            if rank < len(row_tokens) and row_values[rank] > -float("inf"):
                node = draft.propose(
                    lane, parent, row_tokens[rank], row_values[rank], source="draft", fill=FIXED
                )
                born[node] = (*path, rank)
    return born
