"""The drafted tokens of a speculative lane, one row per token: what was tested, what replaced it, and why the
draft was wrong. Candidates that were not sent to the target are listed apart: they were not drafted.

Folds a trace, live or loaded. The causes are those of `rejection_causes`.
"""

import csv
import io
import math
from collections import Counter

from decoders.explain.verdicts import reason_of
from decoders.trace.events import Propose
from decoders.trace.imports.writer import UNTOLD
from decoders.trace.token_text import visible
from decoders.trace.trace import Trace
from visualizers.analysis.cost_csv import text as safe
from visualizers.analysis.lane_stats import ACCEPTED, BEHIND, REJECTED, Drafted, LaneFacts
from visualizers.analysis.rejection_causes import Guess, cause_of

CONTEXT = 40  # characters of text before a token
EXAMPLES, BEFORE = 3, 24  # rejections quoted per group, and characters of text before each
# Bounds, in bits, of the groups of positions by the target's entropy.
ENTROPIES = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, math.inf)
COLUMNS = (
    "step",
    "round",
    "node",
    "position",
    "context",
    "token",
    "token_id",
    "class",
    "depth",
    "rank",
    "p",
    "q",
    "u",
    "acceptance",
    "entropy",
    "fate",
    "instead",
    "discarded",
    "cause",
    "reason",
)


def drafted_tokens(trace: Trace, count: int | None = None) -> list[dict]:
    """One row per drafted token of the first `count` steps (all, if None), in the order of drafting.

    step, round   of the lane, counted from 1
    node          its number in the trace
    position      of the token in the lane's text, counted from 1
    context       the end of the text before it, whole words: … and at most 40 characters
    token, token_id, class   what was drafted, and what kind of token it is
    depth, rank   in its draft: 1 follows the text; 1 is the first of its siblings
    p, q, u       target's and draft's probability at its test, and the random number; None where unknown;
                  q is the draft's own probability where its test has none or it was not tested
    acceptance    the probability with which its test passes; None where no number was drawn
    entropy       of the target's distribution at its place, in bits; None where not recorded
    fate          accepted, rejected, or why it was never tested
    instead       the token that the text has in its place; None if it was accepted or there is none yet
    discarded     drafted tokens after it that were not tested because of its rejection
    cause         of a rejection: one of `rejection_causes.CAUSES`; None otherwise
    reason        the strategy's own sentence; None without
    """
    facts = LaneFacts(trace, count)
    hidden = untold(trace)
    written = {facts.nodes.parent[token.node]: token.token for token in facts.tokens}
    rows = []
    for number, made in enumerate(facts.rounds, 1):
        discarded = behind(made.drafted)
        for drafted in made.drafted:
            instead = None if drafted.accepted else written.get(drafted.parent)
            one = row(facts, made.drafted, drafted, instead, hidden=hidden)
            rows.append(one | {"round": number, "step": made.step})
            if drafted.fate == REJECTED:
                rows[-1]["discarded"] = discarded.get(drafted.node, 0)
    return [{name: one[name] for name in COLUMNS} for one in rows]


def unsent_tokens(trace: Trace) -> list[dict]:
    """The candidates that were dropped before the target saw them, as rows of `drafted_tokens` without step
    and round. Fate: "not sent"; "no verdict" if the lane ended before.
    """
    facts = LaneFacts(trace)
    written = {facts.nodes.parent[token.node]: token.token for token in facts.tokens}
    rows = [
        row(facts, [], candidate, written.get(candidate.parent)) | {"round": None, "step": None}
        for node, candidate in facts.candidates.items()
        if node in facts.costs.unsent
    ]
    return [{name: one[name] for name in COLUMNS} for one in rows]


def row(
    facts: LaneFacts,
    siblings: list[Drafted],
    drafted: Drafted,
    instead: int | None,
    guess: Guess | None = None,
    hidden: bool = False,
) -> dict:
    """The row of one drafted token, without its round. `instead`: the token that the text has there; `guess`
    and `hidden`: see `rejection_causes.cause_of`.
    """
    verdict, word = drafted.verdict, facts.trace.vocabulary.get
    tested = verdict is not None and drafted.fate in ("accepted", REJECTED)
    entropy = facts.entropy(drafted.parent)
    fields = {
        "node": drafted.node,
        "position": facts.nodes.position[drafted.node],
        "context": end_of(facts.text_before(drafted.node), CONTEXT),
        "token": visible(word(drafted.token, b"?")),
        "token_id": drafted.token,
        "class": drafted.name,
        "depth": drafted.depth,
        "rank": drafted.rank,
        "p": verdict.p if tested else None,
        "q": verdict.q if tested and verdict.q is not None else drafted.probability,
        "u": verdict.u if tested else None,
        "acceptance": verdict.passes if tested and verdict.u is not None else None,
        "entropy": None if entropy is None else entropy / math.log(2),
        "fate": drafted.fate,
        "discarded": 0,
        "instead": None if instead is None else visible(word(instead, b"?")),
        "reason": reason_of(verdict, facts.trace.vocabulary) if tested else None,
    }
    cause = None
    if drafted.fate == REJECTED:
        places = [one for one in siblings if one.parent == drafted.parent]
        none_of = 0 if any(one.accepted for one in places) else len(places)
        cause = cause_of(fields, none_of, facts.best(drafted.parent), guess, hidden)
    return fields | {"cause": cause}


