"""Comparison of lanes: results against costs, as one JSON-able dict computed from their traces.

Every number is measured (recorded in the trace) or derived from measured ones by a formula that stands beside
it.
"""

import math

from decoders.trace.trace import Trace
from visualizers.analysis import first_difference, result
from visualizers.analysis.cost_summary import COLUMNS, table_row
from visualizers.analysis.lane_stats import LaneFacts, Token, by_class, by_depth
from visualizers.analysis.token_texts import others, words

LN2 = math.log(2)
LONGEST_VALUE = 24  # characters of a parameter's value in the name of a lane
# What a lane can be charged with: key of its running totals -> words.
CHARGES = {
    "forwards": "target forwards",
    "seconds": "seconds",
    "target_tokens": "target tokens",
    "positions": "drafted + verified tokens",
}


def compare(
    traces: list[Trace],
    shown: list[int] | None = None,
    numbers: list[int] | None = None,
) -> dict:
    """Everything that a comparison of lanes shows, after `shown` steps of each (all, if None).

    `numbers`: what the lanes are called (from 1 on).

    sentence     what the texts have in common
    result       what came out of the whole run, empty while a lane goes on: see `result.sentence`
    divergence   the first difference among all lanes, or None: see `first_difference.overall`
    pairs        how any two lanes differ: see `first_difference.pair`; empty if prompts or models differ
    lanes        one dict per lane: see `one_lane`
    charges      key -> words of what a lane can be charged with
    likelihood   mean log-probability and costs of a token at equal length: see `likelihood`
    table        {columns: [{name, how, title}], rows: [{lane, label, cells: [{value, label}]}]}
    """
    several, none = range(len(traces)), [None] * len(traces)
    numbers, labels, apart = numbers or [i + 1 for i in several], names(traces), unlike(traces)
    facts = [LaneFacts(trace, count) for trace, count in zip(traces, shown or none, strict=True)]
    texts = dict(zip(numbers, (f.tokens for f in facts), strict=True))
    lanes = [one_lane(*each) for each in zip(numbers, labels, facts, strict=True)]
    pairs = [pair(lanes[i], lanes[j], texts) for j in several for i in range(j) if not apart]
    first = first_difference.overall(pairs, texts)
    if not apart:
        relate(lanes, texts)
    rows = [
        {"lane": lane["lane"], "label": lane["label"], "cells": table_row(f.costs, f.ended)}
        for lane, f in zip(lanes, facts, strict=True)
    ]
    likely = likelihood(lanes)
    return {
        "result": "" if apart else result.sentence(lanes, likely["points"]),
        "sentence": apart or first_difference.sentence(texts, all(lane["ended"] for lane in lanes), first),
        "divergence": first,
        "pairs": pairs,
        "lanes": lanes,
        "charges": CHARGES,
        "likelihood": likely,
        "table": {"columns": COLUMNS, "rows": rows},
    }


def pair(a: dict, b: dict, texts: dict[int, list[Token]]) -> dict:
    """How two lanes differ: see `first_difference.pair`."""
    return first_difference.pair(texts[a["lane"]], texts[b["lane"]], (a["lane"], b["lane"]))


def one_lane(number: int, label: str, facts: LaneFacts) -> dict:
    """The entry of one lane.

    lane, label, ended (why, or None), given (tokens it did not decode but began with)
    nodes, tokens, logprob (natural), entropy (bits)   one entry a committed token
    text, differs   the words of each token as they are read, and whether they are others than the reference's
    race        key -> running totals, before the first step and after each: reached (final, or the best
                candidate's), committed (final), logprob (of the final ones) and the keys of CHARGES
    depth, alpha, classes   acceptance: see `lane_stats.by_depth` and `by_class`
    greedy      how far its tokens are the most likely ones: see `greedy`
    relation, parting   how it stands to the reference lane, and where: see `relate`
    """
    depth, alpha = by_depth(facts.rounds)
    text = facts.tokens
    return {
        "lane": number,
        "label": label,
        "ended": facts.ended,
        "given": facts.given,
        "nodes": [t.node for t in text],
        "tokens": [t.text for t in text],
        "text": words(facts.trace, [t.token for t in text]),
        "differs": [False] * len(text),
        "logprob": [t.logprob for t in text],
        "entropy": [None if t.entropy is None else t.entropy / LN2 for t in text],
        "race": {key: [total[key] for total in facts.totals] for key in facts.totals[0]},
        "depth": depth,
        "alpha": alpha,
        "classes": by_class(facts.rounds),
        "greedy": greedy(text),
        "relation": None,
        "parting": None,
    }


