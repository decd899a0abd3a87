"""OPT-Tree: the drafted tree with the largest expected number of accepted tokens."""

from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_TEMPERATURE, at_temperature
from decoders.speculative.drafters.dynamic_trees import best_paths
from decoders.speculative.interfaces import Pair, drafted


@speculative(
    name="opt_tree",
    title="OPT-Tree",
    parameters=(
        integer("budget", 8, "Nodes that the target checks per round.", low=1, high=64),
        integer("max_depth", 8, "Maximum number of drafted levels.", low=1, high=32),
        real(
            "delta",
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
)
def opt_tree_pair(parameters: dict) -> Pair:
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
    shape = best_paths(parameters["budget"], parameters["max_depth"], parameters["delta"])
    return simplest(drafted(at_temperature(parameters), shape), parameters["temperature"])
