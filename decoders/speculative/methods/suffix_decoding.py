"""SuffixDecoding: the draft is what most often followed the longest useful match, here or in other texts.

Oliaro et al. (2024), SuffixDecoding: Extreme Speculative Decoding for Emerging AI Applications, section 3, as
in the authors' code (Snowflake's ArcticInference) and in vLLM. With alpha = max_spec_factor, C(N) the count
of a node and D(N) = C(N) / C(match):

    for both trees and each number m of newest tokens that occurs in the tree:
        add the most frequent open node below the match, while alpha m nodes are not reached
            and D(N) >= min_token_prob
        SCORE = the sum of D(N) over these nodes
    draft the nodes with the highest score
"""

import math

from decoders.datastore import encoded, names
from decoders.lane import Lane
from decoders.parameters import choice, integer, real, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.suffix_tree import (
    Limits,
    Node,
    Speculation,
    SuffixTree,
    best,
    speculations,
    suffix_tree,
)
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair
from decoders.trace.number_format import many, number
from decoders.trace.scores import OTHERS, ScoreName

NONE = "none"  # no global tree
LOCAL, GLOBAL = "prompt", "store"  # the sources of drafted tokens
PLACES = {LOCAL: "in this text, this place included", GLOBAL: "in the store"}
LISTED = 8  # children of a node that are recorded; the others are counted


def limits_of(parameters: dict, lane: Lane) -> Limits:
    """What the parameters allow in this round."""
    return Limits(
        alpha=parameters["max_spec_factor"],
        offset=parameters["max_spec_offset"],
        least=parameters["min_token_prob"],
        depth=parameters["max_tree_depth"],
        tree=parameters["use_tree_spec"],
        levels=lane.left - 1,
        ends=frozenset(lane.eos),
    )


def suffix_drafter(parameters: dict) -> Drafter:
    """A drafter with a suffix tree of the lane's own text, the local one, and perhaps one of a store."""
    trees = {LOCAL: SuffixTree()}

    def propose(lane: Lane) -> Draft:
        text, limits = lane.tree.text(lane.tip), limits_of(parameters, lane)
        trees[LOCAL].extend(text[len(trees[LOCAL].tokens) :])
        if parameters["store"] != NONE:
            trees[GLOBAL] = suffix_tree(encoded(parameters["store"], lane.models["target"]))
        found = {name: speculations(tree, text, limits) for name, tree in trees.items()}
        name = max(found, key=lambda one: best(found[one]).score)  # the local one if both are equal
        chosen, draft = best(found[name]), Draft(lane.tip)
        above = [(draft.root, chosen.match)]  # of guess i - 1: its node in the lane's tree and in the other
        for guess in chosen.guesses:
            parent, match = above[guess.parent + 1]
            share = math.log(len(guess.node) / len(match))
            node = draft.propose(lane, parent, guess.token, share, source=name, fill=FIXED)
            above.append((node, guess.node))
        record_scores(lane, found, name)
        if draft.nodes:
            record_counts(lane, trees[name], above)
            lane.note(match_note(chosen, name))
        return draft

    says = "What most often followed the newest tokens, by the counts of a suffix tree."
    return Drafter(propose, FIXED, name="suffix tree", says=says)


def record_scores(lane: Lane, found: dict[str, list[Speculation]], name: str) -> None:
    """Records each tree's SCORE by the number of matched tokens, and which draft was taken."""
    for source, ones in found.items():
        scores, chosen = {one.matched: one.score for one in ones}, best(ones)
        taken = chosen.matched if source == name and chosen.guesses else None
        lane.record_table(
            lane.tip, ScoreName.SUFFIX_SCORE, chosen.score, scores, "matched", level=source, chosen=taken
        )


def record_counts(lane: Lane, tree: SuffixTree, nodes: list[tuple[int, Node]]) -> None:
    """Records C of the match and of each drafted node, and of the tokens that followed there."""
    for node, place in nodes:
        children = {token: len(below) for token, below in tree.children(place).items()}
        listed = dict(list(children.items())[:LISTED])
        lane.spell(listed)
        if others := sum(children.values()) - sum(listed.values()):
            listed[OTHERS] = others
        lane.record_table(node, ScoreName.CONTINUATIONS, len(place), listed, "token")


def match_note(chosen: Speculation, name: str) -> str:
    """What is drafted, in words."""
    m, times = chosen.matched, len(chosen.match)
    words = "The last token occurs" if m == 1 else f"The last {m} tokens occur"
    often = "once" if times == 1 else many(times, "time")
    drafted = many(len(chosen.guesses), "token")
    return f"{words} {often} {PLACES[name]}; {drafted} drafted, score {number(chosen.score)}."


@speculative(
    name="suffix_decoding",
    title="SuffixDecoding",
    parameters=(
        choice(
            "store", "stories", "Texts of the global tree; none: only this text's own tree.", (NONE, *names())
        ),
        switch("use_tree_spec", True, "Draft a tree, not only the most frequent child of each node."),
        integer(
            "max_tree_depth", 24, "Maximum number of matched and drafted tokens together.", low=2, high=64
        ),
        real("max_spec_factor", 1.0, "Drafted tokens per matched token (alpha).", low=0.0, high=16.0),
        real(
            "max_spec_offset",
            0.0,
            "Drafted tokens in addition to those of max_spec_factor.",
            low=-16.0,
            high=64.0,
        ),
        real(
            "min_token_prob",
            0.1,
            "Minimum share of the match's occurrences that a drafted token follows.",
            low=0.0,
            high=1.0,
        ),
        *GREEDY,
    ),
)
def suffix_decoding_pair(parameters: dict) -> Pair:
    """Drafts what most often followed the newest tokens; the longer their match, the longer the draft.

    1. Two suffix trees count runs of tokens: the local one those of this text, prompt and output, the global
       one those of a store of earlier texts. `C(N)` is how often the run of node N occurs.
    2. The last m tokens are looked up in both, for each m. Below each match the most frequent nodes are
       added, up to `alpha m` nodes (alpha is max_spec_factor) with `D(N) = C(N) / C(match)` of at least
       min_token_prob.
    3. The score of a draft is the sum of its `D(N)`, the number of tokens that it expects to be accepted. The
       draft with the highest score is used; between equal ones, the longer match, and the local tree.
    4. The target checks the draft in one forward. Without a match one plain token is decoded.

    It needs no second model, and gains most where texts repeat themselves or each other: agents, edits,
    pipelines. A long match allows a long draft, and a wrong short one costs little. As in the authors' code,
    the newest tokens are themselves an occurrence of the match: what followed its one earlier occurrence has
    `D` 1/2. Simplified: the global tree holds finished texts only, does not grow while the lane runs, and
    evicts nothing. vLLM drafts paths only (use_tree_spec off).
    """
    return simplest(suffix_drafter(parameters), parameters["temperature"])
