"""DREAM, its text part: a drafter with gated cross-attention to the target's last states, trained on its
early layers.

Hu et al. (2025), DREAM: Drafting with Refined Target Features and Entropy-Adaptive Cross-Attention Fusion for
Multimodal Speculative Decoding. The drafter is heads/cross_attention/dream.py.
"""

from collections.abc import Iterator
from copy import copy
from typing import Any

from decoders.heads.cross_attention.dream import Dream
from decoders.lane import Lane
from decoders.parameters import switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.trees import DYNAMIC, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import Find, from_head, head_of_kind, needs_head
from decoders.speculative.interfaces import Pair

KIND = Dream.kind
GATE = "The gate lets {:.0%} of what the target's last states say into the draft."


def finder(is_open: bool) -> Find:
    """Finds a target's drafter, with its gate as it was learned or closed."""

    def find(target: Any) -> Dream | None:
        module = head_of_kind(KIND)(target)
        if module is None or is_open:
            return module
        closed = copy(module)  # it shares all weights
        closed.is_open = False
        return closed

    return find


def dream_pair(parameters: dict) -> Pair:
    """The chosen tree of the drafter's guesses, and its simplest exact verifier."""
    find = finder(parameters["gate"])
    says = "Two layers with a gated cross-attention to the target's last states between them guess."
    return simplest(
        from_head(find, tree_of(parameters, find), "DREAM's drafter", says), parameters["temperature"]
    )


@draft_and_verify(
    dream_pair,
    name="dream",
    title="DREAM (text)",
    parameters=(
        *tree_parameters(DYNAMIC, nodes=24, depth=5, width=4),
        switch("gate", True, "The learned gate to the target's states; without it they are not used."),
        *GREEDY,
    ),
    papers=("dream",),
    suits=needs_head(KIND, "drafter of DREAM"),
)
def dream(lane: Lane) -> Iterator[None]:
    """A drafter with gated cross-attention to the target's states, trained on its most certain layer.

    1. The drafter reads token embeddings: a layer of self-attention, a cross-attention to the target's last
       states of verified tokens, with normed queries and keys, times `tanh(g)`, and another layer of
       self-attention. The target's head reads its guess. g starts at 0, so the states are used only as far
       as they help.
    2. In training, the output of the cross-attention is pulled towards the target's own feature of an early
       layer: for each token, the layer among the first 40 % whose attention has the lowest entropy, averaged
       over its heads.
    3. The other losses are the divergence of the guess from the target's distribution, and a fifth of the
       distance of the drafter's last state from the target's.
    4. A tree grows as in EAGLE-2, one target forward verifies it, and the text stays exactly the target's.

    This is the part of the paper that needs no image: the compression of visual tokens and the
    vision-language targets are left out. Features are normalised to unit length for that loss. While the
    drafter drafts, the target's states are up to six tokens old; training imitates this by hiding the newest
    one to six of them (our reading). The paper's tree has width 8, depth 5 and 63 nodes. With gate off one
    sees how well the drafter works without the target's states.
    """
    drafter, verifier = dream_pair(lane.parameters)
    module = finder(True)(lane.models["target"])
    if module is not None and lane.parameters["gate"]:
        lane.note(GATE.format(float(module.gate.tanh().abs())))
    yield from rounds(lane, drafter, verifier)