def greedy(text: list[Token]) -> dict:
    """Whether a text is the target's own greedy one: `{checked, position, caption}`.

    `checked`: tokens whose offer was recorded; `position`: the first that is not the top-1, None if none.
    """
    checked = sum(bool(t.top) for t in text)
    other = next((n for n, t in enumerate(text, 1) if t.top and t.rank != 1), None)
    if not checked:
        sentence = "the trace does not record enough to tell"
    elif other is None:
        sentence = f"all {first_difference.tokens(checked)} are the model's most likely"
    else:
        sentence = f"token {other} is the first that is not the model's most likely"
    return {"checked": checked, "position": other, "caption": sentence}


def relate(lanes: list[dict], texts: dict[int, list[Token]]) -> None:
    """Compares every lane with the reference, which is the first lane whose tokens are all the most likely
    ones, else the first lane; the reference's own relation stays None. See `first_difference.relation`.

    `parting` is the token `{node, position, words}` at which a lane leaves the reference, the one that its
    relation names; for the reference, the first at which another lane leaves it.
    """
    greedy_ones = [
        lane
        for lane in lanes
        if lane["greedy"]["checked"] == len(lane["tokens"]) > 0 and lane["greedy"]["position"] is None
    ]
    to = next(iter(greedy_ones + lanes), None)
    for lane in lanes:
        if lane is not to:
            lengths = (len(to["tokens"]), len(lane["tokens"]))
            ended = (to["ended"] is not None, lane["ended"] is not None)
            compared = pair(to, lane, texts)
            lane["relation"] = first_difference.relation(compared, lengths, ended)
            own, reference = texts[lane["lane"]], texts[to["lane"]]
            lane["differs"] = others([t.token for t in own], [t.token for t in reference])
            if compared["position"] is not None:
                lane["parting"] = parting(compared, 1)
                if to["parting"] is None or compared["position"] < to["parting"]["position"]:
                    to["parting"] = parting(compared, 0)


def parting(compared: dict, side: int) -> dict:
    """The token of one lane of a pair at which they part, with words that name the other's."""
    other = compared["lanes"][1 - side]
    words = f"Token {compared['position']}, the first difference from lane {other}, which has "
    return {
        "node": compared["nodes"][side],
        "position": compared["position"],
        "words": words + compared["tokens"][1 - side],
    }


def likelihood(lanes: list[dict]) -> dict:
    """Lanes at equal length, derived: `{tokens, points: [{lane, logprob, forwards, seconds, ...}]}`.

    `tokens` is the largest number of final tokens that all lanes have, `logprob` the mean a token over them,
    each charge what the lane had paid when it reached that length, divided by the tokens it decoded for it.
    Both are None where unknown: tokens that a lane began with have no log-probability and cost nothing.
    """
    length = min((len(lane["tokens"]) for lane in lanes), default=0)
    points = []
    for lane in lanes if length else []:
        race, logprobs, own = lane["race"], lane["logprob"][:length], length - lane["given"]
        at = next(i for i, reached in enumerate(race["reached"]) if reached >= length)
        mean = None if None in logprobs else math.fsum(logprobs) / length
        paid = {key: race[key][at] / own if own > 0 else None for key in CHARGES}
        points.append({"lane": lane["lane"], "logprob": mean, **paid})
    return {"tokens": length, "points": points}


def names(traces: list[Trace]) -> list[str]:
    """Titles of the lanes; where two are the same, with the parameters and the seed in which they differ."""
    made = []
    for trace in traces:
        same = [other for other in traces if other.title == trace.title]
        words = [
            f"{key} {written(value)}"
            for key, value in trace.parameters.items()
            if value != "" and any(other.parameters.get(key) != value for other in same)
        ]
        words += [f"seed {trace.seed}"] if any(other.seed != trace.seed for other in same) else []
        made.append(" ".join([trace.title, ", ".join(words)]).strip())
    return made


def written(value: object) -> str:
    """The value of a parameter in a name, in one line; a long text is cut."""
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def unlike(traces: list[Trace]) -> str | None:
    """Why the lanes' texts cannot be compared, in a sentence; None if they can."""
    if len({tuple(trace.prompt) for trace in traces}) > 1:
        return "The lanes have different prompts: only their costs can be compared."
    if len({trace.models.get("target") for trace in traces}) > 1:
        return "The lanes have different target models: only their costs can be compared."
    return None
