"""Shapes that grow where the source is confident: DySpec's, OPT-Tree's and EAGLE-2's.

The value of a node is the product of the source's probabilities on its path: its estimate of the probability
that the verifier reaches the node.
"""

import heapq
import math
from collections.abc import Iterator
from itertools import islice

import torch

from decoders.lane import Lane
from decoders.logits.distributions import without
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.fixed_trees import Guess, largest, likeliest, open_ends
from decoders.speculative.interfaces import FIXED, WITHOUT_REPLACEMENT, Draft, Shape
from decoders.trace.scores import ScoreName

FIRST = 8  # tokens of a position that are ranked at once
Offer = tuple[int, float, float]  # token, its probability among those that are left, its log-probability


def best_slots(budget: int, temperature: float) -> Shape:
    """DySpec (Xiong et al. 2024, algorithm 1): of all open slots the one that is most likely to be tested is
    filled next, until `budget` nodes are drafted.

    A slot is worth the probability that the verifier reaches it, if a drafted token is accepted with its own
    probability. It is chosen before its token is drawn, so the draft does not change the target's
    distribution. At temperature 0 a slot takes the most likely token that is left.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        deepest, offers = lane.tree.depths[lane.tip] + max_levels, {}  # node -> what comes into its slots
        slots = [(-1.0, 0, lane.tip)] if max_levels else []  # (-value, age, parent)
        while slots and len(draft.nodes) < budget:
            value, _, parent = heapq.heappop(slots)
            if parent not in offers:
                offers[parent] = offered(lane, draft, parent, guess([parent]), budget, fill)
            if (offer := next(offers[parent], None)) is None:
                continue
            node, worth = filled(lane, draft, parent, offer, value=-value, deepest=deepest, fill=fill)
            age = 2 * len(draft.nodes)
            if "beside" in worth:
                heapq.heappush(slots, (-worth["beside"], age, parent))
            if "below" in worth:
                heapq.heappush(slots, (-worth["below"], age + 1, node))

    return Shape(
        grow,
        fill,
        "tree of the best slots",
        "Of all open slots the one that is most likely to be tested gets the next token, which takes a "
        "forward per slot instead.",
    )


def slots_above(threshold: float, max_nodes: int, temperature: float) -> Shape:
    """DySpec (Xiong et al. 2024), grown by a threshold: level by level, every slot that is worth at least
    `threshold`, until `max_nodes` nodes are drafted; one forward for each level, not one for each node.

    With the value of the last slot that `best_slots` fills as the threshold, these are the same slots.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        deepest = lane.tree.depths[lane.tip] + max_levels
        level = {lane.tip: 1.0} if max_levels else {}  # what the first slot below a node is worth
        while level and len(draft.nodes) < max_nodes:
            scores, below = guess(list(level)), {}  # [level, V]
            for row, (parent, value) in enumerate(level.items()):
                offers = offered(lane, draft, parent, scores[row : row + 1], max_nodes, fill)
                while value >= threshold and len(draft.nodes) < max_nodes and (offer := next(offers, None)):
                    node, worth = filled(lane, draft, parent, offer, value, deepest, fill)
                    if worth.get("below", 0.0) >= threshold:
                        below[node] = worth["below"]
                    value = worth.get("beside", 0.0)
            level = below

    return Shape(
        grow,
        fill,
        "tree of all good slots",
        f"Every open slot that is reached with probability {threshold:.3g} or more gets a token, one "
        "forward per level.",
    )


def filled(
    lane: Lane, draft: Draft, parent: int, offer: Offer, value: float, deepest: int, fill: str
) -> tuple[int, dict[str, float]]:
    """Drafts a token into the next slot below `parent`, which is worth `value`. Returns the new node and the
    values of the slots that it opens, `beside` it and `below` it (none below `deepest`, none after the end).
    """
    token, probability, logprob = offer
    node = draft.propose(lane, parent, token, logprob, source="draft", fill=fill)
    worth = {}
    if probability < 1.0:
        worth["beside"] = value * (1.0 - probability)
    if token not in lane.eos and lane.tree.depths[node] < deepest:
        worth["below"] = value * probability
    lane.record_rank(node, ScoreName.SLOT, value, **worth)
    return node, worth


def offered(
    lane: Lane, draft: Draft, parent: int, scores: torch.Tensor, limit: int, fill: str
) -> Iterator[Offer]:
    """The tokens for the slots below `parent`, in order: the most likely ones of scores [1, V], or draws from
    their distribution.
    """
    return (
        likeliest_first(scores[0], limit)
        if fill == FIXED
        else drawn_without_replacement(lane, draft, parent, scores)
    )


