"""SpecInfer: independent draws below each node, of one draft model or several, merged into a tree."""

from decoders.parameters import integers
from decoders.roles import DRAFT_ROLES
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.merged_drafts import merged_drafts
from decoders.speculative.interfaces import Pair


@speculative(
    name="specinfer",
    title="SpecInfer",
    may_use=DRAFT_ROLES[1:],
    parameters=(
        integers("expansion", [1, 1, 3, 1, 1], "Draws below each node, level by level.", low=1, high=16),
        *GREEDY,
    ),
)
def specinfer_pair(parameters: dict) -> Pair:
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
    temperature = parameters["temperature"]
    return simplest(merged_drafts(parameters["expansion"], temperature), temperature)
