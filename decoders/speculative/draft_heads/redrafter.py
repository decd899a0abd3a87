"""ReDrafter: a recurrent network and beam search draft several chains; common prefixes are read once.

Zhang et al. (2024), Recurrent Drafter. The network is heads/recurrent/redrafter.py, the beams
drafters/beams.py.
"""

from decoders.parameters import choice
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import fits, simplest
from decoders.speculative.draft_heads.medusa_like import EXACT
from decoders.speculative.draft_heads.trees import BEAMS, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import needs_head
from decoders.speculative.interfaces import Pair
from decoders.speculative.verifiers.beam_coins import BEAM_COINS

SAYS = "A recurrent network takes in each drafted token and guesses from it and the target's newest state."
PUBLISHED = "as published"
ACCEPTANCE = choice(
    "acceptance",
    EXACT,
    "Above temperature 0: tests that keep the target's distribution, or the published ones, which do not.",
    (EXACT, PUBLISHED),
)


@speculative(
    name="redrafter",
    title="ReDrafter",
    parameters=(*tree_parameters(BEAMS, nodes=10, depth=3, width=3), ACCEPTANCE, *GREEDY),
    papers=("recurrent-drafter-for-fast-speculative-decoding-in",),
    fits=fits,
    suits=needs_head("redrafter", "recurrent drafter"),
)
def redrafter_pair(parameters: dict) -> Pair:
    """A small recurrent network and beam search draft several chains, which the target reads as one tree.

    1. The network's state takes in the root, then each drafted token; together with the target's newest
       state it predicts the next one. The same weights serve all depths.
    2. Beam search keeps the `width` best chains on each of `depth` levels. Chains with a common prefix
       share its nodes: the score *packed* says how many beam entries become how many nodes.
    3. One target forward reads the nodes. At temperature 0 the longest correct prefix is kept; above it
       the target draws its own tokens and follows the beams while one of them contains them: exact.

    The published sampling accepts every entry of every beam with probability p / q. Beams are not draws from
    q, and shared tokens are tested several times: where the only guess has p = 0.3 and q = 0.6, it is written
    with probability 0.5. *acceptance* offers that rule, too. The paper has ten or more beams; its code also
    keeps only the best 50 tokens of drafter and target, for which there is the parameter top_k here.
    """
    temperature = parameters["temperature"]
    drafter = drafted_by("redrafter", parameters, "a recurrent drafter", SAYS)
    if parameters["acceptance"] == PUBLISHED and temperature > 0.0:
        return drafter, BEAM_COINS
    return simplest(drafter, temperature)
