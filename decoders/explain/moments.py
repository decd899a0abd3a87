"""Sentences of moments: what happened at a step, with its numbers."""

import math
from collections.abc import Callable

from decoders.trace import moments
from decoders.trace.costs import Costs
from decoders.trace.events import Propose
from decoders.trace.moments import Moment
from decoders.trace.node_index import NodeIndex
from decoders.trace.number_format import many, number
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace


def moment_sentences(trace: Trace) -> list[tuple[int, str]]:
    """The moments of a trace in order: its step, counted from 1, and its sentence."""
    nodes, costs = NodeIndex(trace.prompt), Costs()
    fold, made = moments.Moments(nodes), []

    def text(token: int) -> str:
        return visible(trace.vocabulary.get(token, b"?"))

    for step in trace.steps:
        for event in step.of(Propose):
            nodes.add(event)
        found = fold.feed(step, costs.add(step))
        made += [(step.index + 1, sentence(one, lambda node: text(nodes.token[node]), text)) for one in found]
    return made


def sentence(moment: Moment, node_text: Callable[[int], str], token_text: Callable[[int], str]) -> str:
    """One sentence. node_text, token_text: how a node's token and a token id read."""

    def word(token: int) -> str:
        return f"“{token_text(token)}”"

    match moment:
        case moments.LeadChange():
            return (
                f"Another text takes the lead; it leaves the old one at token {moment.position}: "
                f"{word(moment.new)} instead of {word(moment.old)}."
            )
        case moments.DeadEnd():
            why = f": {moment.why.removesuffix('.')}" if moment.why else ""
            return f"The search turns back at token {moment.position}, {word(moment.token)}{why}."
        case moments.Rejection():
            return rejection(moment, word, node_text)
        case moments.Remask():
            others = "" if moment.count == 1 else f" and {many(moment.count - 1, 'other')}"
            verb = "is" if moment.count == 1 else "are"
            return f"Token {moment.position}, {word(moment.token)}{others} {verb} undone."
        case moments.Jump():
            return f"{many(moment.count, 'token')} become final at once, more than in any iteration before."
        case moments.ConstraintBite():
            return (
                f"The constraint forbids the most likely token {word(moment.token)} (p {number(moment.p)}): "
                f"“{node_text(moment.node)}” is written instead."
            )
        case moments.ForcedEnd():
            spent = many(moment.spent, "token")
            return f"The budget is spent: after {spent} of reasoning its end is forced."
        case moments.Repetition():
            return (
                f"From token {moment.position} on, the text repeats what it wrote from token {moment.first} "
                "on."
            )
        case moments.EntropyPeak():
            bits = moment.entropy / math.log(2)
            return (
                f"The target is less certain than at any earlier token: {bits:.1f} bits of entropy at "
                f"“{node_text(moment.node)}”."
            )


def rejection(moment: moments.Rejection, word: Callable, node_text: Callable) -> str:
    """What was rejected, with what numbers, and what stands there instead."""
    known = [
        f"{name} {number(value)}"
        for name, value in (("p", moment.p), ("q", moment.q), ("u", moment.u))
        if value is not None
    ]
    caption = f"{word(moment.token)} is rejected" + (f" ({', '.join(known)})" if known else "")
    if moment.instead is not None:
        caption += f"; “{node_text(moment.instead)}” is written instead"
    if moment.discarded:
        verb = "is" if moment.discarded == 1 else "are"
        caption += f", and {many(moment.discarded, 'drafted token')} after it {verb} lost"
    return caption + "."
