"""Shapes that grow where the source is confident: DySpec's, OPT-Tree's and EAGLE-2's. Know no model.

The value of a node is the product of the source's probabilities on its path: its guess at how likely the
verifier is to come there.
"""

import heapq
import math

import torch

from decoders.lane import Lane
from decoders.speculative.parts import FIXED, WITHOUT_REPLACEMENT, Draft, Shape
from decoders.speculative.recursive_rejection import without
from decoders.speculative.rounds import law
from decoders.speculative.shapes import Guess, likeliest, open_ends


def best_slots(budget: int, temperature: float) -> Shape:
    """DySpec (Xiong et al. 2024, algorithm 1): of all open slots the one that is likeliest to be tested is
    filled next, until `budget` nodes are drafted.

    A slot is worth the chance that the verifier comes to it, if a drafted token is accepted with its own
    probability. It is chosen before its token is drawn, so the draft does not bend the target's law. At
    temperature 0 a slot takes the likeliest token that is left.
    """
    fill = FIXED if temperature == 0.0 else WITHOUT_REPLACEMENT

    def grow(lane: Lane, draft: Draft, guess: Guess, most: int) -> None:
        deepest, laws = lane.tree.depths[lane.tip] + most, {}  # node -> the source's law [V] after it
        slots = [(-1.0, 0, lane.tip, None)]  # (-value, age, parent, what is left of its law or None)
        while slots and len(draft.nodes) < budget:
            value, _, parent, left = heapq.heappop(slots)
            if lane.tree.depths[parent] >= deepest:
                continue
            if left is None:
                scores = guess([parent])
                laws[parent] = left = (scores.double().softmax(-1) if fill == FIXED else law(lane, scores))[0]
            age, depth = len(draft.nodes) + 1, lane.tree.depths[parent] + 1
            if fill == FIXED:
                token = int(left.argmax())
            else:
                draft.q[parent] = laws[parent]
                token = lane.chooser.categorical(left, ("draft", depth, age)).value
            chance, logprob = float(left[token]), math.log(float(laws[parent][token]))
            node = draft.propose(lane, parent, token, logprob, source="draft", fill=fill)
            if chance < 1.0:
                heapq.heappush(slots, (value * (1.0 - chance), 2 * age, parent, without(left, token)))
            if token not in lane.eos:
                heapq.heappush(slots, (value * chance, 2 * age + 1, node, None))

    return Shape(
        grow, fill, "tree of the best slots",
        "Of all open places the one that is likeliest to be tested gets the next token, one forward for each "
        "new place.",
    )  # fmt: skip


def best_paths(count: int, depth: int, delta: float) -> Shape:
    """OPT-Tree (Wang et al. 2024, algorithm 1): the `count` paths of the largest value, at most `depth` deep.

    Level by level the `count` best candidates are written down, until the sum of the `count` largest values
    of all levels grows by no more than `delta`; the others are pruned. No chance is involved.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, most: int) -> None:
        value, level, expected = {lane.tip: 1.0}, [lane.tip], 0.0
        for _ in range(min(depth, most)):
            level = best_children(lane, draft, level, guess(level), count, value)
            best = sorted((value[n] for n in draft.nodes), reverse=True)[:count]
            grown, expected = sum(best) - expected, sum(best)
            level = open_ends(lane, level)
            if grown <= delta or not level:
                break
        keep(lane, draft, value, count)

    return Shape(
        grow, FIXED, "tree of the best paths",
        f"The {count} likeliest paths are kept, as deep as it is worth a forward.",
    )  # fmt: skip


def best_children(
    lane: Lane, draft: Draft, level: list[int], scores: torch.Tensor, count: int, value: dict[int, float]
) -> list[int]:
    """Writes down the `count` children of the largest value of all nodes of a level; returns them."""
    logprobs = scores.double().log_softmax(-1)  # [level, V]
    above = torch.tensor([math.log(value[n]) for n in level], dtype=torch.float64)[:, None]
    top = (logprobs + above.to(logprobs.device)).flatten().topk(min(count, logprobs.numel()))
    born = []
    for total, place in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        if total == -math.inf:
            break
        row, token = divmod(place, logprobs.shape[-1])
        node = draft.propose(lane, level[row], token, float(logprobs[row, token]), source="draft", fill=FIXED)
        value[node] = math.exp(total)
        born.append(node)
    return born


def keep(lane: Lane, draft: Draft, value: dict[int, float], count: int) -> None:
    """Prunes all but the `count` nodes of the largest value; a child is never worth more than its parent, so
    what is left is a tree.
    """
    order = sorted(draft.nodes, key=lambda n: (-value[n], lane.tree.depths[n], n))
    lost = set(order[count:])
    if lost:
        why = f"Others of the {count} places of the tree go to likelier paths."
        draft.prune(lane, [n for n in draft.nodes if n in lost], why)


def expand_and_rerank(top: int, depth: int, count: int) -> Shape:
    """EAGLE-2's dynamic tree (Li et al. 2024, section 4): on each level the `top` best nodes are expanded by
    `top` children each; then the `count` best candidates of all levels are the draft. No chance is involved.
    """

    def grow(lane: Lane, draft: Draft, guess: Guess, most: int) -> None:
        value, level = {lane.tip: 1.0}, [lane.tip]
        for _ in range(min(depth, most)):
            born = likeliest(lane, draft, level, guess(level), [top] * len(level))
            for node in born:
                value[node] = value[lane.tree.parents[node]] * draft.chance[node]
            level = sorted(open_ends(lane, born), key=lambda n: (-value[n], n))[:top]
            if not level:
                break
        keep(lane, draft, value, count)

    return Shape(
        grow, FIXED, "tree that is expanded and ranked again",
        f"On each level the best {top} are expanded, and of all candidates the best {count} are kept.",
    )  # fmt: skip
