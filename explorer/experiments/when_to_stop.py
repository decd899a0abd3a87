"""When should a draft stop?

At temperature 1, SpecDec++ ends a draft once a rejection has become more likely than a limit; a draft of
fixed length cannot adapt. What does each cost, in target forwards and in discarded draft tokens? And are the
acceptance probabilities that the head, or the draft itself, predicts well calibrated?
"""

from itertools import product
from statistics import fmean
from typing import Any

from decoders.speculative.methods.specdec_pp import HEAD, OWN
from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts, tokens_per_forward
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.spread import over
from visualizers.analysis.calibration import calibration_error, predictions
from visualizers.analysis.lane_stats import LaneFacts

PAPERS = ("specdec-plus-plus",)
LENGTHS, LIMITS, BINS = (1, 2, 3, 4, 6, 8), (0.1, 0.3, 0.5, 0.7, 0.9), 10
PROMPTS, TOKENS, SEEDS = 6, 64, 4
MAX_DRAFT = 20
PREDICTORS = {"acceptance head": HEAD, "draft's own probability": OWN}


def traces(models: Models, strategy: str, **parameters: Any) -> list[Trace]:
    """The traces of a strategy on the prompts and seeds that all share."""
    asked = product([strategy], prompts("stories", PROMPTS), [TOKENS], range(SEEDS))
    return list(over(models, decoded, asked, temperature=1.0, **parameters))


def row(way: str, limit: float, runs: list[Trace]) -> list:
    """A row of costs per committed token."""
    totals = [t.costs.totals() for t in runs]
    new = sum(t["new_tokens"] for t in totals)
    forwards = sum(t["target_forwards"] for t in totals) / new
    wasted = sum(t["proposed"] - t["accepted"] for t in totals) / new
    return [way, limit, forwards, wasted, tokens_per_forward(runs)]


def run(models: Models) -> Result:
    """Costs for each fixed length, and for each threshold of either predictor; then the calibration."""
    rows, says, each = [], [], {}
    for length in progress.each(LENGTHS, until=0.3):
        runs = traces(models, "speculative", num_assistant_tokens=length)
        rows.append(row("fixed length", length, runs))
        each["fixed length", length] = runs
    for name, predictor in progress.each(PREDICTORS.items()):
        for limit in progress.each(LIMITS, until=0.8):
            runs = traces(
                models, "specdec_pp", stop=limit, predictor=predictor, num_assistant_tokens=MAX_DRAFT
            )
            rows.append(row(name, limit, runs))
            each[name, limit] = runs
        runs = traces(models, "specdec_pp", stop=1.0, predictor=predictor, num_assistant_tokens=8)
        pairs = predictions([made for trace in runs for made in LaneFacts(trace).rounds])
        if pairs:
            says.append(
                f"{name[0].upper()}{name[1:]}: it predicted that "
                f"{fmean(probability for probability, _ in pairs):.0%} of {len(pairs)} tested tokens would "
                f"be accepted, and {fmean(came for _, came in pairs):.0%} were; over ten bins it is off by "
                f"{calibration_error(pairs, BINS):.3f} on average."
            )
    for one in [r for r in rows if r[0] == "fixed length" and r[1] in (2, 4)]:
        near = min((r for r in rows if r[0] == "acceptance head"), key=lambda r: abs(r[2] - one[2]))
        says.append(
            f"A fixed length of {one[1]} takes {one[2]:.3f} target forwards per token and throws "
            f"{one[3]:.2f} guesses away; the head with limit {near[1]:g} takes {near[2]:.3f} and throws "
            f"{near[3]:.2f}."
        )
    ways = dict.fromkeys(r[0] for r in rows)
    lines = [Line(way, sorted([r[3], r[2]] for r in rows if r[0] == way)) for way in ways]
    columns = [
        "way",
        "K or limit",
        "target forwards per token",
        "thrown away per token",
        "tokens per forward",
    ]
    chart = Chart("What a token costs", "guesses thrown away", "target forwards", lines)
    fixed, near = matched([dict(zip(columns, one, strict=True)) for one in rows])
    per_text = [
        [row(way, limit, [trace])[2:4] for trace in each[way, limit]]
        for way, limit in ((one["way"], one["K or limit"]) for one in (near, fixed))
    ]
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(*per_text, strict=True)]
    compared = [
        by_pairs(f"{what}, stopping against a fixed length", list(column))
        for what, column in zip(columns[2:4], zip(*gaps, strict=True), strict=True)
    ]
    return Result(columns, rows, says, chart, compared=compared)


def matched(rows: list[Row]) -> tuple[Row, Row]:
    """A fixed length of four, and the limit of the head whose number of forwards is closest to it."""
    lengths, heads = (
        [row for row in rows if row["way"] == way] for way in ("fixed length", "acceptance head")
    )
    fixed = min(lengths, key=lambda row: abs(row["K or limit"] - 4))
    forwards = "target forwards per token"
    return fixed, min(heads, key=lambda row: abs(row[forwards] - fixed[forwards]))


def finding(answer: dict) -> str:
    """A fixed length, and the head whose number of forwards is closest to it."""
    fixed, near = matched(rows_of(answer))
    forwards, wasted = "target forwards per token", "thrown away per token"
    return (
        f"A draft that stops when a rejection becomes likely throws away {two(near[wasted])} guesses per "
        f"token at {two(near[forwards])} target forwards; a fixed length of {fixed['K or limit']} throws "
        f"away {two(fixed[wasted])} at {two(fixed[forwards])}."
    )


def stands(answer: dict) -> Basis:
    """Texts at temperature 1: prompts with several seeds."""
    return Basis({"prompts": PROMPTS, "seeds": SEEDS}, compared=as_measured(answer))
