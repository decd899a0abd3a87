"""Mixture of Attentions: a drafter that reads a summary of all of the target's layers, for verified tokens
only.

Zimmer et al. (2024), Mixture of Attentions For Speculative Decoding. The drafter is
heads/cross_attention/mixture_of_attentions.py.
"""

from collections.abc import Iterator

from decoders.heads.cross_attention.mixture_of_attentions import MixtureOfAttentions
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.trees import DYNAMIC, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import from_head, head_of_kind, needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier

KIND = MixtureOfAttentions.kind


def mixture_of_attentions_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the drafter's guesses, and its simplest exact verifier."""
    find = head_of_kind(KIND)
    says = "It reads a memory of all of the target's layers for each verified token, and guesses."
    drafter = from_head(find, tree_of(parameters, find), "a mixture of attentions", says)
    return simplest(drafter, parameters["temperature"])


@draft_and_verify(
    mixture_of_attentions_pair,
    name="mixture_of_attentions",
    title="Mixture of Attentions",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=5, width=4), *GREEDY),
    papers=("mixture-of-attentions-for-speculative-decoding",),
    views=HEAD_VIEWS,
    reads=reads_states,
    suits=needs_head(KIND, "mixture of attentions"),
)
def mixture_of_attentions(lane: Lane) -> Iterator[None]:
    """Three attentions draft: over the target's layers, over verified tokens, and over what was drafted.

    1. Layer self-attention: for each verified token the keys and values of all of the target's layers form a
       sequence as long as the target is deep. One small layer reads it in both directions; its mean is the
       token's memory.
    2. Self-attention runs over the embeddings of the text and of the drafted tokens, cross-attention over the
       memories of verified tokens. These are computed once after each verification and stay unchanged while
       it drafts, so that training and drafting see the same.
    3. The output is an estimate of the target's last state, which the target's head turns into a
       distribution. A tree grows as in EAGLE-2: the best nodes of each level are expanded, and the best of
       all are verified.
    4. At temperature 0 the path of the target's most likely tokens is kept; above it the target draws
       and follows the tree while it contains the token. Nothing is drafted at random, so that is exact.

    The paper also lets the target's last layers, frozen, finish the drafter's state (N of 1 or 3); here it is
    N = 0. Here layer self-attention is narrower than keys and values, and a learned vector identifies each
    layer. The paper's tree for a target of eight billion parameters has 7 levels, width 8 and 62 tokens; its
    variant with a client that drafts and a server that verifies is left out.
    """
    drafter, verifier, _ = mixture_of_attentions_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
