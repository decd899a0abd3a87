"""The microscope: where one speculative lane's drafts were accepted, and where they were wasted.

Folds a trace, live or loaded. Names and formulas are those of vLLM's speculative metrics. Every number is
measured, or derived by the formula beside it.
"""

from collections import Counter

from decoders.roles import DRAFT_ROLES
from decoders.speculative.theory import expected_tokens
from decoders.trace.events import Forward
from decoders.trace.imports.vllm_counts import LATEST, LOG, REQUEST, SERVER
from decoders.trace.number_format import many
from decoders.trace.trace import Trace
from visualizers.analysis.calibration import reliability
from visualizers.analysis.drafted_tokens import by_entropy, drafted_tokens, examples, untold
from visualizers.analysis.lane_stats import (
    ACCEPTED,
    BEHIND,
    BESIDE,
    CUT,
    OPEN,
    REJECTED,
    UNSENT,
    LaneFacts,
    Round,
    by_class,
    by_depth,
)

RECENT = 8  # rounds of the running mean
OVER = {  # what a server's counts are over
    REQUEST: "one request",
    SERVER: "all requests since the server started",
    LOG: "the lines of its log",
}
FATES = {
    ACCEPTED: "accepted: in the text",
    REJECTED: "tested and rejected",
    BEHIND: "never reached: after a rejected token",
    BESIDE: "never reached: a sibling was accepted first",
    CUT: "passed its test, but was cut off",
    UNSENT: "not drafted: dropped before the target saw it",
    OPEN: "not drafted: not sent to the target so far",
}
# Name -> (words, formula), with k the place in the draft, counted from 0.
NAMES = {
    "num_drafts": ("rounds that sent a draft to the target", "counted"),
    "num_draft_tokens": ("drafted tokens: sent to the target for verification", "counted"),
    "draft_token_candidates": (
        "tokens that the drafter wrote, including those dropped before the target saw them; not among "
        "vLLM's metrics",
        "counted",
    ),
    "num_accepted_tokens": ("drafted tokens that were accepted", "counted"),
    "draft_acceptance_rate": (
        "share of them that was accepted",
        "num_accepted_tokens / num_draft_tokens",
    ),
    "mean_acceptance_length": ("tokens gained per round", "1 + num_accepted_tokens / num_drafts"),
    "cut_rounds": (
        "rounds whose draft reached the limit on new tokens, or in which the text ended inside the draft; "
        "vLLM drafts and accepts past the end",
        "counted",
    ),
    "mean_acceptance_length_uncut": (
        "the same without the cut rounds, to be compared with vLLM's",
        "1 + accepted / rounds, of rounds that were not cut",
    ),
    "num_accepted_tokens_per_pos": ("rounds that accepted their token k", "counted, from k = 0 on"),
    "acceptance_rate_per_pos": (
        "share of rounds that accepted their token k",
        "num_accepted_tokens_per_pos[k] / num_drafts",
    ),
    "acceptance_histogram": ("rounds that accepted j tokens", "counted, from j = 0 on"),
}


def microscope(trace: Trace, count: int | None = None) -> dict:
    """All that the microscope shows of the first `count` steps of a lane (all, if None).

    title, sentence   what the lane is; what there is to see, in words
    metrics     [{name, words, formula, value}] with vLLM's names; empty if nothing was drafted, as all below
    depths      [{depth, rounds, drafted, tested, accepted, of_rounds, of_tested}]; depth 1 is vLLM's place 0
    ranks       [{depth, cells: [{rank, tested, accepted, share} or None]}]: by rank among siblings
    classes     by class of the token: see `lane_stats.by_class`, each with `examples` of what was rejected;
                empty if it is not recorded what was rejected
    entropies   by the target's entropy at their places: see `drafted_tokens.by_entropy`
    rounds      [{drafted, accepted, rejected, own, recent}]: see `over_time`
    histogram   rounds by number of accepted tokens, from 0 on
    expected    see `expected`
    reliability [{short, name, error, bins}]: see `reliability`; empty if nothing predicted acceptance
    fates       [{fate, says, count, share}] of all candidates, drafted or not
    drafting    {draft, target}: seconds of their forwards, measured
    """
    facts = LaneFacts(trace, count)
    rounds = facts.rounds
    report = {"title": trace.title, "sentence": sentence(facts), "metrics": []}
    if not rounds:
        return report
    rows = drafted_tokens(trace, count)
    return report | {
        "metrics": metrics([facts]),
        "depths": depths(rounds),
        "ranks": ranks(rounds),
        "classes": [] if untold(trace) else classes(rounds, rows),
        "entropies": by_entropy(rows),
        "rounds": over_time(rounds),
        "histogram": histogram(rounds),
        "expected": expected(rounds),
        "reliability": [] if untold(trace) else reliability(rounds),
        "fates": fates(facts),
        "drafting": drafting(trace, count),
    }


def classes(rounds: list[Round], rows: list[dict]) -> list[dict]:
    """Acceptance by class of the drafted token, each with some that were rejected."""
    return [
        one | {"examples": examples([row for row in rows if row["class"] == one["name"]])}
        for one in by_class(rounds)
    ]


