"""OPT-Tree: the drafted tree with the largest expected number of accepted tokens."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import DRAFT_TEMPERATURE, at_temperature
from decoders.speculative.drafters.dynamic_trees import best_paths
from decoders.speculative.interfaces import TIMED_TREE_VIEWS, Drafter, Verifier, drafted
from decoders.strategy import Parameter


def opt_tree_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The tree of the best paths; greedy match at temperature 0, else node sampling."""
    shape = best_paths(parameters["budget"], parameters["max_depth"], parameters["delta"])
    return simplest(drafted(at_temperature(parameters), shape), parameters["temperature"])


@draft_and_verify(
    opt_tree_pair,
    name="opt_tree",
    title="OPT-Tree",
    needs=("target", "draft"),
    parameters=(
        Parameter("budget", "int", 8, "Nodes that the target checks per round.", low=1, high=64),
        Parameter("max_depth", "int", 8, "Maximum number of drafted levels.", low=1, high=32),
        Parameter(
            "delta",
            "float",
            0.3,
            "A further level is drafted while the last one raised the expected number "
            "of accepted tokens by more than this.",
            low=0.0,
            high=1.0,
        ),
        DRAFT_TEMPERATURE,
        *GREEDY,
    ),
    papers=("opt-tree",),
    views=TIMED_TREE_VIEWS,
)
def opt_tree(lane: Lane) -> Iterator[None]:
    """Builds the draft tree with the largest expected number of accepted tokens, by the draft's estimate.

    1. The value of a node is the product of the draft's probabilities on its path. If the draft's
       probabilities are right, the expected number of accepted tokens is the sum of these values over the
       tree.
    2. Level by level the best `budget` candidates are drafted, as long as the sum of the `budget` largest
       values grows by more than delta.
    3. The `budget` nodes with the largest values form the tree; no child has a higher value than its parent.
    4. The target checks it in one forward: it draws its own token at each position and follows the tree
       while it contains that token.
    """
    drafter, verifier, _ = opt_tree_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
