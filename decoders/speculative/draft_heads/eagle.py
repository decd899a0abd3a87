"""EAGLE: one decoder layer guesses the target's next state, and the target's own head reads tokens out of it.

Li et al. (2024), EAGLE. The layer is heads/eagle.py.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.trees import DYNAMIC, tree_of, tree_parameters
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.trained_head import from_head, named, needs_head, reads_states
from decoders.speculative.interfaces import TIMED_TREE_VIEWS, Drafter, Verifier


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The chosen tree of the layer's guesses, and its simplest exact verifier."""
    find = named("eagle")
    says = "A layer guesses the target's next state, and the target's head reads tokens out of it."
    return simplest(
        from_head(find, tree_of(parameters, find), "a feature drafter", says), parameters["temperature"]
    )


@draft_and_verify(
    parts,
    name="eagle",
    title="EAGLE",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=5, width=4), *GREEDY),
    views=TIMED_TREE_VIEWS,
    reads=reads_states,
    suits=needs_head("eagle", "EAGLE layer"),
)
def eagle(lane: Lane) -> Iterator[None]:
    """One decoder layer guesses the target's next state; the target's own head reads tokens out of it.

    1. The layer reads, at each place of the text, the target's state and the token that was chosen after it,
       and says what the next state will be. The token removes the doubt that the state alone leaves.
    2. The target's frozen head turns the state into a distribution of guesses. A guess and the state it was
       read from are the layer's next input: so a tree grows, one pass for each level.
    3. One target forward reads the tree; the accepted path and the target's own token are committed.
    4. What the layer has drafted is dropped, and it reads the target's true states of the new tokens.

    Trees whose guesses are the likeliest are exact at any temperature, for nothing in them is drawn.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
