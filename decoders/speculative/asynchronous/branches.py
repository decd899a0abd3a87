"""Branches: several sequences below one node, each of the draft model's most likely tokens. Draws nothing."""

from decoders.lane import Lane
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import likeliest, open_ends
from decoders.speculative.interfaces import FIXED, Draft, Drafter, Pair


def ended(lane: Lane, node: int) -> bool:
    """Whether nothing may follow `node`."""
    return node != lane.tip and not open_ends(lane, [node])


def best_probabilities(lane: Lane, node: int, count: int) -> list[float]:
    """The draft's probabilities of its `count` most likely tokens after `node`, if it has as many."""
    probs = DRAFT_MODEL.scores(lane, [node])[0].double().softmax(-1)  # [V]
    return probs.topk(min(count, len(probs))).values.tolist()


def fork(lane: Lane, draft: Draft, end: int, begun: list[int], count: int) -> list[list[int]]:
    """`count` sequences below `end`, fewer where no more tokens are possible. The first is `begun`, if it has
    nodes; the others start with the most likely tokens other than its first.
    """
    scores = DRAFT_MODEL.scores(lane, [end])  # [1, V]
    if not begun:
        lane.distribution([end], scores, view="draft")
        return [[node] for node in likeliest(lane, draft, [end], scores, [count])]
    others = scores.clone()
    others[0, lane.tree.tokens[begun[0]]] = float("-inf")
    branches, logprobs = [begun], scores.log_softmax(-1)[0]
    for token in others[0].topk(min(count, others.shape[-1]) - 1).indices.tolist():
        if others[0, token] > float("-inf"):
            how = {"source": "draft", "fill": FIXED}
            branches.append([draft.propose(lane, end, token, float(logprobs[token]), **how)])
    return branches


def extend_sequences(lane: Lane, draft: Draft, sequences: list[list[int]], length: int) -> None:
    """Extends all sequences at once, one draft forward per level, until each has `length` nodes or ends."""
    while short := [s for s in sequences if len(s) < length and open_ends(lane, s[-1:])]:
        ends = [s[-1] for s in short]
        scores = DRAFT_MODEL.scores(lane, ends)  # [ends, V]
        lane.distribution(ends, scores, view="draft")
        for sequence, node in zip(short, likeliest(lane, draft, ends, scores, [1] * len(ends)), strict=True):
            sequence.append(node)


def endless_forks(parameters: dict) -> Pair:
    """Deterministic sequences that are continued without end; greedy match at temperature 0, else node
    sampling.
    """
    drafter = Drafter(
        propose=lambda lane: Draft(lane.tip),
        fill=FIXED,
        name="endless sequences from a draft model",
        says="A second, smaller model keeps drafting, in one sequence or several, while the target reads "
        "what "
        "it wrote before.",
        roles=("draft",),
    )
    return simplest(drafter, parameters["temperature"])
