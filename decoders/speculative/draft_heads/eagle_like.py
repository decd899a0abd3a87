"""EAGLE and its kin: a decoder layer drafts a tree from the target's states, and *Drift* shows how far the
states that it predicts are from the target's own.

Li et al. (2024), EAGLE and EAGLE-2; Li et al. (2025), EAGLE-3; Gao et al. (2024), Falcon. The layers are in
heads/feature_drafters, each in a file of its name; EAGLE-2 has EAGLE's.
"""

from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.drift import with_drift
from decoders.speculative.draft_heads.trees import DYNAMIC, MEASURED, PUBLISHED, tree_of, tree_parameters
from decoders.speculative.drafters.trained_head import head_of_kind, needs_head
from decoders.speculative.interfaces import Pair

EAGLE_SAYS = (
    "A layer predicts the target's next state, and the target's head turns it into token probabilities."
)


def layer_drafted(kind: str, parameters: dict, name: str, says: str) -> Pair:
    """The tree of `tree_parameters` drafted by the target's layer `kind`, and its simplest exact verifier.
    `name`: what guesses, in words that can follow "from"; `says`: a sentence that says how it guesses.
    """
    find = head_of_kind(kind)
    drafter = with_drift(find, tree_of(parameters, find), name, says)
    return simplest(drafter, parameters["temperature"])


@speculative(
    name="eagle",
    title="EAGLE",
    parameters=(*tree_parameters(PUBLISHED, nodes=25, depth=5, width=4), *GREEDY),
    suits=needs_head("eagle", "EAGLE layer"),
)
def eagle_pair(parameters: dict) -> Pair:
    """One decoder layer guesses the target's next state; the target's own head reads tokens out of it.

    1. At each position of the text the layer reads the target's state and the token that was chosen after it,
       and predicts the next state. The token resolves the uncertainty that the state alone leaves.
    2. The target's frozen head turns the state into a distribution of guesses. A guess and the state it came
       from are the layer's next input, so a tree grows with one pass per level. The drafted ranks are fixed:
       25 paths, up to five deep.
    3. One target forward reads the tree; the accepted path and the target's own token are committed.
    4. The layer's own states are dropped, and it reads the target's true states of the new tokens.

    Trees of the most likely guesses are exact at any temperature, since nothing in them is drawn; a chain is
    drawn from the layer's own distribution, and the usual test keeps it exact. On llama-tiny a chain of three
    is faster than the tree, although the tree brings more tokens per forward: a forward over 25 tokens takes
    twice as long as one over a single token. *Drift* shows how far the layer's states are from the target's;
    the distance grows with depth.
    """
    return layer_drafted("eagle", parameters, "a feature drafter", EAGLE_SAYS)


@speculative(
    name="eagle2",
    title="EAGLE-2",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=6, width=4), *GREEDY),
    suits=needs_head("eagle", "EAGLE layer"),
)
def eagle2_pair(parameters: dict) -> Pair:
    """EAGLE's layer drafts a tree that grows where the layer itself is confident.

    1. The value of a node is the product of the layer's probabilities on its path. They are well calibrated,
       so this is roughly the probability that the target gets there.
    2. Expand: on each level the width best nodes get width children each. All of them are candidates.
    3. Rerank: the best `nodes` candidates of all levels form the tree, ties going to the shallower; no
       child has a higher value than its parent.
    4. One target forward reads the tree. Nothing in it was drawn, so any temperature is exact.

    The paper's trees have 60 nodes for a 7B model, ten children and six to eight levels; here they are
    smaller, for a target whose forward costs little more than the layer's.
    """
    return eagle_pair(parameters)


@speculative(
    name="eagle3",
    title="EAGLE-3",
    parameters=(*tree_parameters(DYNAMIC, nodes=24, depth=6, width=4), *GREEDY),
    suits=needs_head("eagle3", "EAGLE-3 layer"),
)
def eagle3_pair(parameters: dict) -> Pair:
    """Drafts with a layer that reads several of the target's layers and was trained on its own outputs.

    1. At each position the target's states after a low, a middle and a high layer are fused into one feature
       (on llama-tiny after 2, 6 and 9 of 12 layers).
    2. The layer reads feature and token side by side, each with a norm of its own. Its output does not
       imitate a state: its own head turns it into a distribution over a vocabulary of its own, the most
       frequent tokens, and below depth 1 it replaces the feature.
    3. The tree is EAGLE-2's. A token that the draft's vocabulary lacks is never drafted; the target can still
       write it, as its own token.
    4. One target forward reads the tree; the layer then reads the true features of what was committed.

    Training-time test: in training the layer reads its own outputs for several steps, as in drafting, and
    only the cross-entropy counts. The paper's layer has 32k of 128k tokens and is unrolled seven steps; that
    of llama-tiny has 2,048 of 4,096, three steps, and a feed-forward layer a quarter as wide as the target's.
    """
    says = "A layer that reads three of the target's layers guesses tokens from a vocabulary of its own."
    return layer_drafted("eagle3", parameters, "an EAGLE-3 drafter", says)


@speculative(
    name="falcon",
    title="Falcon",
    parameters=(*tree_parameters(MEASURED, nodes=4, depth=6, width=3), *GREEDY),
    papers=("falcon",),
    suits=needs_head("falcon", "Falcon layer"),
)
def falcon_pair(parameters: dict) -> Pair:
    """A feature drafter that guesses k tokens per pass; on llama-tiny k is 2.

    1. Each entry reads the target's state and the token after it through an LSTM and one decoder layer, and
       predicts the target's state k positions later. The newest k entries see each other (relaxed causal
       mask), so one pass guesses the next k tokens.
    2. Within a block guesses do not see each other: all nodes of a level have the same distribution below the
       same block. A node whose depth is a multiple of k ends a block, and only there does the layer run
       again, on the block's tokens and its own predicted states; it sees the earlier blocks on the path.
    3. The tree has fixed ranks. Every k levels cost one pass.
    4. One target forward reads the tree. Where fewer than k tokens were committed, the last entries are read
       again: their block has changed.

    In training, a share of the guesses that a first pass gets wrong, falling from 0.4 to 0, is replaced by
    the right answers (coupled sequential glancing). The paper has two LSTM layers and a hand-made tree of
    eight levels; here there is one narrow LSTM layer, and the ranks that worked best in measurements.
    """
    says = (
        "A layer predicts a block of states per pass, and the target's head turns them into token "
        "probabilities."
    )
    return layer_drafted("falcon", parameters, "a block drafter", says)
