"""Speculative decoding with a tree: several guesses per position, all verified in one target forward."""

from decoders.parameters import integers
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Pair, drafted


@speculative(
    name="speculative_tree",
    title="Speculative tree",
    parameters=(
        integers("widths", [3, 2, 1, 1], "Children of each drafted node, level by level.", low=1, high=16),
        *GREEDY,
    ),
)
def speculative_tree_pair(parameters: dict) -> Pair:
    """A small model guesses a tree of tokens; the target checks the whole tree in one forward.

    1. The draft grows a tree: widths[0] guesses for the next token, widths[1] below each of them, and so on.
    2. One target forward scores the whole tree; each node sees only its own path.
    3. At each position the siblings are tested in the order in which they were drawn, against R, which starts
       as the target's p: a guess passes if `u D(x) < R(x)`, D being the draft's q without the earlier
       siblings.
    4. After a failure `R = norm(max(R - D, 0))`, and the next sibling is tested; if none passes, the token
       is drawn from R.

    More guesses pass than in a chain, but the target evaluates more positions in each forward.
    """
    temperature = parameters["temperature"]
    return simplest(drafted(DRAFT_MODEL, widths(parameters["widths"], temperature)), temperature)
