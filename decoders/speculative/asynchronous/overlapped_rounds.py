"""Overlapped rounds: the draft model continues to write while the target verifies what it wrote before.

A window is the chain of guesses that waits after the newest token. After the window's sure part the draft
writes one or several sequences, whose first tokens are tested in the same round. The rest of the sequence
whose first token passes is the next window.
"""

from collections.abc import Callable, Iterator

from decoders.lane import Lane
from decoders.speculative.asynchronous.concurrent_forward import ConcurrentForward
from decoders.speculative.draft_verify_loop import distributions, judged
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import likeliest, open_ends, sampled
from decoders.speculative.interfaces import SAMPLED, Draft, Verifier

BEHIND = "It follows a token that was not accepted."
BESIDE = "It is in a sequence whose first token was not kept."
OVER = "The text ended before its turn."
# (draft, node to write below, what stands below it already, tokens of room) -> sequences, each of at most as
# many nodes
Write = Callable[[Draft, int, list[int], int], list[list[int]]]
Split = Callable[[Lane, Draft, list[int]], int]  # (lane, draft, window) -> how many of its nodes are sure


def all_of(lane: Lane, draft: Draft, window: list[int]) -> int:
    """Counts the whole window as sure."""
    return len(window)


def overlapped(
    lane: Lane,
    verifier: Verifier,
    write: Write,
    sure_part: Split = all_of,
    pre_verify: bool = True,
    post_verify: bool = True,
) -> Iterator[None]:
    """Rounds in which the target reads the newest token and the sure part of the window, in a thread of its
    own if the lane asks for that, while `write` continues after it.

    The sure part and the first tokens of the new sequences are tested. If all tests pass, the target draws no
    token of its own. Without `pre_verify` the target waits while the first window is written, and without
    `post_verify` the draft waits while a window is tested.
    """
    draft, window = Draft(lane.tip), []
    with ConcurrentForward(lane, lane.parameters["concurrent"]) as target:
        while lane.more:
            if not window and not pre_verify:
                window = [n for sequence in write(draft, lane.tip, [], lane.left) for n in sequence]
            mode, count = "Post" if window else "Pre", sure_part(lane, draft, window)
            sure, begun = window[:count], window[count:]
            nodes = [lane.tip, *open_ends(lane, sure)][: lane.left]
            answer = target.score(nodes)
            room = lane.left - len(sure) if post_verify or not window else 0
            ahead = [s for s in write(draft, (sure or [lane.tip])[-1], begun, room) if s]
            draft.nodes = [*sure, *(sequence[0] for sequence in ahead)]  # these are tested now
            new = sum(map(len, ahead)) - len(begun)
            lane.note(f"{mode}-verify: {tests(len(draft.nodes), new)}")
            verification = judged(lane, draft, verifier, nodes, answer())
            lane.drop([n for n in draft.nodes if n not in verification.path])
            window = []
            for first, *behind in ahead:
                if verification.token is None and lane.more and first == lane.tip:
                    window = behind
                else:
                    why = BEHIND if verification.token is not None else BESIDE if lane.more else OVER
                    forget(lane, behind, draft, why)
            draft = carried(draft, lane.tip, window)
            yield


def drafted_chain(lane: Lane, draft: Draft, end: int, count: int) -> list[int]:
    """Up to `count` nodes, one below the other, that the draft model writes below `end`."""
    nodes, level = [], [end] if end == lane.tip else open_ends(lane, [end])
    while level and len(nodes) < count:
        scores = DRAFT_MODEL.scores(lane, level)  # [1, V]
        lane.distribution(level, scores, view="draft")
        if lane.parameters["temperature"] == 0.0:
            born = likeliest(lane, draft, level, scores, [1])
        else:
            born = sampled(lane, draft, level, distributions(lane, scores), [1], SAMPLED)
        nodes += born
        level = open_ends(lane, born)
    return nodes


def carried(draft: Draft, tip: int, window: list[int]) -> Draft:
    """What the next round needs of `draft`: the text ends in `tip` now and `window` is yet to be tested."""
    children = {n: draft.children[n] for n in (tip, *window) if n in draft.children}
    q = {n: draft.q[n] for n in children if n in draft.q}
    return Draft(tip, list(window), children, q, probability={n: draft.probability[n] for n in window})


def forget(lane: Lane, nodes: list[int], draft: Draft, reason: str) -> None:
    """Drops drafted nodes that no test will reach."""
    for node in nodes:
        lane.verdict(node, "never reached", q=draft.probability.get(node), reason=reason)
    lane.drop(nodes)


def tests(tested: int, ahead: int) -> str:
    """What a round does, in a sentence."""
    plural = "s" if tested != 1 else ""
    return f"the target tests {tested} token{plural} while the draft writes {ahead} more."
