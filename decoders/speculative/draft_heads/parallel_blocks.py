"""Drafters that guess all tokens of a draft in one forward: masks stand for tokens that are not yet known.

Chen et al. (2026), DFlash; Hui et al. (2026), P-EAGLE. The modules are heads/path_independent, each in a file
of its name.
"""

from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.trees import CHAIN, drafted_by, tree_parameters
from decoders.speculative.drafters.trained_head import needs_head
from decoders.speculative.interfaces import Pair


@speculative(
    name="dflash",
    title="DFlash",
    parameters=(*tree_parameters(CHAIN, nodes=8, depth=7, width=2), *GREEDY),
    suits=needs_head("dflash", "DFlash drafter"),
)
def dflash_pair(parameters: dict) -> Pair:
    """A block of masks reads the target's states as keys and values, and guesses all its tokens at once.

    1. The target's states after a few layers are fused into one vector per token (on llama-tiny after 2, 6
       and 10 of 12 layers). Every layer of the drafter turns these vectors into keys and values of its own,
       once for each token; the vectors themselves pass through no layer.
    2. A block is the newest token and b - 1 masks after it. Its entries see all those keys and values and,
       in both directions, each other. One forward gives a distribution for each mask.
    3. No guess has read another: the tokens of a block are the likeliest one by one, not the likeliest text.
       The authors draft a chain, as here; other trees combine the same distributions.
    4. One target forward reads the draft, and its states at what was accepted become the next keys and
       values. At temperature 0 the longest prefix of the target's own choices is kept. Above it tokens are
       drawn from the block's distributions and tested with p / q: exact. The authors' code drafts the
       likeliest tokens at any temperature, and keeps those that the target draws as well.

    The block is always complete, however few tokens are drafted, since its masks see each other. The authors
    train more layers and longer blocks (16 for Qwen3-8B) on answers of the target, with its tokens as labels.
    The drafter of llama-tiny has two layers and blocks of 8. It was trained for minutes on 0.9 million
    tokens, half of them written by the target, with blocks at an eighth of the positions of a text, and with
    the target's distributions as labels.
    """
    says = "A block of masks, which sees the target's states and itself, guesses all its tokens in one pass."
    return simplest(drafted_by("dflash", parameters, "a block drafter", says), parameters["temperature"])


@speculative(
    name="peagle",
    title="P-EAGLE",
    parameters=(*tree_parameters(CHAIN, nodes=8, depth=6, width=2), *GREEDY),
    suits=needs_head("peagle", "P-EAGLE drafter"),
)
def peagle_pair(parameters: dict) -> Pair:
    """EAGLE-3's layers guess all depths in one forward: unknown tokens and states are learned placeholders.

    1. For each known token the drafter reads what EAGLE-3 reads: the token, and the target's states before
       it, fused (on llama-tiny after 2, 6 and 9 of 12 layers).
    2. EAGLE-3 would go on with its own first guess and its own output. Here K - 1 more entries follow at
       once, each with a mask for the token and one learned vector for the states. Attention is causal: an
       entry sees the text and the masks before it. The entry of the newest token guesses depth 1, the masks
       guess the others.
    3. So K guesses cost one forward instead of K, but no guess knows those before it. Its head has a
       vocabulary of its own, as in EAGLE-3; a token that it lacks is never drafted.
    4. One target forward reads the draft. At temperature 0 the longest right prefix is kept; above it tokens
       are drawn from the K distributions and tested with p / q: exact.

    In training, rollouts of masks begin at randomly chosen positions, and a share of 0.7 of them continues
    from each depth to the next (conditional drop-token sampling). The authors' drafter for gpt-oss-120b has
    four layers and eight depths; that of llama-tiny has two layers, six depths and 2,048 of 4,096 tokens. It
    was trained for minutes on 0.9 million tokens, with rollouts from a quarter of the positions. It reads the
    target's own embeddings; the authors train the embeddings, too.
    """
    says = "EAGLE-3's layers read masks after the newest token and guess all depths in one pass."
    return simplest(drafted_by("peagle", parameters, "a P-EAGLE drafter", says), parameters["temperature"])
