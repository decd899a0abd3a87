"""Medusa and its kin: heads guess one token each from the target's states, and a tree of their most likely
tokens is verified at once.

Cai et al. (2024), Medusa; Ankner et al. (2024), Hydra; Li et al. (2024), Amphista; Zeng et al. (2024),
Chimera. The heads are in decoders/heads, each in a file of its name.
"""

from typing import Any

from decoders.parameters import choice, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import fits, simplest_verifier
from decoders.speculative.draft_heads.trees import MEASURED, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import needs_head
from decoders.speculative.interfaces import Drafter, Pair
from decoders.speculative.methods.typical_acceptance import typical

EXACT, TYPICAL = "exact", "typical"
TYPICAL_LIMITS = (
    real("epsilon", 0.09, "For typical acceptance: upper bound of the threshold.", low=0.0, high=1.0),
    real(
        "delta",
        0.3,
        "For typical acceptance: where the target is uncertain, the threshold is delta exp(-entropy).",
        low=0.0,
        high=1e6,
    ),
)
TYPICAL_PARAMETERS = (
    choice(
        "acceptance",
        EXACT,
        "Which guesses pass: tests that keep the target's distribution, or typical acceptance.",
        (EXACT, TYPICAL),
    ),
    *TYPICAL_LIMITS,
)


def verified(drafter: Drafter, parameters: dict) -> Pair:
    """A drafter with its simplest exact verifier, or with typical acceptance if the parameters ask for it."""
    temperature = parameters["temperature"]
    if parameters["acceptance"] == TYPICAL:
        return drafter, typical(parameters["epsilon"], parameters["delta"], temperature)
    return drafter, simplest_verifier(drafter.fill, temperature)


@speculative(
    name="medusa",
    title="Medusa",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=2), *TYPICAL_PARAMETERS, *GREEDY),
    fits=fits,
    suits=needs_head("medusa", "Medusa heads"),
)
def medusa_pair(parameters: dict) -> Pair:
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
    says = "Each head guesses one position further ahead, all from the target's newest state."
    return verified(drafted_by("medusa", parameters, "Medusa's heads", says), parameters)


HYDRA, PLUS = "Hydra", "Hydra++"
HYDRA_KINDS = {HYDRA: "hydra", PLUS: "hydra_plus"}


def has_hydra_heads(parameters: dict, target: Any) -> str | None:
    """The message to show if the target has no such heads."""
    return needs_head(HYDRA_KINDS[parameters["heads"]], f"{parameters['heads']} heads")(parameters, target)


@speculative(
    name="hydra",
    title="Hydra",
    parameters=(
        choice("heads", HYDRA, "Hydra's heads, or the deeper ones of Hydra++.", (HYDRA, PLUS)),
        *tree_parameters(MEASURED, nodes=8, depth=4, width=3),
        *TYPICAL_PARAMETERS,
        *GREEDY,
    ),
    papers=("hydra",),
    fits=fits,
    suits=has_hydra_heads,
)
def hydra_pair(parameters: dict) -> Pair:
    """Heads on the target's newest state that also read every token drafted above their guess.

    1. The target has chosen the next token, the root. Head 1 reads the state that predicted it and the root;
       head k also reads the embeddings of the k - 1 tokens drafted below the root.
    2. So the branches of a tree differ: the guess after "New" is not the one after "big". A fixed list of
       paths of ranks says which guesses are drafted; a rank counts among the guesses after its own path. All
       nodes of a level share one call of their head.
    3. One target forward reads the tree; exact tests follow, or typical acceptance, as in Medusa.

    Hydra++ has four blocks per head, and a decoder layer over all states of the text whose output takes the
    place of the newest one. The heads of llama-tiny use its own vocabulary matrix, and their maps have a low
    rank. At a temperature above 0 the authors' code takes the most likely root; here the root is drawn.
    """
    says = "Each head guesses one position further ahead, from the target's state and the drafted path."
    heads = parameters["heads"]
    return verified(drafted_by(HYDRA_KINDS[heads], parameters, f"{heads}'s heads", says), parameters)


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
    says = "Heads that attend to each other guess one depth each, all in one pass."
    return verified(drafted_by("amphista", parameters, "Amphista's heads", says), parameters)


@speculative(
    name="chimera",
    title="Chimera",
    parameters=(*tree_parameters(MEASURED, nodes=8, depth=4, width=3), *TYPICAL_PARAMETERS, *GREEDY),
    papers=("chimera",),
    fits=fits,
    suits=needs_head("chimera", "Chimera heads"),
)
def chimera_pair(parameters: dict) -> Pair:
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
    an accepted row with the most probable token, which changes the distribution; that rule is not offered
    here. Their other rule, typical acceptance, is offered and makes the lane relaxed. The heads of llama-tiny
    are smaller than the paper's: a head scales its input element by element, adds a low-rank map and applies
    the target's matrix; the residual block has a low rank, too. They were trained along the target's own
    tokens, not along the drafter's.
    """
    says = "Trigrams of the newest tokens and one layer over the target's states guess, one pass per level."
    return verified(drafted_by("chimera", parameters, "Chimera's heads", says), parameters)
