"""SpecInfer with one draft model: independent draws below each node, merged into a tree of tokens."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.sampling.shaping import GREEDY
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.greedy_match import GREEDY_MATCH
from decoders.speculative.parts import TIMED_TREE_VIEWS, Drafter, Verifier, badge, described, drafted
from decoders.speculative.recursive_rejection import WITH_REPLACEMENT_REJECTION
from decoders.speculative.rounds import rounds
from decoders.speculative.shapes import widths


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A tree drawn with replacement; greedy match at temperature 0, else multi-step speculative sampling."""
    temperature = parameters["temperature"]
    verifier = GREEDY_MATCH if temperature == 0.0 else WITH_REPLACEMENT_REJECTION
    shape = widths(parameters["expansion"], temperature, replacement=True)
    return drafted(DRAFT_MODEL, shape), verifier, temperature


@strategy(
    name="specinfer",
    title="SpecInfer",
    family="speculative",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "expansion", "ints", [1, 1, 3, 1, 1], "Draws below each node, level by level.", low=1, high=16
        ),
        *GREEDY,
    ),
    views=TIMED_TREE_VIEWS,
    badge=lambda parameters: badge(*parts(parameters)),
    parts=lambda parameters: described(*parts(parameters)),
)
def specinfer(lane: Lane) -> Iterator[None]:
    """Several independent draws below a node make a tree; each draw is tested against what is left.

    1. Level by level the draft model draws as often as expansion says, each time from its whole
       distribution; equal tokens share a node, and more is drawn below them.
    2. One target forward scores the tree.
    3. At each node the draws are tested one after the other with probability p/q; after a rejection what the
       target wanted more than the draft takes the place of p. All rejected: the target draws from what is
       left.

    Of the paper's several draft models there is one here; a duplicate costs a test and no node.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
