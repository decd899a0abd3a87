"""RASD: the tree of a draft model and the tree of a store of texts are merged and verified together.

Quan et al. (2025), RASD: Retrieval-Augmented Speculative Decoding. The draft model's tree is EAGLE-2's, which
draws nothing, so that node sampling is exact. What we read of the paper does not say how many first tokens
count as plausible; ten is our choice.
"""

from collections.abc import Callable
from dataclasses import replace

from decoders.datastore import Prefix
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.dynamic_trees import expand_and_rerank
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair, drafted
from decoders.speculative.methods.rest import STORE, Retrieved, add_tree, retriever, store_match_note
from decoders.trace.number_format import number


def with_retrieved_continuations(
    model: Drafter, look: Callable[[Lane], Retrieved], plausible: int
) -> Drafter:
    """A drafter that adds the continuations that `look` finds to the tree of `model`, if their first token is
    among the `plausible` most likely ones of the draft model.
    """

    def propose(lane: Lane) -> Draft:
        draft = model.propose(lane)
        n, prefixes, whole = look(lane)
        if not prefixes:
            return draft
        agreed = add_tree(lane, draft, without_implausible(lane, draft, prefixes, whole, plausible), whole)
        lane.note(
            f"{store_match_note(n, whole)} {agreed} of {len(prefixes)} nodes were in the draft model's tree."
        )
        return draft

    says = (
        f"{model.says} Continuations from a store of texts are merged into it where their first tokens agree."
    )
    return replace(model, propose=propose, name="tree from a draft model and a store", says=says)


def without_implausible(
    lane: Lane, draft: Draft, prefixes: dict[Prefix, int], whole: int, plausible: int
) -> dict[Prefix, int]:
    """The prefixes without those whose first token is unlikely under the draft model: these tokens are
    proposed and pruned again, with the reason.
    """
    probs = DRAFT_MODEL.scores(lane, [draft.root])[0].double().softmax(-1)  # [V], no new forward
    best = set(probs.topk(min(plausible, len(probs))).indices.tolist())
    unlikely = {prefix: count for prefix, count in prefixes.items() if prefix[0] not in best}
    for prefix, count in unlikely.items():
        if len(prefix) == 1:
            node = draft.propose(lane, draft.root, prefix[0], None, source="store", fill=FIXED)
            q = number(float(probs[prefix[0]]))
            why = f"Found {count} of {whole} times, but it is not among the draft model's {plausible}"
            draft.prune(lane, [node], f"{why} most likely tokens: q {q}.")
    return {prefix: count for prefix, count in prefixes.items() if prefix not in unlikely}


@speculative(
    name="rasd",
    title="RASD",
    parameters=(
        integer("depth", 3, "Maximum depth of the draft model's tree.", low=1, high=16),
        integer("width", 2, "Nodes that are expanded per level, and children of each.", low=1, high=16),
        integer("draft_budget", 8, "Nodes of the draft model's tree.", low=1, high=128),
        integer(
            "plausible",
            10,
            "A continuation must begin with one of this many of the draft's most likely tokens.",
            low=1,
            high=1000,
        ),
        *STORE,
        *GREEDY,
    ),
    papers=("rasd",),
)
def rasd_pair(parameters: dict) -> Pair:
    """One draft tree from two sources: a draft model and continuations retrieved from a store of texts.

    1. The draft model builds its tree of the best paths.
    2. The newest tokens are looked up in the store; the most frequent continuations are a second tree.
    3. Continuations whose first token the draft model considers unlikely are dropped.
    4. The others are merged into the draft model's tree and share its nodes as far as they agree.
    5. The target checks the whole tree in one forward.

    A draft model fails on texts that it was not trained for, a store on texts that are new; each can make up
    for the other.
    """
    shape = expand_and_rerank(parameters["width"], parameters["depth"], parameters["draft_budget"])
    drafter = with_retrieved_continuations(
        drafted(DRAFT_MODEL, shape), retriever(parameters), parameters["plausible"]
    )
    return simplest(drafter, parameters["temperature"])
