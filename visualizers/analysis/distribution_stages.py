"""The candidates at a position, and what each processor left of them: folds over Distribution events that the
inspector and the sampler's picture share.
"""

import math

from decoders.logits import processor_order
from decoders.trace.events import Distribution, Propose, Verdict

TITLES = {"target": "model", "draft": "draft", "combined": "combined"}
Offers = dict[tuple[str, str | None], Distribution]  # (view, level) -> the distribution


def in_order(offers: Offers) -> list[Distribution]:
    """The model's own distribution, those combined with it and the combination, the one after each recorded
    processor, the one after all, the draft's.
    """
    levels = [key for key in offers if key[0] == "processed" and key[1] is not None]
    weighed = [*(key for key in offers if key[0] == "unwanted"), ("combined", None)]
    keys = [("target", None), *weighed, *levels, ("processed", None), ("draft", None)]
    return [offers[key] for key in keys if key in offers]


def removed(before: Distribution, after: Distribution) -> float | None:
    """The mass of `before` that a processor removed: what is left grew by 1 / (1 - removed). 0.0 if no token
    went, None if some did and no recorded token stayed.
    """
    if not (after.among or 0) < (before.among or 0):
        return 0.0
    old = {int(t): logprob for t, logprob in before.top}
    for token, logprob in after.top:
        if int(token) in old:
            return max(0.0, 1.0 - math.exp(old[int(token)] - logprob))
    return None


def is_gone(token: int, before: Distribution, after: Distribution) -> bool:
    """Whether a processor removed a token that `before` names: it is not among those left, if all are
    recorded, or a token that was less likely is among the most likely left, since processors that remove
    tokens keep the order of the others.
    """
    if not (after.among or 0) < (before.among or 0):
        return False
    left = {int(t) for t, _ in after.top}
    if token in left:
        return False
    old = {int(t): logprob for t, logprob in before.top}
    return after.among <= len(after.top) or any(old.get(t, math.inf) < old[token] for t in left)


def title(offer: Distribution, parameters: dict, each: bool) -> str:
    """The title of a distribution. `each`: whether one was recorded after every processor."""
    if offer.view in TITLES:
        return TITLES[offer.view]
    if offer.view == "unwanted":
        return offer.level or "unwanted"
    if offer.level is not None:
        return processor_order.title(offer.level, parameters) if offer.level in parameters else offer.level
    names = processor_order.stages(parameters)
    if not names:
        return "after the processors"
    return (
        processor_order.title(names[-1], parameters)
        if each or len(names) == 1
        else "after " + ", ".join(names)
    )


def best(offer: Distribution, token: int) -> bool:
    """Whether no token of a distribution was more likely than this one; ties count as best."""
    own = next((logprob for t, logprob in offer.top if int(t) == token), -math.inf)
    return own >= offer.top[0][1]


def tolerated(step, parameters: dict) -> set[int]:
    """The drafted nodes that passed in a step though the target would have written something else. Empty
    unless it takes the top-1 token (a temperature of 0): what is drawn need not be the best.
    """
    if parameters.get("temperature") != 0:
        return set()
    offers, born, result = {}, {}, set()
    for event in step.events:
        match event:
            case Distribution() if event.level is None and event.view in ("target", "processed"):
                offers[event.node] = (
                    event  # the processed distribution is recorded after the raw one, and replaces it
                )
            case Propose():
                born[event.node] = event
            case Verdict() if event.status == "accepted" and event.node in born:
                node = born[event.node]
                if node.parent in offers and not best(offers[node.parent], node.token):
                    result.add(event.node)
    return result
