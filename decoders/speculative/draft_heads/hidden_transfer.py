"""Hidden transfer: in the middle of the target, linear maps make states of future tokens out of the newest
one's.

Wu et al. (2024), Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration. The
maps are heads/path_independent/hidden_transfer.py, the forward is engine/born_states.py.
"""

from collections.abc import Iterator

from decoders.engine.capabilities import Capability
from decoders.heads.path_independent.hidden_transfer import HiddenTransfer
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.own_forward import plan_of, slot_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.own_slots import own_slots
from decoders.speculative.drafters.trained_head import named, needs_head
from decoders.speculative.interfaces import OWN_HEAD_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter

KIND = HiddenTransfer.kind


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A tree from pseudo states; greedy match at temperature 0, else node sampling."""
    drafter = own_slots(
        named(KIND),
        plan_of(parameters, parameters["num_pseudo_tokens"]),
        name="pseudo states in the target",
        says="States made in the middle of the target from the last accepted token's guessed on the way up.",
    )
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    parts,
    name=KIND,
    title="Hidden transfer",
    parameters=(
        Parameter("num_pseudo_tokens", "int", 3, "Pseudo states behind each token (m).", low=0, high=16),
        *slot_parameters(rows=24),
        *GREEDY,
    ),
    papers=("parallel-decoding-via-hidden-transfer-for-lossless",),
    views=OWN_HEAD_VIEWS,
    reads=lambda parameters: {"target": {Capability.LAYERS}},
    suits=needs_head(KIND, "maps of hidden transfer"),
)
def hidden_transfer(lane: Lane) -> Iterator[None]:
    """Linear maps in the middle of the target make states of future tokens, and the layers above refine them.

    1. After t layers the state s of a token gives m pseudo states `W_i s`, each as a slot i places behind it.
       In the layers above, a pseudo state sees the text up to its token and the pseudo states before it, and
       leaves keys and values in those layers alone.
    2. Last norm and head read a guess out of each: pseudo state i guesses the token i + 1 places behind its
       token. Rows of real tokens see no pseudo state: the target stays exactly as it is.
    3. One forward verifies a tree and drafts the next: pseudo states hang on all drafted nodes, and those of
       the node accepted last are what the next tree is written from. Trees and the number of pseudo states
       per node are planned as in parallel prompt decoding.

    Only the maps W_i were learned, towards the target's own distributions. All are born after the same layer
    here, the fourth of twelve; the paper chooses a layer for each by a sweep. Layers below it compute the
    slots too and throw that away: it costs time, not truth. Trees by state are PPD's; the paper's own is
    fixed. Reconstructed: no code was published.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
