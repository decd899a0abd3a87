"""The acceptance report of traces that are there already, such as those that a server has recorded."""

import math
from pathlib import Path

from decoders.refusal import Refusal
from decoders.trace.events import Commit, Distribution
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace, load
from visualizers.analysis.acceptance_report import Measured, Text, acceptance_report

MOST = 1000  # traces in a report
ENDINGS = ("*.json", "*.json.gz")


def report(place: Path) -> dict:
    """The `acceptance_report` of a trace file, or of the newest traces in a folder that drafted something.

    Raises Refusal with one sentence if there are none, or if they are of several targets.
    """
    if not place.exists():
        raise Refusal(f"There is no file or folder {str(place)!r}; name the traces that were recorded.")
    paths = [place] if place.is_file() else sorted(p for ending in ENDINGS for p in place.glob(ending))
    traces = [trace for trace in map(load, paths[-MOST:]) if trace.costs.proposed]
    if not traces:
        raise Refusal(f"No trace in {str(place)!r} has drafted anything; record a server that drafts.")
    targets = sorted({trace.models.get("target", "?") for trace in traces})
    if len(targets) > 1:
        raise Refusal(
            f"These traces are of several targets, {', '.join(targets)}; put each in its own folder."
        )
    name = " + ".join(sorted({trace.models.get("draft", trace.title) for trace in traces}))
    greedy = all(trace.parameters.get("temperature", 0.0) == 0.0 for trace in traces)
    texts = [text_of(trace) for trace in traces]
    return acceptance_report(targets[0], 0.0 if greedy else 1.0, texts, [Measured(name, traces)])


def text_of(trace: Trace) -> Text:
    """What a trace wrote, with the target's entropy in bits and its highest probability at each token; 0
    where it does not hold them.
    """
    index = trace.index()
    offers = {
        event.node: event for step in trace.steps for event in step.of(Distribution) if event.view == "target"
    }
    path = [node for step in trace.steps for commit in step.of(Commit) for node in commit.nodes]
    parents = [index.parent[node] for node in path]
    tokens = [visible(trace.vocabulary.get(index.token[node], b"")) for node in path]
    entropy = [offers[at].entropy / math.log(2) if at in offers else 0.0 for at in parents]
    best = [math.exp(offers[at].top[0][1]) if at in offers and offers[at].top else 0.0 for at in parents]
    return Text(trace.text(trace.prompt), None, tokens, entropy, best)
