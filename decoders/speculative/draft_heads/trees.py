"""Which tree a trained head drafts: the choice that these strategies share.

Every tree can be combined with every head; each strategy has its paper's as the default.
"""

from collections.abc import Callable

from decoders.lane import Lane
from decoders.speculative.drafters.beams import beams, best_chains
from decoders.speculative.drafters.cut_trees import cut_tree
from decoders.speculative.drafters.dynamic_trees import best_paths, expand_and_rerank
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.drafters.rank_trees import (
    Path,
    expected_tokens,
    topology_from_rank_accuracy,
    tree_of_ranks,
)
from decoders.speculative.drafters.trained_head import Find, TrainedHead, from_head, head_of_kind
from decoders.speculative.interfaces import Drafter, Shape
from decoders.strategy import Parameter

MEASURED, PUBLISHED, DYNAMIC, BEST, CHAIN, WIDTHS, BEAMS, CHAINS, CUTS = (
    "measured ranks",
    "EAGLE's ranks",
    "expand and rerank",
    "best paths",
    "chain",
    "widths",
    "beams",
    "best chains",
    "cuts",
)
TREES = (MEASURED, PUBLISHED, DYNAMIC, BEST, CHAIN, WIDTHS, BEAMS, CHAINS, CUTS)
# EAGLE's tree of 25 nodes on five levels (Li et al. 2024, section 3.1.2; the ranks are those of the code)
EAGLE_RANKS = "0 1 2 3 00 01 02 10 11 20 21 30 000 001 002 010 011 020 021 100 0000 0001 0002 00000 00001"
ASSUMED = [[0.55 * 0.45**rank for rank in range(8)]] * 4  # where no accuracy was measured
DELTA = 0.05  # of best_paths
TOP_P, SHARE = 0.9, 0.25  # of Clover's cuts; the share is the paper's
PROMISE = "A tree of {} nodes on {} levels, expected to give {:.2f} tokens per target forward."
NO_RANKS = "The accuracy of these heads was not measured: the tree is built for assumed values."


def tree_parameters(tree: str, nodes: int, depth: int, width: int) -> tuple[Parameter, ...]:
    """The parameters of `tree_of`, with a paper's tree as their defaults."""
    return (
        Parameter(
            "tree",
            "choice",
            tree,
            "The shape of the draft: fixed ranks that worked best in measurements, EAGLE's tree, EAGLE-2's, "
            "OPT-Tree's, a chain, the same number below each node, beams, the best of many chains, or "
            "Clover's tree.",
            choices=TREES,
        ),
        Parameter(
            "nodes", "int", nodes, "Maximum number of drafted nodes, except for a chain.", low=1, high=128
        ),
        Parameter("depth", "int", depth, "Maximum depth of the draft.", low=1, high=16),
        Parameter(
            "width",
            "int",
            width,
            "Number of children per node (where ranks are not fixed), of beams, or of chains.",
            1,
            16,
        ),
    )


def drafted_by(kind: str, parameters: dict, name: str, says: str, head: TrainedHead | None = None) -> Drafter:
    """The target's module `kind` drafts the tree of `tree_parameters`; the rest as `from_head`."""
    find = head_of_kind(kind)
    return from_head(find, tree_of(parameters, find), name, says, head)


def tree_of(parameters: dict, find: Find) -> Shape:
    """The shape that `tree_parameters` ask for. find: gives the module whose measured ranks count."""
    tree, temperature = parameters["tree"], parameters["temperature"]
    nodes, depth, width = (parameters[name] for name in ("nodes", "depth", "width"))
    if tree == MEASURED:
        return tree_of_ranks(
            measured_topology(find, nodes, depth), f"It drafts {nodes} fixed paths of ranks."
        )
    if tree == PUBLISHED:
        paths = [tuple(map(int, ranks)) for ranks in EAGLE_RANKS.split() if len(ranks) <= depth][:nodes]
        return tree_of_ranks(lambda lane: paths, f"It drafts {len(paths)} fixed paths of ranks.")
    if tree == DYNAMIC:
        return expand_and_rerank(width, depth, nodes)
    if tree == BEST:
        return best_paths(nodes, depth, DELTA)
    if tree == BEAMS:
        return beams(width, depth, nodes)
    if tree == CHAINS:
        return best_chains(width, depth, nodes)
    if tree == CUTS:
        return cut_tree(nodes, depth, TOP_P, SHARE)
    return widths([1] * depth if tree == CHAIN else as_wide_as(width, depth, nodes), temperature)


def as_wide_as(width: int, depth: int, nodes: int) -> list[int]:
    """Children per level: `width` as long as the tree has no more than `nodes` nodes, then one each, as long
    as these fit.
    """
    children, level, total = [], 1, 0
    for _ in range(depth):
        count = width if total + level * width <= nodes else 1
        level *= count
        if children and total + level > nodes:
            break
        children.append(count)
        total += level
    return children


def measured_topology(find: Find, nodes: int, depth: int) -> Callable[[Lane], list[Path]]:
    """The best `nodes` paths by the measured accuracy of the target's module, by depth and rank; a note gives
    the expected tokens.
    """

    def paths(lane: Lane) -> list[Path]:
        measured = find(lane.models["target"]).rank_accuracy
        if measured is None:
            lane.note(NO_RANKS)
        accuracy = measured or ASSUMED
        accuracy = [*accuracy, *[accuracy[-1]] * depth][:depth]  # deeper than measured: as at the last depth
        topology = topology_from_rank_accuracy(accuracy, nodes)
        if measured is not None:
            levels, promised = max(map(len, topology)), expected_tokens(accuracy, topology)
            lane.note(PROMISE.format(len(topology), levels, promised))
        return topology

    return paths
