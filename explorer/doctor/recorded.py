"""Examines what an engine has recorded: traces of rounds, whose drafts are compared with the target's numbers
beside them and, if the same models are loaded here, with ours; or counts alone.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from decoders.heads import DraftModule
from decoders.refusal import Refusal
from decoders.trace.events import Distribution
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from explorer import open_command
from explorer.acceptance.drafters import Drafter
from explorer.acceptance.golden import Gained, gained
from explorer.doctor.along import Way, draft_rows, ways
from explorer.doctor.canaries import Canary
from explorer.doctor.examining import Examination, shown
from visualizers.analysis.draft_diagnosis import (
    SHIFTS,
    Along,
    Cause,
    Finding,
    Sampling,
    diagnosis,
    engine_differs,
    of_counts,
)
from visualizers.analysis.lane_stats import LaneFacts

MOST = 200  # traces that are examined, the newest of a folder
SLACK = 1e-4  # by which rounding may move a probability
FAR = range(6, 22, 2)  # places further on, whose distributions are unrelated

Sparse = dict[int, float]  # token -> probability, of the tokens that a trace names


def examine(source: str, drafter: Drafter | None, target: Any) -> Examination:
    """Examines a file, a folder, an address or standard input (-). drafter: the same draft loaded here, with
    its target, so that the engine's numbers can be compared with ours; None without.

    Raises Refusal with one sentence if there is nothing of speculative decoding in it.
    """
    if not (open_command.is_address(source) or source == "-" or Path(source).exists()):
        raise Refusal(f"There is no file or folder {source!r}; name what an engine recorded.")
    found = open_command.opened_source(source)
    if found.counts:
        return of_counted(found.counts)
    traces = found.run[1] if found.run else [one.trace() for one in found.records[-MOST:]]
    return of_traces(traces, drafter, target)


def of_counted(counts: list[tuple[str, dict]]) -> Examination:
    """What a server's counts say."""
    drafted = sum(one.get("num_draft_tokens") or 0 for _, one in counts)
    accepted = sum(one.get("num_accepted_tokens") or 0 for _, one in counts)
    models = sorted({name for _, one in counts for name in one["models"]})
    target = " and ".join(models) or "a server"
    rounds = [one.get("num_drafts") for _, one in counts]
    length = mean = None
    if all(rounds):
        length, mean = round(drafted / sum(rounds)), 1 + accepted / sum(rounds)
    return Examination(
        target,
        "its draft",
        [],
        of_counts(drafted, accepted),
        counts=counts,
        drafted=length or 0,
        gained=Gained(mean, mean, mean, sum(rounds)) if mean else None,
    )


def of_traces(traces: Sequence[Trace], drafter: Drafter | None = None, target: Any = None) -> Examination:
    """What recorded rounds say. Raises Refusal with one sentence if nothing was drafted in them."""
    traces = [trace for trace in traces if trace.costs.proposed]
    if not traces:
        raise Refusal("Nothing was drafted in these traces; record an engine that drafts.")
    places = [list(offers_along(trace)) for trace in traces]
    texts = [
        along(f"request {at}", trace, own)
        for at, (trace, own) in enumerate(zip(traces, places, strict=True), 1)
    ]
    findings = diagnosis(texts, sampling=sampling(traces, places))
    words = {token: visible(text) for trace in traces for token, text in trace.vocabulary.items()}
    agreement = None
    if drafter is not None:
        agreement, differing = compared(traces, places, drafter, target)
        # what the engine computes differently explains why its draft looks broken
        findings = [*differing, *(one for one in findings if not differing or one.cause in NOT_READING)]
        words |= {token: shown(target, token) for text in texts for token in text.best}
    names = traces[0].models
    draft = names.get("draft", traces[0].title)
    rounds = [one for trace in traces for one in LaneFacts(trace).rounds]
    return Examination(
        names.get("target", "its target"),
        draft,
        texts,
        findings,
        words,
        engine=agreement,
        drafted=max(len(one.drafted) for one in rounds),
        gained=gained(traces),
    )


NOT_READING = {Cause.RELAXED, Cause.GREEDY, Cause.LENGTH, Cause.NUMERICS}


class Place(NamedTuple):
    """A new token of a text, after the node `above`. depth: of the drafted token that was tested there, 0 if
    none was; q: the draft's distribution, a token drafted without one counts as certain; p: the target's;
    both None where the trace does not hold them.
    """

    above: int
    token: int
    depth: int
    q: Sparse | None
    p: Sparse | None


def offers_along(trace: Trace) -> Iterator[Place]:
    """The new tokens of a text, in order."""
    facts, offers = LaneFacts(trace), {}
    for step in trace.steps:
        for event in step.of(Distribution):
            if event.level is None:
                offers[event.node, event.view] = {int(token): math.exp(value) for token, value in event.top}
    drafted: dict[int, tuple[Sparse, int]] = {}
    for made in facts.rounds:
        for one in made.tests:
            if one.rank == 1:
                drafted[one.parent] = {one.token: 1.0}, one.depth
    for token in facts.tokens[facts.given :]:
        above = facts.nodes.parent[token.node]
        certain, depth = drafted.get(above, (None, 0))
        q = offers.get((above, "draft"), certain) if depth else None
        p = offers.get((above, "processed")) or offers.get((above, "target"))
        yield Place(above, token.token, depth, q, p)


