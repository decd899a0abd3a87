"""ReDrafter: a recurrent network and beam search draft several chains; common prefixes are read once.

Zhang et al. (2024), Recurrent Drafter. The network is heads/recurrent/redrafter.py, the beams
drafters/beams.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.medusa import EXACT, typical_fits
from decoders.speculative.draft_heads.trees import BEAMS, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier
from decoders.speculative.verifiers.beam_coins import BEAM_COINS
from decoders.strategy import Parameter

SAYS = "A recurrent network takes in each drafted token and guesses from it and the target's newest state."
PUBLISHED = "as published"
ACCEPTANCE = Parameter(
    "acceptance",
    "choice",
    EXACT,
    "Above temperature 0: tests that keep the target's distribution, or the published ones, which do not.",
    choices=(EXACT, PUBLISHED),
)


def redrafter_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the network's guesses, and the chosen verifier."""
    temperature = parameters["temperature"]
    drafter = drafted_by("redrafter", parameters, "a recurrent drafter", SAYS)
    if parameters["acceptance"] == PUBLISHED and temperature > 0.0:
        return drafter, BEAM_COINS, temperature
    return simplest(drafter, temperature)


@draft_and_verify(
    redrafter_pair,
    name="redrafter",
    title="ReDrafter",
    parameters=(*tree_parameters(BEAMS, nodes=10, depth=3, width=3), ACCEPTANCE, *GREEDY),
    papers=("recurrent-drafter-for-fast-speculative-decoding-in",),
    views=HEAD_VIEWS,
    together=typical_fits(redrafter_pair),
    reads=reads_states,
    suits=needs_head("redrafter", "recurrent drafter"),
)
def redrafter(lane: Lane) -> Iterator[None]:
    """A small recurrent network and beam search draft several chains, which the target reads as one tree.

    1. The network's state takes in the root, then each drafted token; together with the target's newest
       state it predicts the next one. The same weights serve all depths.
    2. Beam search keeps the `width` best chains on each of `depth` levels. Chains with a common prefix
       share its nodes: the score *packed* says how many beam entries become how many nodes.
    3. One target forward reads the nodes. At temperature 0 the longest correct prefix is kept; above it
       the target draws its own tokens and follows the beams while one of them contains them: exact.

    The published sampling accepts every entry of every beam with probability p / q. Beams are not draws from
    q, and shared tokens are tested several times: where the only guess has p = 0.3 and q = 0.6, it is written
    with probability 0.5. *acceptance* offers that rule, too. The paper has ten beams and more; its code also
    keeps only the best 50 tokens of drafter and target, which here is the parameter top_k.
    """
    drafter, verifier, _ = redrafter_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
