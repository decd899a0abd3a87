"""The MLP speculator: a small state is updated by one token after another, and predicts the next one each
time.

Wertheimer et al. (2024), Combined Token/Embedding Speculators. The network is
heads/recurrent/mlp_speculator.py.
"""

from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.trees import CHAINS, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import needs_head
from decoders.speculative.interfaces import Pair

SAYS = "A state that begins as the target's takes in each drafted token and guesses the next one."


@speculative(
    name="mlp_speculator",
    title="MLP speculator",
    parameters=(*tree_parameters(CHAINS, nodes=16, depth=3, width=3), *GREEDY),
    papers=("accelerating-production-llms-with-combined-token-embedding",),
    suits=needs_head("mlp_speculator", "MLP speculator"),
)
def mlp_speculator_pair(parameters: dict) -> Pair:
    """A small network mixes one drafted token after the other into the target's state.

    1. The state begins as the target's newest one, which predicted the root.
    2. At each depth it is multiplied by a matrix, the embedding of the newest token is added (first the
       root's), and a norm and GELU follow. A vocabulary matrix guesses the next token from it. The weights
       are chosen so that half of the last state still comes from the target.
    3. The best three, two and one guesses per depth give six chains; the three most likely are kept, and
       common prefixes are shared. The authors' code begins with five: `width` 5.
    4. One target forward reads the tree. The authors' code has only greedy tests; here any temperature is
       exact.

    The speculator of llama-tiny has one map, norm and matrix for all depths (the authors' option), and uses
    the target's embedding tables with learned maps, where the paper has separate tables. It was trained on
    the target's distributions, along stories and the target's own text together, not in two stages.
    """
    drafter = drafted_by("mlp_speculator", parameters, "an MLP speculator", SAYS)
    return simplest(drafter, parameters["temperature"])