def behind(drafted: list[Drafted]) -> dict[int, int]:
    """Node -> how many drafted tokens below it were never reached because of a rejection."""
    by_node, discarded = {one.node: one for one in drafted}, {}
    for one in drafted:
        above = by_node.get(one.parent) if one.fate == BEHIND else None
        while above is not None:
            discarded[above.node] = discarded.get(above.node, 0) + 1
            above = by_node.get(above.parent)
    return discarded


def untold(trace: Trace) -> bool:
    """Whether the lane was imported without the tokens that were rejected: shares by token would mislead."""
    return any(event.source == UNTOLD for step in trace.steps for event in step.of(Propose))


def grouped(rows: list[dict], name: str) -> list[dict]:
    """Rejections by cause, token, class or another column: the largest group first.

    Each `{name, rejected, tested, discarded, causes, example}`, where `name` is the column's, `tested` counts
    all tested tokens of the group, and `causes` is cause -> rejections, the most frequent first.
    """
    tested = Counter(one[name] for one in rows if one["fate"] in (ACCEPTED, REJECTED))
    groups: dict[str, list[dict]] = {}
    for one in rows:
        if one["fate"] == REJECTED:
            groups.setdefault(one[name], []).append(one)
    made = [
        {
            name: value,
            "rejected": len(group),
            "tested": tested[value],
            "discarded": sum(one["discarded"] for one in group),
            "causes": dict(Counter(one["cause"] for one in group).most_common()),
            "example": quoted(group[0]),
        }
        for value, group in groups.items()
    ]
    return sorted(made, key=lambda group: -group["rejected"])


def by_entropy(rows: list[dict]) -> list[dict]:
    """Acceptance by the target's entropy: `{low, high, tested, accepted, share, examples}`, only ranges that
    occur.

    low, high: bits, high excluded, None without end; examples: see `examples`.
    """
    known = [one for one in rows if one["fate"] in (ACCEPTED, REJECTED) and one["entropy"] is not None]
    bins = []
    for low, high in zip(ENTROPIES, ENTROPIES[1:], strict=False):
        here = [one for one in known if low <= one["entropy"] < high]
        if here:
            passed = sum(one["fate"] == ACCEPTED for one in here)
            counts = {"tested": len(here), "accepted": passed, "share": passed / len(here)}
            top = None if math.isinf(high) else high
            bins.append({"low": low, "high": top} | counts | {"examples": examples(here)})
    return bins


def examples(rows: list[dict]) -> list[str]:
    """The first few rejections of some rows, as text: …upon “␣a”; “␣the” written instead."""
    return [quoted(one) for one in rows if one["fate"] == REJECTED][:EXAMPLES]


def quoted(one: dict) -> str:
    """A rejected token after the end of the text before it, and what the text has instead."""
    instead = "" if one["instead"] is None else f"; “{one['instead']}” written instead"
    return f"{end_of(one['context'], BEFORE)} “{one['token']}”{instead}"


def end_of(text: str, size: int) -> str:
    """The last words of a text, at most `size` characters, after … where it was cut."""
    if len(text) <= size:
        return text
    cut = text[-size:]
    inside = text[-size - 1].isalnum() and " " in cut.rstrip()  # begins within a word, which can be left out
    return "…" + (cut.partition(" ")[2] if inside else cut).lstrip()


def drafted_csv(trace: Trace) -> str:
    """All drafted tokens of a lane as CSV, one row per token, and after them the candidates that were not
    sent to the target; empty cells where something is not known.
    """
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS)
    writer.writeheader()
    for one in (*drafted_tokens(trace), *unsent_tokens(trace)):
        writer.writerow({name: cell(value) for name, value in one.items()})
    return file.getvalue()


def cell(value: object) -> object:
    """A value as a spreadsheet takes it: texts are not formulas, unknown values are empty."""
    return "" if value is None else safe(value) if isinstance(value, str) else value
