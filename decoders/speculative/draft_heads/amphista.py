"""Amphista: heads that guess in parallel, like Medusa's, but attend to each other, and some of them to the
root.

Li et al. (2024), Amphista. The heads are heads/path_independent/amphista.py.
"""

from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import fits
from decoders.speculative.draft_heads.medusa import TYPICAL_PARAMETERS, verified
from decoders.speculative.draft_heads.trees import MEASURED, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import needs_head
from decoders.speculative.interfaces import Pair

SAYS = "Heads that attend to each other guess one depth each, all in one pass."


@speculative(
    name="amphista",
    title="Amphista",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=2), *TYPICAL_PARAMETERS, *GREEDY),
    papers=("amphista",),
    fits=fits,
    suits=needs_head("amphista", "Amphista heads"),
)
def amphista_pair(parameters: dict) -> Pair:
    """Heads guess all depths in one pass, as in Medusa, but attend to each other before they predict.

    1. Two decoder layers adapt the target's states: the first reads them, the second also the token that was
       chosen after each, so that at the newest position it knows the root.
    2. The first half of the heads begin from the first layer, the others from the second; each has a block
       of its own and a vector for its depth. Then one encoder layer lets every head attend to every other
       one, in both directions.
    3. The target's vocabulary matrix turns each head's output into guesses for its depth: the same on
       every branch of the tree, which has fixed ranks.
    4. One target forward reads the tree; exact tests follow, or typical acceptance.

    The inner structure of the layers is our reading of the paper, whose code is not published. The layers of
    llama-tiny are narrow, and all heads share the target's vocabulary matrix.
    """
    return verified(drafted_by("amphista", parameters, "Amphista's heads", SAYS), parameters)
