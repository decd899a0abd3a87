"""REST: the draft is a tree of what most often followed the same tokens in other texts.

He et al. (2024), REST: Retrieval-Based Speculative Decoding. The paper's acceptance of sampled tokens changes
the target's distribution; here the target draws one token per node, which does not.
"""

import math
from collections.abc import Callable

from decoders.datastore import (
    Prefix,
    concatenated_texts,
    encoded,
    frequent,
    names,
    retrieve,
    sorted_store,
)
from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair
from decoders.trace.number_format import many

TEXT = "the text so far"  # the store that is the lane's own text
SHORTEST = 2  # tokens that must match before a continuation
STORE = (
    choice("store", "stories", "Where continuations come from.", (*names(), TEXT)),
    integer("max_matching_ngram_size", 8, "Longest n-gram that is searched for.", low=2, high=16),
    integer("continuation", 8, "Maximum length of a continuation in tokens.", low=1, high=32),
    integer("budget", 24, "Maximum number of nodes taken from the store.", low=0, high=128),
)
Retrieved = tuple[int, dict[Prefix, int], int]  # (n, prefixes and their counts, all continuations)


def retriever(parameters: dict) -> Callable[[Lane], Retrieved]:
    """A function that looks the end of a lane's text up in the chosen store."""
    name, longest = parameters["store"], parameters["max_matching_ngram_size"]
    count, budget = parameters["continuation"], parameters["budget"]

    def look(lane: Lane) -> Retrieved:
        text = lane.tree.text(lane.tip)
        store = sorted_store(
            concatenated_texts([text]) if name == TEXT else encoded(name, lane.models["target"])
        )
        n, runs = retrieve(store, text, longest, SHORTEST, min(count, lane.left - 1))
        runs = [cut for run in runs if (cut := before_end(run, lane))]
        return n, frequent(runs, budget), len(runs)

    return look


def before_end(run: Prefix, lane: Lane) -> Prefix:
    """A continuation up to its first end-of-text token."""
    ends = [i for i, token in enumerate(run) if token in lane.eos]
    return run[: ends[0]] if ends else run


def add_tree(lane: Lane, draft: Draft, prefixes: dict[Prefix, int], whole: int) -> int:
    """Adds a tree of prefixes to the draft, sharing the nodes that it already has. Returns how many these
    were. The probability of a token is its share among the continuations.
    """
    node_of, agreed = {(): draft.root}, 0
    for prefix, count in prefixes.items():
        parent, token = node_of[prefix[:-1]], prefix[-1]
        below = {lane.tree.tokens[child]: child for child in draft.children.get(parent, [])}
        if token in below:
            node_of[prefix], agreed = below[token], agreed + 1
            continue
        share = math.log(count / prefixes.get(prefix[:-1], whole))
        node_of[prefix] = draft.propose(lane, parent, token, share, source="store", fill=FIXED)
    return agreed


def store_match_note(n: int, whole: int) -> str:
    """What was found, in words."""
    times = "once" if whole == 1 else many(whole, "time")
    words = "The last token occurs" if n == 1 else f"The last {n} tokens occur"
    return f"{words} in the store {times}; what most often followed is drafted."


def retrieved(look: Callable[[Lane], Retrieved]) -> Drafter:
    """A drafter of the continuations that `look` finds for the newest tokens."""

    def propose(lane: Lane) -> Draft:
        draft = Draft(lane.tip)
        n, prefixes, whole = look(lane)
        add_tree(lane, draft, prefixes, whole)
        if draft.nodes:
            lane.note(store_match_note(n, whole))
        return draft

    says = "The most frequent continuations of the last few tokens in a store of texts, as a tree."
    return Drafter(propose, FIXED, name="tree from a store of texts", says=says)


@speculative(
    name="rest",
    title="REST",
    parameters=(*STORE, *GREEDY),
)
def rest_pair(parameters: dict) -> Pair:
    """Looks up the newest tokens in a store of texts and drafts what most often followed them there.

    1. The last n tokens are looked up in the store, first with n = max_matching_ngram_size, then with smaller
       n, down to 2.
    2. The continuations of all their occurrences share prefixes. The `budget` most frequent prefixes are
       the draft, as a tree.
    3. The target checks the tree in one forward, like any other draft. Without a match one plain token
       is decoded.

    It needs no second model, and gains as far as the store's texts resemble the target's. The store `stories`
    was written by the shipped model; "the text so far" looks the prompt and the output up instead.
    """
    return simplest(retrieved(retriever(parameters)), parameters["temperature"])
