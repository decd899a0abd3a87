"""What a trace knows of one node, for the inspector: what was on offer, what was judged, and why.

A fold over Propose, Verdict, Score and Distribution; nothing is computed that was not recorded. Knows no
strategy and no page.
"""

import math

from decoders.trace import Distribution, Propose, Score, Trace, Verdict
from visualizers.scene import visible

ROWS = 12  # tokens listed of what was on offer; the rest is one sum
PATH = 12  # tokens of the text before the node
VIEWS = {"target": "target", "processed": "after the processors", "draft": "draft"}


def inspect(trace: Trace, node: int) -> dict:
    """Facts of `node`: `token, path, born, source, logprob, verdicts, scores, offers, siblings`.

    `offers` hold one distribution a view, each row `{text, p, here}`, `here` marking the node's own token.
    Raises ValueError with one sentence if the trace has no such node.
    """
    nodes = trace.nodes()
    if node not in nodes:
        raise ValueError("This mark is no token of the trace; click on a token.")
    parent, token = nodes[node]

    def word(token_id: int) -> str:
        return visible(trace.vocabulary.get(token_id, b"?"))

    found: dict = {
        "token": word(token),
        "born": None,
        "source": "prompt",
        "verdicts": [],
        "scores": [],
        "siblings": [],
    }
    offers: dict[str, Distribution] = {}
    children: dict[int, dict] = {}
    for step in trace.steps:
        for event in step.events:
            match event:
                case Propose() if event.node == node:
                    found |= {"born": step.index + 1, "source": event.source, "logprob": event.logprob}
                case Propose() if event.parent == parent:
                    children[event.node] = {"text": word(event.token), "status": None}
                case Verdict() if event.node == node:
                    found["verdicts"].append({"step": step.index + 1, **judged(event)})
                case Verdict() if event.node in children:
                    children[event.node] |= judged(event)
                case Score() if event.node == node:
                    found["scores"].append(
                        {"step": step.index + 1, "name": event.name, "total": event.total, "rank": event.rank}
                    )
                case Distribution() if event.node == parent and event.level is None:
                    offers[event.view] = event
    found["path"] = [word(nodes[n][1]) for n in path(nodes, parent)[-PATH:]]
    found["siblings"] = list(children.values())[:ROWS]
    found["offers"] = [offer(event, token, word) for _, event in sorted(offers.items(), key=order)]
    return found


def path(nodes: dict[int, tuple[int, int]], node: int) -> list[int]:
    """The nodes from the root to `node`."""
    found = []
    while node in nodes:
        found.append(node)
        node = nodes[node][0]
    return found[::-1]


def judged(event: Verdict) -> dict:
    """A verdict's status, numbers and reason."""
    return {name: getattr(event, name) for name in ("status", "p", "q", "u", "reason")}


def order(item: tuple[str, Distribution]) -> int:
    """Target first, then what the processors left, then the draft."""
    return list(VIEWS).index(item[0]) if item[0] in VIEWS else len(VIEWS)


def offer(event: Distribution, token: int, word) -> dict:
    """One distribution: its likeliest tokens, the node's own if recorded, and the mass of all others."""
    rows = [(int(t), math.exp(logprob)) for t, logprob in event.top]
    kept = [row for i, row in enumerate(rows) if i < ROWS or row[0] == token]
    left = event.rest + sum(p for row in rows if row not in kept for p in row[1:])
    return {
        "view": VIEWS.get(event.view, event.view),
        "entropy": event.entropy,
        "rest": left,
        "rows": [{"text": word(t), "p": p, "here": t == token} for t, p in kept],
    }
