"""VocabTrim: the draft proposes only tokens that the target often writes, so its output matrix is smaller.

Goel et al. (2025), VocabTrim: Vocabulary Pruning for Efficient Speculative Decoding in LLMs.
"""

from collections.abc import Iterator

import torch

from decoders.datastore import names
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.drafters.trimmed_vocabulary import calibrated, trim_head, trimmed
from decoders.speculative.interfaces import Pair, drafted
from decoders.trace.scores import ScoreName


def vocabtrim_pair(parameters: dict, kept: list[int] | None = None) -> Pair:
    """A chain from the draft model over the tokens `kept` (None: all); the simplest exact verifier."""
    temperature = parameters["temperature"]
    source = DRAFT_MODEL if kept is None else trimmed(draft_logits, kept, DRAFT_MODEL.name)
    shape = widths([1] * parameters["num_assistant_tokens"], temperature)
    return simplest(drafted(source, shape), temperature)


def draft_logits(lane: Lane, nodes: list[int]) -> torch.Tensor:
    """The draft model's logits [N, V] after each node."""
    return lane.score(nodes, "draft", role="draft")


@draft_and_verify(
    vocabtrim_pair,
    name="vocabtrim",
    title="VocabTrim",
    parameters=(
        integer("num_assistant_tokens", 3, "Tokens that the draft guesses per round.", low=1, high=64),
        real(
            "keep",
            0.25,
            "Share of the vocabulary that the draft may propose; 1 leaves it unchanged.",
            low=0.0,
            high=1.0,
        ),
        choice("store", "stories", "The texts in which tokens are counted.", names()),
        *GREEDY,
    ),
    papers=("vocabtrim",),
)
def vocabtrim(lane: Lane) -> Iterator[None]:
    """The draft's vocabulary is cut to the tokens that are frequent in texts of the task; nothing is trained.

    1. Tokens are counted in a store of texts. S contains the most frequent ones, the share `keep` of the
       vocabulary, and all that end a text.
    2. The draft's output matrix keeps the rows of S: `W' = W[S]`. This matrix is most of the work of a small
       draft.
    3. The draft guesses from `q' = softmax over S`, which is 0 elsewhere; the target tests with q'.
    4. The target keeps its whole vocabulary, so the text is exactly the target's. A token outside S is never
       drafted: the round ends there.

    The gauge *in the draft's vocabulary* is 0 where the text has such a token. In the paper, counting on
    texts that the target wrote for the task works best; here the counts come from a store, so other kinds of
    tasks are covered less well.
    """
    draft, parameters = lane.models["draft"], lane.parameters
    size = draft.engine.vocabulary
    kept, share = list(range(size)), 1.0
    if parameters["keep"] < 1.0:
        count = max(1, round(parameters["keep"] * size))
        kept, share = calibrated(parameters["store"], draft, count, lane.eos | draft.eos)
        trim_head(lane, kept)
    lane.note(
        f"The draft may propose {len(kept):,} of {size:,} tokens; they are {share:.1%} of the tokens of "
        f"“{parameters['store']}”."
    )
    drafter, verifier = vocabtrim_pair(parameters, kept if len(kept) < size else None)
    inside, recorded = set(kept), lane.written
    for _ in rounds(lane, drafter, verifier):
        path = lane.tree.path(lane.tip)
        for node in path[len(path) - (lane.written - recorded) :]:
            known = lane.tree.tokens[node] in inside
            lane.record_measure(node, ScoreName.IN_VOCABULARY, float(known), scale=1.0)
        recorded = lane.written
        yield
