"""Trie search: classification by decoding under a trie of labels.

Buchner et al. (2024), Prompt Tuned Embedding Classification, whose linear head replaces such a search.
constraints/labels.py decides which labels may follow.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from decoders.constraints.automaton import OfBytes
from decoders.constraints.kinds import vocabulary_of
from decoders.constraints.labels import SEPARATOR, Labels, labels_of
from decoders.constraints.settings import BIAS
from decoders.constraints.spelling import spelt
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, free_text
from decoders.refusal import Refusal
from decoders.registry import strategy
from decoders.sampling.greedy import greedy
from decoders.strategy import Part
from decoders.trace.number_format import many
from decoders.trace.scores import ScoreName

ANSWERS = {
    "several labels": "Always takes the most likely token that continues some label; each label once.",
    "one label": "Always takes the most likely token that continues some label; the first complete one is "
    "the answer.",
    "one label, exact": "Every label is scored by its whole probability, all in one forward; the best is "
    "the answer.",
}


def unusable(parameters: dict) -> str | None:
    """The message to show if the labels are ambiguous."""
    if parameters["labels"].strip():
        try:
            Labels(labels_of(parameters["labels"]), parameters["separator"])
        except Refusal as problem:
            return str(problem)
    return None


@strategy(
    name="trie_search",
    title="Trie search",
    family="sampling",
    parameters=(
        free_text("labels", "", "The labels, one per line or between |; empty: any text."),
        choice("answer", "several labels", "What the search looks for.", ANSWERS),
        free_text("separator", SEPARATOR, "What separates two labels; it must not occur in any of them."),
        *(replace(parameter, group="") for parameter in BIAS),  # its only parameter of a constraint
    ),
    papers=("prompt-tuned-embedding-classification-for-multi-label",),
    view="label_trie",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [Part("answer", parameters["answer"], ANSWERS[parameters["answer"]])],
    together=unusable,
)
def trie_search(lane: Lane) -> Iterator[None]:
    """Writes labels of a given list only, each at most once.

    1. The labels form a trie. A token is allowed if it continues some unused label; the most likely allowed
       one is taken.
    2. After a label comes the separator, if another label is left, or the end of the text. A label that is
       followed by its separator is used up and not written again. If a used label begins another one, as red
       begins red car, the longer one stays available.
    3. A single label has no separator. Token by token the search takes the most likely next token and cannot
       go back: a label whose first token is likely wins, even if its other tokens are unlikely. "One label,
       exact" compares `sum log p(x_t | x_<t) + log p(END)` of whole labels, at the cost of one forward over
       the trie.

    For lists with other strategies there is the constraint `labels`, which keeps a list per beam. The paper's
    own proposal drops the search: a tuned prompt and a linear head give each label a probability in one
    forward. The experiment label-head compares the two.
    """
    typed, answer = lane.parameters["labels"], lane.parameters["answer"]
    if not typed.strip():
        lane.note("There are no labels, so this is greedy decoding; type labels to classify.")
        yield from greedy(lane)
        return
    labels, target = labels_of(typed), lane.models["target"]
    automaton = Labels(labels, lane.parameters["separator"], 0 if answer == "several labels" else 1)
    constraint = OfBytes(automaton, vocabulary_of(target, lane.eos))
    lane.constrain(constraint)
    if answer == "one label, exact":
        exact(lane, labels)
    else:
        yield from greedy(lane)


def exact(lane: Lane, labels: list[str]) -> None:
    """Scores all labels in one forward over their trie, and commits the most likely one."""
    below: dict[tuple[int, int], int] = {}
    last: dict[str, int] = {}  # label -> the node of its last token
    target, before = lane.models["target"], lane.models["target"].bytes_of(lane.tree.tokens[lane.tip])
    for label in labels:
        node = lane.tip
        for token in spelt(target, lane.eos, before, label):
            if (node, token) not in below:
                below[node, token] = lane.tree.add(node, token)
            node = below[node, token]
        last[label] = node
    order = [lane.tip, *below.values()]
    logits = lane.score(order)  # [1 + N, V]
    logprobs = log_softmax(logits)
    rows, sums, own = dict(zip(order, logprobs, strict=True)), {lane.tip: 0.0}, {}
    for slot, ((above, token), node) in enumerate(below.items()):
        own[node] = float(rows[above][token])
        sums[node] = sums[above] + own[node]
        lane.propose(above, token, own[node] if math.isfinite(own[node]) else None, slot=slot, node=node)
    lane.distribution(order, logits)
    ends = {
        label: max(((float(rows[node][token]), token) for token in sorted(lane.eos)), default=(0.0, None))
        for label, node in last.items()
    }
    totals = {label: sums[node] + ends[label][0] for label, node in last.items()}
    ranked = sorted(labels, key=lambda label: -totals[label])
    for rank, label in enumerate(ranked, 1):
        if math.isfinite(totals[label]):
            parts = {"label": sums[last[label]], "end": ends[label][0]}
            lane.record_rank(last[label], ScoreName.LABEL, totals[label], rank, **parts)
    commit_best_label(lane, last, own, ends, ranked, totals)


def commit_best_label(lane: Lane, last: dict, own: dict, ends: dict, ranked: list[str], totals: dict) -> None:
    """Commits the best label with its end, and prunes the others."""
    best = ranked[0]
    possible = math.isfinite(totals[best])
    path = lane.tree.path(last[best], above=lane.tip) if possible else []
    inner = {lane.tree.parents[node] for node in own}
    for rank, label in enumerate(ranked, 1):
        if last[label] not in path and last[label] not in inner:
            reason = f"label {rank} of {len(ranked)}, {totals[label]:.3f} nats"
            lane.verdict(last[label], "pruned", reason=reason)
    lane.note(f"{many(len(ranked), 'label')} scored by {many(len(own), 'token')} in one forward.")
    if not possible:
        lane.ended_by = "The model gives every label probability 0; choose other labels."
        return
    logprobs = [own[node] for node in path]
    if ends[best][1] is not None:
        path.append(lane.propose(last[best], ends[best][1], ends[best][0]))
        logprobs.append(ends[best][0])
    lane.commit(path, logprobs)
