"""Hidden transfer: in the middle of the target, linear maps turn the newest token's state into states of
future tokens.

Wu et al. (2024), Parallel Decoding via Hidden Transfer for Lossless Large Language Model Acceleration. The
maps are heads/path_independent/hidden_transfer.py, the forward is engine/injected_states.py.
"""

from decoders.engine.capabilities import Capability
from decoders.heads.path_independent.hidden_transfer import HiddenTransfer
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.own_forward import plan_of, slot_parameters
from decoders.speculative.drafters.own_slots import own_slots
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import Pair

KIND = HiddenTransfer.kind


@speculative(
    name="hidden_transfer",
    title="Hidden transfer",
    parameters=(
        integer("num_pseudo_tokens", 3, "Pseudo states after each token (m).", low=0, high=16),
        *slot_parameters(rows=24),
        *GREEDY,
    ),
    papers=("parallel-decoding-via-hidden-transfer-for-lossless",),
    suits=needs_head(KIND, "maps of hidden transfer"),
)
def hidden_transfer_pair(parameters: dict) -> Pair:
    """Linear maps inside the target create states of future tokens, and the layers above refine them.

    1. After t layers the state s of a token gives m pseudo states `W_i s`, each as a slot i positions after
       it. In the layers above, a pseudo state sees the text up to its token and the pseudo states before it,
       and has keys and values in those layers only.
    2. The last norm and the head turn each into a guess: pseudo state i guesses the token i + 1 positions
       after its token. Real tokens see no pseudo state, so the target is exactly unchanged.
    3. One forward verifies a tree and drafts the next: pseudo states are attached to all drafted nodes, and
       the next tree is built from those of the last accepted node. Trees and the number of pseudo states
       per node are planned as in parallel prompt decoding.

    Only the maps W_i were trained, towards the target's own distributions. Here all start after the same
    layer, the fourth of twelve; the paper chooses a layer for each by a sweep. The layers below compute the
    slots too and discard the result, which costs time but changes nothing. Trees by state are PPD's; the
    paper's own is fixed. Reconstructed: no code was published.
    """
    drafter = own_slots(
        head_of_kind(KIND),
        plan_of(parameters, parameters["num_pseudo_tokens"]),
        Capability.LAYERS,
        name="pseudo states in the target",
        says="Pseudo states, made in the middle of the target from the last accepted token's state, are "
        "refined by the layers above.",
    )
    return simplest(drafter, parameters["temperature"])