def accepted(made: Round) -> int:
    """How many of a round's drafted tokens were accepted."""
    return sum(drafted.accepted for drafted in made.drafted)


def sentence(facts: LaneFacts) -> str:
    """What was drafted, and what came of it."""
    if not facts.rounds:
        return "This lane has drafted nothing so far."
    values = {one["name"]: one["value"] for one in metrics([facts])}
    drafted, passed = values["num_draft_tokens"], values["num_accepted_tokens"]
    written, cut = values["draft_token_candidates"], values["cut_rounds"]
    chosen = f" (sent to the target, of {written:,} candidates)" if written > drafted else ""
    uncut = values.get("mean_acceptance_length_uncut")
    apart = (
        f" Without {many(cut, 'round')} that the end of the text cut short: {uncut:.2f}."
        if cut and uncut
        else ""
    )
    return (
        f"{many(len(facts.rounds), 'round')} drafted {many(drafted, 'token')}{chosen} and {passed} "
        f"{'was' if passed == 1 else 'were'} accepted: "
        f"{values['mean_acceptance_length']:.2f} tokens per round, the target's own included.{apart}"
    )


def metrics(folded: list[LaneFacts]) -> list[dict]:
    """vLLM's speculative metrics over all rounds of these lanes, of which one drafted at least, and what vLLM
    does not count; each with its formula. A mean that has no rounds is left out.
    """
    rounds = [made for facts in folded for made in facts.rounds]
    whole = [made.accepted for facts in folded for made in facts.whole_rounds]
    drafts, drafted = len(rounds), sum(len(made.drafted) for made in rounds)
    passed = sum(accepted(made) for made in rounds)
    levels = [row["accepted"] for row in depths(rounds)]
    values = {
        "num_drafts": drafts,
        "num_draft_tokens": drafted,
        "draft_token_candidates": sum(facts.costs.draft_token_candidates for facts in folded),
        "num_accepted_tokens": passed,
        "draft_acceptance_rate": passed / drafted,
        "mean_acceptance_length": 1 + passed / drafts,
        "cut_rounds": drafts - len(whole),
        **({"mean_acceptance_length_uncut": 1 + sum(whole) / len(whole)} if whole else {}),
        "num_accepted_tokens_per_pos": levels,
        "acceptance_rate_per_pos": [level / drafts for level in levels],
        "acceptance_histogram": histogram(rounds),
    }
    return named(values)


def named(values: dict) -> list[dict]:
    """The known metrics by name, each with its words and its formula."""
    return [
        {"name": name, "words": words, "formula": formula, "value": values[name]}
        for name, (words, formula) in NAMES.items()
        if name in values
    ]


def counted(counts: dict) -> dict:
    """The metrics of a server's counts (`decoders.trace.imports.vllm_counts`): `{sentence, metrics, depths}`.

    metrics: as `microscope` has them, those that are known; depths: `{depth, of_rounds, accepted}` of each
    place in the draft, empty if the server did not count by place.
    """
    values = {name: counts[name] for name in NAMES if counts.get(name)}
    if counts["over"] == LATEST:
        return {"sentence": counted_sentence(counts), "metrics": named(values), "depths": []}
    drafts, drafted, passed = (
        counts[name] for name in ("num_drafts", "num_draft_tokens", "num_accepted_tokens")
    )
    levels = counts["num_accepted_tokens_per_pos"] if drafts else []
    values |= {"num_accepted_tokens": passed, "draft_acceptance_rate": passed / drafted if drafted else 0.0}
    if drafts:
        values["mean_acceptance_length"] = 1 + passed / drafts
    if levels:
        values["acceptance_rate_per_pos"] = [level / drafts for level in levels]
    rows = [{"depth": at, "of_rounds": n / drafts, "accepted": n} for at, n in enumerate(levels, 1)]
    return {"sentence": counted_sentence(counts), "metrics": named(values), "depths": rows}


def counted_sentence(counts: dict) -> str:
    """What was counted, and over what."""
    models = f" that runs {' and '.join(counts['models'])}" if counts["models"] else ""
    if counts["over"] == LATEST:
        return f"Rates of a server{models}, of its latest interval; it counts no tokens and no rounds."
    over, passed, drafts = OVER[counts["over"]], counts["num_accepted_tokens"], counts["num_drafts"]
    verb = "was" if passed == 1 else "were"
    drafted = many(counts["num_draft_tokens"], "token")
    if not drafts:
        return (
            f"Counts of a server{models}, over {over}: {drafted} drafted and {passed:,} accepted; it counts "
            "no rounds, so tokens per round are unknown."
        )
    return (
        f"Counts of a server{models}, over {over}: {many(drafts, 'round')} drafted {drafted} and {passed:,} "
        f"{verb} accepted: {1 + passed / drafts:.2f} tokens per round, the target's own included."
    )


