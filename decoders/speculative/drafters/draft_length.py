"""Policies for the length of a drafted chain.

A length policy may use all that is known before a token is drawn, earlier tokens included; the text then
keeps the target's distribution. A policy that drops a drawn token after looking at it changes the
distribution, and declares this as `sees_token`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from decoders.lane import Lane
from decoders.speculative.draft_verify_loop import distributions
from decoders.speculative.drafters.fixed_trees import SAYS, Guess, likeliest, sampled
from decoders.speculative.interfaces import FIXED, SAMPLED, Draft, Seen, Shape, Verification


@dataclass(frozen=True)
class Length:
    """`max_tokens(lane)`: the maximum for the coming round. `enough(lane, draft, nodes)`: whether to stop
    after the tokens drafted so far, all of which are submitted; the source has read all of them but the
    newest. `min_probability`: a token less likely than this is dropped, and the chain ends. `observe(drafted,
    accepted)` is called after each round.
    """

    max_tokens: Callable[[Lane], int]
    says: str
    enough: Callable[[Lane, Draft, list[int]], bool] = lambda lane, draft, nodes: False
    min_probability: float = 0.0
    observe: Callable[[int, int], None] = lambda drafted, accepted: None


def chain(length: Length, temperature: float) -> Shape:
    """A chain whose length a policy decides."""
    fill = FIXED if temperature == 0.0 else SAMPLED

    def grow(lane: Lane, draft: Draft, guess: Guess, max_levels: int) -> None:
        node, nodes = lane.tip, []
        for _ in range(min(max_levels, length.max_tokens(lane))):
            scores = guess([node])  # [1, V]
            if fill == FIXED:
                (node,) = likeliest(lane, draft, [node], scores, [1])
            else:
                (node,) = sampled(lane, draft, [node], distributions(lane, scores), [1], fill)
            if draft.probability[node] < length.min_probability:
                draft.prune(lane, [node], "The draft gave it too low a probability: it is not submitted.")
                break
            nodes.append(node)
            if lane.tree.tokens[node] in lane.eos or length.enough(lane, draft, nodes):
                break

    def observe(lane: Lane, draft: Draft, verification: Verification, seen: Seen) -> None:
        if draft.nodes:
            length.observe(len(draft.nodes), len(verification.path))

    says = f"It drafts {SAYS[fill]}. {length.says}"
    sees_token = length.min_probability > 0.0
    return Shape(grow, fill, "chain", says, sees_token=sees_token, observe=observe, is_chain=True)


def fixed(count: int) -> Length:
    """Always `count` guesses."""
    return Length(lambda lane: count, f"Each round drafts {count} tokens.")


def plus_two_minus_one(start: int) -> Length:
    """Two more after a round that accepted all, else one less: transformers' schedule "heuristic"."""
    now = [start]

    def observe(drafted: int, accepted: int) -> None:
        now[0] = now[0] + 2 if accepted == drafted else max(1, now[0] - 1)

    says = "The next draft is two tokens longer if all were accepted, else one shorter."
    return Length(lambda lane: now[0], says, observe=observe)


def batch_heuristic(start: int = 7, step: int = 2, divisor: int = 10, limit: int = 32) -> Length:
    """BASS (Qian et al. 2024) for one text: `step` tokens more after a round that accepted all. Otherwise a
    share fewer, and one fewer still if the round before also shortened the draft, but never fewer than were
    accepted.
    """
    now, shortened = [start], [0]

    def observe(drafted: int, accepted: int) -> None:
        if accepted >= now[0]:
            now[0], shortened[0] = min(now[0] + step, limit), 0
            return
        now[0] = max(1, accepted, now[0] - math.ceil(now[0] / divisor) - shortened[0])
        shortened[0] = 1

    says = (
        "The next draft is longer if a text accepted all of it; otherwise it is shorter, and shrinks "
        "faster from the second time on."
    )
    return Length(lambda lane: now[0], says, observe=observe)


def confident(threshold: float, max_tokens: int) -> Length:
    """Stops after a token whose probability under the draft is below `threshold`; the token is submitted.
    This is transformers' assistant_confidence_threshold.
    """
    return Length(
        lambda lane: max_tokens,
        f"It stops after a token with a probability below {threshold:g}, which the target still tests.",
        enough=lambda lane, draft, nodes: draft.probability[nodes[-1]] < threshold,
    )


def cut_before(threshold: float, max_tokens: int) -> Length:
    """Stops before a token whose probability under the draft is below `threshold`: the token is dropped."""
    return Length(
        lambda lane: max_tokens,
        f"It discards a token with a probability below {threshold:g} and stops.",
        min_probability=threshold,
    )
