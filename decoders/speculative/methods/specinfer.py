"""SpecInfer: independent draws below each node, of one draft model or several, merged into a tree."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.roles import DRAFT_ROLES
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.merged_drafts import merged_drafts
from decoders.speculative.interfaces import TIMED_TREE_VIEWS, Drafter, Verifier
from decoders.strategy import Parameter


def specinfer_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A tree drawn with replacement; greedy match at temperature 0, else multi-step speculative sampling."""
    temperature = parameters["temperature"]
    return simplest(merged_drafts(parameters["expansion"], temperature), temperature)


@draft_and_verify(
    specinfer_pair,
    name="specinfer",
    title="SpecInfer",
    needs=("target", "draft"),
    may_use=DRAFT_ROLES[1:],
    parameters=(
        Parameter(
            "expansion", "ints", [1, 1, 3, 1, 1], "Draws below each node, level by level.", low=1, high=16
        ),
        *GREEDY,
    ),
    views=TIMED_TREE_VIEWS,
)
def specinfer(lane: Lane) -> Iterator[None]:
    """Drafts a tree of independent draws; each draw is tested against the residual of those before it.

    1. Level by level each draft model draws as often as `expansion` says, each time from its whole
       distribution; equal tokens share a node, below which more is drawn.
    2. One target forward scores the tree.
    3. At each node the draws are tested one after the other, in a random order, with
       probability p/q, where q is the distribution of the model that made the draw; after a rejection the
       residual replaces p. If all are rejected, the target draws from the last residual.

    Name up to four draft models, with commas, to merge their trees. Here they run one after the other, where
    the paper runs them at the same time, and they were not tuned to complement each other as in the paper.
    A duplicate costs a test and no node.
    """
    drafter, verifier, _ = specinfer_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