def depths(rounds: list[Round]) -> list[dict]:
    """Acceptance by depth. `of_rounds`: accepted / all rounds, as vLLM has it; `of_tested`: accepted /
    tested, None if nothing was tested there.
    """
    rows = []
    for row in by_depth(rounds)[0]:
        here = [drafted for made in rounds for drafted in made.drafted if drafted.depth == row["depth"]]
        tested = sum(drafted.fate in (ACCEPTED, REJECTED) for drafted in here)
        passed = sum(drafted.accepted for drafted in here)
        rows.append(
            {
                "depth": row["depth"],
                "rounds": row["rounds"],
                "drafted": len(here),
                "tested": tested,
                "accepted": passed,
                "of_rounds": passed / len(rounds),
                "of_tested": passed / tested if tested else None,
            }
        )
    return rows


def ranks(rounds: list[Round]) -> list[dict]:
    """Acceptance by depth and by rank among siblings, of those tested; None where none was."""
    tested, passed = Counter(), Counter()
    every = [drafted for made in rounds for drafted in made.drafted]
    for drafted in every:
        place = (drafted.depth, drafted.rank)
        tested[place] += drafted.fate in (ACCEPTED, REJECTED)
        passed[place] += drafted.accepted
    widest = max(drafted.rank for drafted in every)

    def cell(depth: int, rank: int) -> dict | None:
        n, k = tested[depth, rank], passed[depth, rank]
        return {"rank": rank, "tested": n, "accepted": k, "share": k / n} if n else None

    return [
        {"depth": depth, "cells": [cell(depth, rank) for rank in range(1, widest + 1)]}
        for depth in sorted({drafted.depth for drafted in every})
    ]


def over_time(rounds: list[Round]) -> list[dict]:
    """Round by round what became of the drafted tokens and of the target's own token, and the recent mean
    acceptance length.
    """
    counts = [accepted(made) for made in rounds]
    rows = []
    for i, made in enumerate(rounds):
        late = counts[max(0, i + 1 - RECENT) : i + 1]
        refused = sum(drafted.fate == REJECTED for drafted in made.drafted)
        rows.append(
            {
                "drafted": len(made.drafted),
                "accepted": counts[i],
                "rejected": refused,
                "own": made.own,
                "recent": 1 + sum(late) / len(late),
            }
        )
    return rows


def histogram(rounds: list[Round]) -> list[int]:
    """Entry j counts the rounds that accepted j tokens."""
    counts = Counter(accepted(made) for made in rounds)
    return [counts[j] for j in range(max(counts) + 1)]


def expected(rounds: list[Round]) -> dict:
    """Tokens gained by a round: `{alpha, expected, realised, by_draft, says}`; alpha and expected are None if
    none was tested.

    alpha: levels accepted / levels tested, measured. expected: the mean over rounds of (1 - alpha^(d + 1)) /
    (1 - alpha), d being the depth of a round's draft: the gain if every acceptance had the probability alpha,
    independently. realised: 1 + accepted / rounds. by_draft: see `by_draft`.
    """
    realised = 1 + sum(accepted(made) for made in rounds) / len(rounds)
    alpha = by_depth(rounds)[1]
    if alpha is None:
        says = "Nothing has been tested yet."
        return {"alpha": None, "expected": None, "realised": realised, "by_draft": None, "says": says}
    deep = [max(drafted.depth for drafted in made.drafted) for made in rounds]
    wanted = sum(expected_tokens(alpha, depth) for depth in deep) / len(rounds)
    if abs(realised - wanted) < 0.05:
        says = "as if every token had the same probability of acceptance, whatever came before"
    elif realised > wanted:
        says = "more than that: a token after an accepted one is accepted more often, or rounds differ"
    else:
        says = "less than that: deep tokens are accepted less often than the first ones"
    return {
        "alpha": alpha,
        "expected": wanted,
        "realised": realised,
        "by_draft": by_draft(rounds),
        "says": says,
    }


def by_draft(rounds: list[Round]) -> float | None:
    """Tokens gained by a round if the draft's probabilities are right: 1 plus the sum, over the nodes that
    the target reads, of the draft's probability of their paths, as OPT-Tree (Wang et al. 2024) chooses its
    trees. None where a probability is not known.
    """
    paths = [drafted.path for made in rounds for drafted in made.drafted]
    return None if None in paths else 1 + sum(paths) / len(rounds)


def fates(facts: LaneFacts) -> list[dict]:
    """What became of the candidates: the fates that occur."""
    counts = Counter(candidate.fate for candidate in facts.candidates.values())
    total = counts.total()
    return [
        {"fate": fate, "says": says, "count": counts[fate], "share": counts[fate] / total}
        for fate, says in FATES.items()
        if counts[fate]
    ]


def drafting(trace: Trace, count: int | None) -> dict:
    """Seconds that forwards of the draft and of the target took, lenses left out."""
    seconds = Counter()
    for step in trace.steps[:count]:
        for event in step.events:
            if isinstance(event, Forward) and event.kind != "lens":
                drafts = event.model in DRAFT_ROLES or event.kind == "draft"
                seconds["draft" if drafts else "target"] += event.seconds
    return {"draft": seconds["draft"], "target": seconds["target"]}
