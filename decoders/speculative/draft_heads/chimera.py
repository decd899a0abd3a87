"""Chimera: a drafter that reads the last three tokens together and everything before them through one layer.

Zeng et al. (2024), Chimera. The module is heads/feature_drafters/chimera.py.
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

SAYS = "Trigrams of the newest tokens and one layer over the target's states guess, one pass per level."


def chimera_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the heads' guesses, and the chosen verifier."""
    return verified(drafted_by("chimera", parameters, "Chimera's heads", SAYS), parameters)


@draft_and_verify(
    chimera_pair,
    name="chimera",
    title="Chimera",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=3), *TYPICAL_PARAMETERS, *GREEDY),
    papers=("chimera",),
    views=HEAD_VIEWS,
    together=typical_fits(chimera_pair),
    reads=reads_states,
    suits=needs_head("chimera", "Chimera heads"),
)
def chimera(lane: Lane) -> Iterator[None]:
    """Drafts with trigrams of the newest tokens and one layer over all earlier states of the target.

    1. Short range: the embeddings of a token and of the two before it go through a residual block and become
       one feature.
    2. Long range: one decoder layer reads the target's last states of the whole text, and after them the
       trigrams of the root and of the drafted tokens. Its last output is g.
    3. Head t reads the target's newest state and g, and guesses the token t positions after the root. Its
       guess completes the next trigram, so every branch of the tree has guesses of its own.
    4. One target forward reads the tree of fixed ranks. At temperature 0 the target's best tokens are kept;
       above it the target draws its own token and follows the tree while it contains that token: exact.

    The authors' code at a temperature above 0 accepts each row of candidates with probability p / q and ends
    an accepted row with the most probable token, which changes the distribution; it is not offered here.
    Typical acceptance, their other rule, is: relaxed. The heads of llama-tiny are smaller than the paper's: a
    head is the target's matrix after a scale for each number and a change of low rank, and the residual block
    has a low rank, too. They were trained along the target's own tokens, not along the drafter's.
    """
    drafter, verifier, _ = chimera_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
