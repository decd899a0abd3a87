"""Amphista: heads that guess in parallel, like Medusa's, but attend to each other, and some of them to the
root.

Li et al. (2024), Amphista. The heads are heads/path_independent/amphista.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_heads.medusa import TYPICAL_PARAMETERS, typical_fits, verified
from decoders.speculative.draft_heads.trees import MEASURED, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier

SAYS = "Heads that attend to each other guess one depth each, all in one pass."


def amphista_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the heads' guesses, and the chosen verifier."""
    return verified(drafted_by("amphista", parameters, "Amphista's heads", SAYS), parameters)


@draft_and_verify(
    amphista_pair,
    name="amphista",
    title="Amphista",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=2), *TYPICAL_PARAMETERS, *GREEDY),
    papers=("amphista",),
    views=HEAD_VIEWS,
    together=typical_fits(amphista_pair),
    reads=reads_states,
    suits=needs_head("amphista", "Amphista heads"),
)
def amphista(lane: Lane) -> Iterator[None]:
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
    drafter, verifier, _ = amphista_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