def along(name: str, trace: Trace, places: Sequence[Place]) -> Along:
    """What was drafted along a recorded text. Overlaps are of the tokens that both name: the least they can
    be.
    """
    ps, qs = [one.p for one in places], [one.q for one in places]

    def best(p: Sparse | None) -> int:
        return max(p, key=p.__getitem__) if p else -1

    def at(n: int, other: int) -> float | None:
        p = ps[other] if 0 <= other < len(ps) else None
        return None if qs[n] is None or not p else overlap(p, qs[n])

    def far(n: int) -> float | None:
        found = [value for by in FAR if len(ps) > 24 and (value := at(n, (n + by) % len(ps))) is not None]
        return fmean(found) if found else None

    every = range(len(places))
    return Along(
        name,
        "what it was asked",
        True,
        len(trace.prompt),
        [visible(trace.vocabulary.get(one.token, b"")) for one in places],
        [at(n, n) for n in every],
        [best(p) for p in ps],
        [max(p.values()) if p else 0.0 for p in ps],
        [(one.p or {}).get(one.token, 0.0) for one in places],
        [best(one.q) if one.q and one.p else None for one in places],
        [max(q.values()) if q else None for q in qs],
        [bool(q) and not all(map(math.isfinite, q.values())) for q in qs],
        {shift: [at(n, n + shift) for n in every] for shift in SHIFTS},
        [far(n) for n in every],
    )


def overlap(p: Sparse, q: Sparse) -> float:
    """The sum of min(p, q) over the tokens that both name."""
    return sum(min(p[token], q[token]) for token in p.keys() & q.keys())


def sampling(traces: Sequence[Trace], places: Sequence[Sequence[Place]]) -> Sampling:
    """How drafted tokens were tested. The exact test accepts a token with probability min(1, p / q), greedily
    the target's most likely one. Only chains are judged, and tests whose numbers the trace holds: in a tree,
    siblings are tested by other rules.
    """
    drawn = certain = tested = accepted = 0
    relaxed, chances = [], []
    for at, (trace, own) in enumerate(zip(traces, places, strict=True)):
        facts = LaneFacts(trace)
        greedy = trace.parameters.get("temperature", 0.0) == 0.0
        best = {one.above: one.p for one in own if one.p}
        place = {one.above: n for n, one in enumerate(own)}
        chains = [made for made in facts.rounds if all(one.rank == 1 for one in made.drafted)]
        for one in (one for made in chains for one in made.tests):
            drawn += not greedy
            certain += not greedy and one.probability in (None, 1.0)
            verdict, p = one.verdict, best.get(one.parent)
            passes = verdict.passes if verdict is not None else None
            if greedy and p:
                passes, u = float(p.get(one.token, 0.0) > max(p.values()) - SLACK), 0.5
            elif greedy or passes is None:
                continue
            else:
                u = verdict.u
            tested += 1
            if u is None:  # the uniform number is not known: only sure outcomes can be wrong
                chances.append(passes)
                accepted += one.accepted
            low, high = (2 * SLACK, 1 - 2 * SLACK) if u is None else (u, u)
            if passes < low - SLACK if one.accepted else passes > high + SLACK:
                relaxed.append((at, place.get(one.parent, 0)))
    return Sampling(
        drawn,
        certain,
        tested,
        len(relaxed),
        len(chances),
        accepted,
        sum(chances),
        sum(one * (1 - one) for one in chances),
        tuple(relaxed),
    )


def compared(
    traces: Sequence[Trace], places: Sequence[Sequence[Place]], drafter: Drafter, target: Any
) -> tuple[float | None, list[Finding]]:
    """How far the engine's q agrees with ours, in the mean overlap, and what it does differently. Both are
    cut to the tokens that the trace names, and made to sum to 1.

    Raises Refusal with one sentence if the traces are of other tokens.
    """
    if drafter.guesser is None:
        raise Refusal(f"{drafter.name!r} has no weights that could be compared with the engine's.")
    canaries, head = [], isinstance(drafter.guesser, DraftModule)
    for at, (trace, own) in enumerate(zip(traces, places, strict=True), 1):
        ids = [*trace.prompt, *(one.token for one in own)]
        if any(not 0 <= token < target.engine.vocabulary for token in ids):
            raise Refusal(f"Request {at} has tokens that {target.name!r} does not have; name its models.")
        if len(ids) <= target.context:
            # below depth 1 a head reads what it drafted itself, and no states of its target
            asked = [one.q if one.depth == 1 or not head else None for one in own]
            canaries.append((Canary("", "", ids, len(trace.prompt), True), asked))

    def agreement(way: Way | None) -> float | None:
        found = []
        for canary, qs in canaries:
            rows = list(draft_rows(drafter.guesser, target, canary, way)) or [None] * len(qs)
            for q, row in zip(qs, rows, strict=True):
                if q and row is not None and len(q) > 1:
                    own = {token: float(row[token]) for token in q if token < len(row)}
                    found.append(overlap(whole(q), whole(own)))
        return fmean(found) if found else None

    plain = agreement(None)
    if plain is None:
        return None, []
    others = [(way.cause, way.shift, agreement(way)) for way in ways(drafter.guesser, target)]
    return plain, list(engine_differs(plain, [one for one in others if one[2] is not None]))


def whole(q: Sparse) -> Sparse:
    """A distribution over the named tokens alone."""
    total = sum(q.values())
    return {token: value / total for token, value in q.items()} if total > 0.0 else q
