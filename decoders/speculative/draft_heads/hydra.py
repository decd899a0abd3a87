"""Hydra: Medusa's heads, but each one reads the tokens that were drafted above it.

Ankner et al. (2024), Hydra. The heads are heads/recurrent/hydra.py.
"""

from collections.abc import Iterator
from typing import Any

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_heads.medusa import TYPICAL_PARAMETERS, typical_fits, verified
from decoders.speculative.draft_heads.trees import MEASURED, drafted_by, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter

HYDRA, PLUS = "Hydra", "Hydra++"
KINDS = {HYDRA: "hydra", PLUS: "hydra_plus"}
SAYS = "Each head guesses one position further ahead, from the target's state and the drafted path."


def hydra_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the heads' guesses, and the chosen verifier."""
    heads = parameters["heads"]
    return verified(drafted_by(KINDS[heads], parameters, f"{heads}'s heads", SAYS), parameters)


def suits(parameters: dict, target: Any) -> str | None:
    """The message to show if the target has no such heads."""
    return needs_head(KINDS[parameters["heads"]], f"{parameters['heads']} heads")(parameters, target)


@draft_and_verify(
    hydra_pair,
    name="hydra",
    title="Hydra",
    parameters=(
        Parameter(
            "heads", "choice", HYDRA, "Hydra's heads, or the deeper ones of Hydra++.", choices=(HYDRA, PLUS)
        ),
        *tree_parameters(MEASURED, nodes=8, depth=4, width=3),
        *TYPICAL_PARAMETERS,
        *GREEDY,
    ),
    papers=("hydra",),
    views=HEAD_VIEWS,
    together=typical_fits(hydra_pair),
    reads=reads_states,
    suits=suits,
)
def hydra(lane: Lane) -> Iterator[None]:
    """Heads on the target's newest state that also read every token drafted above their guess.

    1. The target has chosen the next token, the root. Head 1 reads the state that predicted it and the root;
       head k also reads the embeddings of the k - 1 tokens drafted below the root.
    2. So the branches of a tree differ: the guess after "New" is not the one after "big". A fixed list
       of paths of ranks says which guesses are drafted; each rank is that after its own path.
       All nodes of a level share one call of their head.
    3. One target forward reads the tree; exact tests follow, or typical acceptance, as in Medusa.

    Hydra++ has four blocks per head, and a decoder layer over all states of the text whose output takes the
    place of the newest one. The heads of llama-tiny use its own vocabulary matrix, and their maps have a low
    rank. At a temperature above 0 the authors' code takes the most likely root; here the root is drawn.
    """
    drafter, verifier, _ = hydra_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
