"""S2D: one draft model holds several, and each token is drafted by the smallest that is confident enough.

Kavehzadeh et al. (2024), S2D: Sorted Speculative Decoding For More Efficient Deployment of Nested Large
Language Models.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.models import catalog
from decoders.models.names import shipped_name
from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.sorted_exits import CHAIN, TREE, exits_of, sorted_exits
from decoders.speculative.interfaces import Pair

SORTED, CHOSEN = "with trained exits", "as chosen"
TRAINED = "{!r} drafts; it was trained with exits after {} layers."
UNTRAINED = (
    "{!r} was not trained with early exits: those used, after {} layers, guess badly. The recipe of "
    "llama-tiny-sorted trains a draft with three exits."
)
WHERE = "The {} exit guesses where its top probability is above this; 0: always, 1: never."


def s2d_pair(parameters: dict) -> Pair:
    """Most likely tokens of nested drafts; greedy match at temperature 0, else node sampling."""
    return simplest(sorted_exits(parameters), parameters["temperature"])


def draft_of(parameters: dict, models: Mapping[str, Any]) -> Any:
    """The lane's draft, if it has trained exits or the lane asks for it; else the draft with exits that is
    shipped for the target, if there is one.
    """
    chosen = models["draft"]
    if parameters["draft"] == CHOSEN or catalog.exits(shipped_name(chosen.name)):
        return chosen
    return models["target"].sorted_draft or chosen


@draft_and_verify(
    s2d_pair,
    name="s2d",
    title="S2D (sorted drafts)",
    draft_of=draft_of,
    papers=("s2d",),
    parameters=(
        integer("num_assistant_tokens", 4, "Tokens of the chain, or levels of the tree.", low=1, high=32),
        choice("tree", CHAIN, "A chain, or the tree of the authors' later code.", (CHAIN, TREE)),
        integer("nodes", 24, "For a tree: maximum number of drafted nodes.", low=1, high=128),
        integer(
            "width",
            4,
            "For a tree: nodes of a level that are expanded, and children of each.",
            low=1,
            high=16,
        ),
        real("threshold_1", 0.5, WHERE.format("first"), low=0.0, high=1.0),
        real("threshold_2", 0.5, WHERE.format("second"), low=0.0, high=1.0),
        choice(
            "draft",
            SORTED,
            "The draft with trained exits, where one comes with the target, or the one that was chosen.",
            (SORTED, CHOSEN),
        ),
        *GREEDY,
    ),
    reads=lambda parameters: {"draft": {Capability.LAYERS}},
)
def s2d(lane: Lane) -> Iterator[None]:
    """One draft contains several: its first layer, its first two and all of its layers can each draft.

    1. The draft has three exits, after a third, two thirds and all of its layers, with one norm and one
       head. They were trained together on the mean of the three losses.
    2. The first exit drafts a token. If its most likely token has at most threshold_1, the state continues
       to the second exit, and if that one has at most threshold_2, to the last, which always decides.
    3. Deeper layers lack keys and values of tokens that exited before them. The states of these tokens are
       kept; when a later token goes deeper, they first run through the missing layers, at their own
       positions. So nothing is approximated: every exit gives what a run of all its layers over the whole
       text would give.
    4. The prompt runs through all layers. The target checks the draft in one forward.

    The draft is a chain of most likely tokens, or a tree (`tree`), which the authors' later code has: each
    level expands its `width` best nodes, by the product of probabilities on their paths, into `width`
    children each, and the `nodes` best nodes of all levels are checked. A level exits at the first exit at
    which its most confident node is confident enough, and the kept states on all of its paths catch up
    together. The authors' tree has ten nodes on each of five levels and 60 nodes in all, for a draft of
    twelve layers.

    Drafts are deterministic, so that any test by p alone is exact. The published code tests drafted tokens
    with p / q above temperature 0, which distorts the distribution: with p = (.6, .4) and q = (.7, .3) it
    writes the first token with probability .857. Here one draft serves one target; the paper's serves
    several, which changes nothing in a round. `llama-tiny-sorted` has three layers and an exit after each,
    trained towards llama-tiny's distributions as the authors' later trainer does, on 0.1 million tokens; any
    other draft gets exits after each third of its layers.
    """
    draft, (drafter, verifier) = lane.models["draft"], s2d_pair(lane.parameters)
    says = TRAINED if catalog.exits(shipped_name(draft.name)) else UNTRAINED
    lane.note(says.format(draft.name, ", ".join(map(str, exits_of(draft)))))
    yield from rounds(lane, drafter, verifier)
