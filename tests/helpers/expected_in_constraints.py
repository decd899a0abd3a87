"""The point of each example of a constraint: `SHOWS` maps its title to a check of traces."""

import math
import re

from decoders.constraints.kinds import constraint_of
from decoders.models import load
from decoders.trace.events import Distribution, Propose, Verdict
from decoders.trace.scores import Measure, Rank, Table
from decoders.trace.trace import Trace
from tests.helpers.trace_readings import forwards, total


def kept(trace: Trace) -> float:
    """The mean of log10 of the mass that the constraint kept, over the tokens of the text."""
    path, parent = set(), {e.node: e.parent for s in trace.steps for e in s.of(Propose)}
    for step in trace.steps:
        for event in step.events:
            if type(event).__name__ == "Commit":
                path |= {parent[node] for node in event.nodes}
    found = [
        e.kept for s in trace.steps for e in s.of(Distribution) if e.view == "forbidden" and e.node in path
    ]
    return sum(found) / len(found) / math.log(10)


def obeys(trace: Trace, constrained: Trace | None = None) -> bool:
    """Whether a complete text is allowed by the constraint (its own, or another lane's)."""
    target, tokens = load("llama-tiny", "cpu"), trace.output()
    if not tokens or tokens[-1] not in target.eos:
        return False
    constraint = constraint_of((constrained or trace).parameters, target, target.eos)
    state = constraint.start()
    for token in tokens[:-1]:
        if (state := constraint.advance(state, token)) is None:
            return False
    return constraint.may_end(state)


def only_the_first_obeys(first: Trace, second: Trace) -> None:
    assert obeys(first) and not obeys(second, first)


def spelling(spaced: Trace, compact: Trace) -> None:
    assert obeys(spaced) and obeys(compact)
    assert '"age": 98' in spaced.text() and '"age":98' not in compact.text()
    assert kept(spaced) > -0.01 and kept(compact) < -1


def drafts_obey(drafted: Trace, greedy: Trace) -> None:
    assert obeys(drafted) and drafted.output() == greedy.output()
    assert forwards(drafted) < forwards(greedy) / 2
    removed = {e.node: e for s in drafted.steps for e in s.of(Distribution) if e.view == "forbidden"}
    assert removed and any(s.of(Verdict) for s in drafted.steps)


def led_away(date: Trace, story: Trace) -> None:
    only_the_first_obeys(date, story)
    assert kept(date) < -0.5


def dragon(greedy: Trace, beams: Trace) -> None:
    assert obeys(greedy) and obeys(beams) and "dragon" in greedy.text()
    mean = [total(t) / len(t.output()) for t in (greedy, beams)]
    assert mean[1] > mean[0]


def few_are_checked(alone: Trace, six: Trace, sampled: Trace) -> None:
    for trace in (alone, six, sampled):
        assert obeys(trace)
    for trace in (alone, six):
        draws = sum(len(s.of(Propose)) for s in trace.steps)
        read = trace.costs.totals()["target_tokens"]
        assert draws < 10 * read
    weights = [e for s in six.steps for e in s.of(Rank) if e.name == "share of weight"]
    assert sum(e.total for e in weights) > 0.99


def whole_labels_differ(local: Trace, exact: Trace) -> None:
    assert local.text().startswith(" a ") and total(exact) > total(local)
    assert forwards(exact) == 1 < forwards(local)


def members_exist(monitored: Trace, greedy: Trace) -> None:
    members = ("name", "nickname", "age", "greet")
    assert monitored.text().startswith(members) and not greedy.text().startswith(members)


def quoted(one: Trace, two: Trace, greedy: Trace) -> None:
    document = b"".join(one.vocabulary[t] for t in one.prompt).decode().split("\n\n")[0]
    for trace, count in ((one, 1), (two, 2)):
        passages = trace.text().removesuffix("<|endoftext|>").strip().split("\n")
        assert len(passages) <= count and all(passage in document for passage in passages)
    assert forwards(one) <= 3 and greedy.text().removesuffix("<|endoftext|>").strip() not in document.split(
        ". "
    )


def forty_texts_learn(aligned: Trace, masked: Trace) -> None:
    assert obeys(aligned) and obeys(masked) and total(aligned) > total(masked) + 10
    bounds = [e for s in aligned.steps for e in s.of(Measure) if e.name == "allowed future"]
    assert min(e.total for e in bounds) < 1e-3


def another_hero(without: Trace, greedy: Trace) -> None:
    unwanted = re.compile(r"\b(girl|boy|man|times?|timed|timing|Lily|Tom|named)\b", re.IGNORECASE)
    assert unwanted.search(greedy.text()) and not unwanted.search(without.text())


def each_once(*traces: Trace) -> None:
    for trace in traces:
        labels = trace.text().removesuffix("<|endoftext|>").strip().split(", ")
        assert len(labels) > 1 and len(set(labels)) == len(labels)
        assert set(labels) <= {"red", "blue", "green", "light blue", "red and blue"}


def a_mask_bends(masked: Trace, weighed: Trace) -> None:
    """The first word of the masked text is far too probable; texts that are drawn by weight begin
    otherwise.
    """
    first = next(e for step in masked.steps for e in step.of(Table) if e.name == "bias")
    word = masked.output()[0]
    under_mask, of_model = first.by_number[word]
    assert first.level == "exact" and under_mask > 5 * of_model
    assert weighed.output()[0] != word


SHOWS = {
    "A record as JSON": spelling,
    "A record as YAML": only_the_first_obeys,
    "A table as CSV": drafts_obey,
    "A date": led_away,
    "A sum in columns": only_the_first_obeys,
    "A sum step by step": drafts_obey,
    "Rows of a sudoku": only_the_first_obeys,
    "A Latin square": only_the_first_obeys,
    "One of four answers": only_the_first_obeys,
    "What a mask makes too likely": a_mask_bends,
    "Calls of a small API": led_away,
    "A function body": only_the_first_obeys,
    "A sentence with a dragon": dragon,
    "A story without a girl": another_hero,
    "Each label once": each_once,
    "What forty texts learn": forty_texts_learn,
    "Checked only when drawn": few_are_checked,
    "A label of seven": whole_labels_differ,
    "Members that exist": members_exist,
    "Word for word": quoted,
}
