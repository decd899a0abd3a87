"""Medusa: heads on the target's newest state guess one token each, and a fixed tree of their most likely
tokens is verified at once.

Cai et al. (2024), Medusa. The heads are heads/path_independent/medusa.py.
"""

from collections.abc import Callable, Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest_verifier
from decoders.speculative.draft_heads.trees import MEASURED, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier
from decoders.speculative.methods.typical_acceptance import typical
from decoders.strategy import Parameter

EXACT, TYPICAL = "exact", "typical"
TYPICAL_PARAMETERS = (
    Parameter(
        "acceptance",
        "choice",
        EXACT,
        "Which guesses pass: tests that keep the target's distribution, or typical acceptance.",
        choices=(EXACT, TYPICAL),
    ),
    Parameter(
        "epsilon", "float", 0.09, "For typical acceptance: a probability that is always enough.", 0.0, 1.0
    ),
    Parameter(
        "delta",
        "float",
        0.3,
        "For typical acceptance: what is enough where the target is uncertain.",
        0.0,
        1e6,
    ),
)
TYPICAL_ONLY = (
    "Typical acceptance has no rule for guesses that are {}: choose another tree, or temperature 0."
)
SAYS = "Each head guesses one position further ahead, all from the target's newest state."


def verified(drafter: Drafter, parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A drafter with its simplest exact verifier, or with typical acceptance if the parameters ask for it."""
    temperature = parameters["temperature"]
    if parameters["acceptance"] == TYPICAL:
        return drafter, typical(parameters["epsilon"], parameters["delta"], temperature), temperature
    return drafter, simplest_verifier(drafter.fill, temperature), temperature


def medusa_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the heads' guesses, and the chosen verifier."""
    return verified(drafted_by("medusa", parameters, "Medusa's heads", SAYS), parameters)


def typical_fits(parts: Callable[[dict], tuple[Drafter, Verifier, float]]) -> Callable[[dict], str | None]:
    """The `together` of a strategy that has TYPICAL_PARAMETERS: the message to show if typical acceptance
    cannot verify the chosen tree.
    """

    def fits(parameters: dict) -> str | None:
        drafter, verifier, _ = parts(parameters)
        if not verifier.relaxed_for or drafter.fill in verifier.relaxed_for:
            return None
        return TYPICAL_ONLY.format(drafter.fill)

    return fits


@draft_and_verify(
    medusa_pair,
    name="medusa",
    title="Medusa",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=2), *TYPICAL_PARAMETERS, *GREEDY),
    views=HEAD_VIEWS,
    together=typical_fits(medusa_pair),
    reads=reads_states,
    suits=needs_head("medusa", "Medusa heads"),
)
def medusa(lane: Lane) -> Iterator[None]:
    """Heads on the target's newest state guess one token each; a tree of the most likely ones is verified.

    1. The target has chosen the next token, the root. From the state that predicted it, head k guesses the
       token k positions after the root, with one residual block and a vocabulary matrix per head. All heads
       guess at once, and no head knows the root or another head's guess.
    2. A fixed list of paths of ranks says which combinations are drafted: (0, 1) is the second guess of head
       2 after the best one of head 1. The paths are those that are right most often, by the measured accuracy
       of each head and rank.
    3. One target forward reads the whole tree, each node seeing its own ancestors alone.
    4. At temperature 0 the longest path of the target's most likely tokens is kept. Above it the target draws
       its token, and if that is a child, the path continues there: exact, since no guess is drawn. Typical
       acceptance, the paper's rule, keeps every token with `p(x) > min(epsilon, delta exp(-H))` and changes
       the distribution.

    The heads of llama-tiny were trained on the frozen model (the paper's Medusa-1), with the target's own
    distribution as label and a vocabulary matrix that is the target's plus a low-rank change. The paper's
    tree for 7B models has 63 nodes, hand-made from such accuracies; here eight are fastest.
    """
    drafter, verifier, _ = medusa_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