def likeliest_first(scores: torch.Tensor, limit: int) -> Iterator[Offer]:
    """The tokens of scores [V] from the most likely on, at most `limit`. Usually few are needed, so few are
    ranked at first.
    """
    logprobs, left, done = scores.log_softmax(-1), 1.0, 0
    for count in (min(FIRST, limit, len(scores)), min(limit, len(scores))):
        best = logprobs.topk(count)
        offers = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        for token, logprob in islice(offers, done, None):
            if (p := math.exp(logprob)) <= 0.0 or left <= 0.0:
                return
            yield token, min(1.0, p / left), logprob
            left -= p
        done = count


def drawn_without_replacement(lane: Lane, draft: Draft, parent: int, scores: torch.Tensor) -> Iterator[Offer]:
    """Tokens below `parent`, each drawn from what earlier ones left of the distribution of scores [1, V]."""
    draft.q[parent] = q = left = distributions(lane, scores)[0]
    root, depth = lane.tree.depths[draft.root], lane.tree.depths[parent] + 1
    while bool((left > 0.0).any()):
        token = lane.chooser.categorical(left, ("draft", root, depth, len(draft.nodes) + 1)).value
        yield token, float(left[token]), math.log(float(q[token]))
        left = without(left, token)


def best_paths(count: int, depth: int, delta: float) -> Shape:
    """OPT-Tree (Wang et al. 2024, algorithm 1): the `count` paths of the largest value, at most `depth` deep.

    Level by level the `count` best candidates are found, until the sum of the `count` largest values of all
    levels grows by no more than `delta`; the others are pruned. Nothing is random. A node that `count` others
    exceed in value is not drafted: it would be pruned.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        value, level = {lane.tip: 0.0}, [lane.tip]  # values are logarithms
        best, min_worth = [], -math.inf  # the largest so far, and what a further one must exceed
        for _ in range(min(depth, max_levels)):
            offers = [o for o in best_children(level, guess(level), count, value) if o[0] > min_worth]
            ranked = sorted([*best, *(offer[0] for offer in offers)], reverse=True)[:count]
            min_worth = ranked[-1] if len(ranked) == count else -math.inf
            gain = sum(map(math.exp, ranked)) - sum(map(math.exp, best))
            best, born = ranked, []
            for total, parent, token in offers:
                if total < min_worth:
                    break
                logprob = total - value[parent]
                born.append(draft.propose(lane, parent, token, logprob, source="draft", fill=FIXED))
                value[born[-1]] = total
            if born:
                lane.record_measure(born[0], ScoreName.GAIN, gain, limit=delta)
            level = open_ends(lane, born)
            if gain <= delta or not level:
                break
        keep(lane, draft, value, count)

    return Shape(
        grow,
        FIXED,
        "tree of the best paths",
        f"The {count} most likely nodes are kept, on as many levels as pay for their forwards.",
    )


def best_children(
    level: list[int], scores: torch.Tensor, count: int, value: dict[int, float]
) -> list[tuple[float, int, int]]:
    """(value, parent, token) of the `count` children of a level with the largest values, the largest first;
    fewer where the others have probability 0. scores [level, V]: the source's; values are logarithms.
    """
    above = torch.tensor([[value[n]] for n in level], device=scores.device)
    values, places = largest(scores.float().log_softmax(-1).add_(above).view(1, -1), count)
    size = scores.shape[-1]
    return [
        (total, level[at // size], at % size)
        for total, at in zip(values[0].tolist(), places[0].tolist(), strict=True)
        if total > -math.inf
    ]


def keep(lane: Lane, draft: Draft, value: dict[int, float], count: int) -> None:
    """Prunes all but the `count` nodes of the largest value; a child is never worth more than its parent, so
    what is left is a tree.
    """
    order = sorted(draft.nodes, key=lambda n: (-value[n], lane.tree.depths[n], n))
    lost = set(order[count:])
    if lost:
        why = f"More likely paths take the {count} nodes of the tree."
        draft.prune(lane, [n for n in draft.nodes if n in lost], why)


def expand_and_rerank(top: int, depth: int, count: int) -> Shape:
    """EAGLE-2's dynamic tree (Li et al. 2024, section 4): on each level the `top` best nodes are expanded by
    `top` children each; then the `count` best candidates of all levels are the draft. Nothing is random.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        value, level = {lane.tip: 1.0}, [lane.tip]
        for _ in range(min(depth, max_levels)):
            born = likeliest(lane, draft, level, guess(level), [top] * len(level))
            for node in born:
                value[node] = value[lane.tree.parents[node]] * draft.probability[node]
            level = sorted(open_ends(lane, born), key=lambda n: (-value[n], n))[:top]
            if not level:
                break
        keep(lane, draft, value, count)

    return Shape(
        grow,
        FIXED,
        "expanded and reranked tree",
        f"On each level the best {top} nodes are expanded, and of all candidates the best {count} are kept.",
    )
