"""GliDe with CaPE: a small draft model attends to the target's own keys and values, and adds siblings where
it is uncertain.

Du et al. (2024), GliDe with a CaPE: A Low-Hassle Method to Accelerate Speculative Decoding. The draft model
is heads/cross_attention/glide.py, the expansion drafters/confidence_siblings.py.
"""

from collections.abc import Iterator

from decoders.heads.cross_attention.glide import Glide
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.confidence_siblings import confidence_siblings
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.drafters.trained_head import from_head, head_of_kind, needs_head, reads_states
from decoders.speculative.interfaces import HEAD_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter

KIND = Glide.kind


def glide_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain from the draft model, with siblings or without; its simplest exact verifier."""
    count, temperature = parameters["num_assistant_tokens"], parameters["temperature"]
    shape = confidence_siblings(count) if parameters["cape"] else widths([1] * count, temperature)
    says = "A layer with cross-attention to the target's keys and values of verified tokens guesses."
    return simplest(from_head(head_of_kind(KIND), shape, "GliDe's draft model", says), temperature)


@draft_and_verify(
    glide_pair,
    name="glide",
    title="GliDe with CaPE",
    parameters=(
        Parameter("num_assistant_tokens", "int", 4, "Tokens of the chain per round (gamma).", low=1, high=32),
        Parameter("cape", "bool", True, "Draft siblings where the draft is uncertain; without it, a chain."),
        *GREEDY,
    ),
    papers=("glide-with-a-cape",),
    views=HEAD_VIEWS,
    reads=reads_states,
    suits=needs_head(KIND, "draft model of GliDe"),
)
def glide(lane: Lane) -> Iterator[None]:
    """A one-layer draft model attends to the target's cached keys and values of verified tokens.

    1. The draft layer attends to its own entries, then to the keys and values of the target's last layer,
       then goes through an MLP. In the cross-attention only the query and output projections are trained.
    2. While it drafts, the target's keys and values end before the newest token: all drafted tokens of a
       round see the same ones. In training a block mask imitates that: a token sees only the target's tokens
       of earlier blocks of five.
    3. A chain of the gamma most likely tokens is drafted. CaPE: where the most likely one has probability q,
       the next best are added as leaves: 7 of them for q below .3, 5 below .6, 3 below .8, else 1.
    4. One target forward reads all of it; a correct sibling ends the path, with the target's own token after
       it.

    With CaPE nothing in the draft is drawn, so above temperature 0 the target draws its own tokens and
    follows the draft as long as it contains them: exact. Without it the chain is drawn and tested by token
    rejection. The authors decode greedily. Embeddings, last norm and head are the target's here. The keys and
    values are computed once more from the stream that enters the target's last layer, by its own weights: the
    numbers are the same.
    """
    drafter, verifier, _ = glide_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
