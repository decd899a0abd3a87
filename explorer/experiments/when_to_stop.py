"""When a draft should stop.

At temperature 1, SpecDec++ stops when a refusal has become likelier than a limit; a fixed length does not
look. What does each pay, in target forwards and in drafted tokens thrown away? And do the chances come true
that the head, or the draft itself, gives its tokens?
"""

from decoders.speculative.methods.specdec_pp import HEAD, OWN
from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result
from explorer.experiments.asked import decoded, prompts, tokens_a_round
from visualizers.analysis.calibration import calibration_error, foretold
from visualizers.analysis.lane_stats import LaneFacts

PAPERS = ("specdec-plus-plus",)
LENGTHS, LIMITS, TOKENS, SEEDS, BINS = (1, 2, 3, 4, 6, 8), (0.1, 0.3, 0.5, 0.7, 0.9), 64, 2, 10
MOST = 20
PREDICTORS = {"acceptance head": HEAD, "draft's own probability": OWN}


def traces(models: Models, strategy: str, **parameters) -> list[Trace]:
    """The same prompts and seeds for all."""
    asked = [(prompt, seed) for prompt in prompts("stories", 6) for seed in range(SEEDS)]
    return [decoded(models, strategy, p, TOKENS, seed, temperature=1.0, **parameters) for p, seed in asked]


def row(way: str, limit: float, found: list[Trace]) -> list:
    """Costs a committed token."""
    totals = [t.costs.totals() for t in found]
    new = sum(t["new_tokens"] for t in totals)
    forwards = sum(t["target_forwards"] for t in totals) / new
    wasted = sum(t["proposed"] - t["accepted"] for t in totals) / new
    return [way, limit, forwards, wasted, tokens_a_round(found)]


def run(models: Models) -> Result:
    """Costs for each fixed length, and for each limit with either predictor; then the chances."""
    rows, says = [], []
    for length in LENGTHS:
        found = traces(models, "speculative", num_assistant_tokens=length)
        rows.append(row("fixed length", length, found))
    for name, predictor in PREDICTORS.items():
        for limit in LIMITS:
            found = traces(models, "specdec_pp", stop=limit, predictor=predictor, num_assistant_tokens=MOST)
            rows.append(row(name, limit, found))
        found = traces(models, "specdec_pp", stop=1.0, predictor=predictor, num_assistant_tokens=8)
        pairs = foretold([made for trace in found for made in LaneFacts(trace).rounds])
        if pairs:
            says.append(
                f"{name[0].upper()}{name[1:]}: of {len(pairs)} tested tokens it foretold "
                f"{sum(chance for chance, _ in pairs) / len(pairs):.0%} to be accepted, and "
                f"{sum(came for _, came in pairs) / len(pairs):.0%} were; in ten bins of its chances it is "
                f"off by {calibration_error(pairs, BINS):.3f} on average."
            )
    for one in [r for r in rows if r[0] == "fixed length" and r[1] in (2, 4)]:
        near = min((r for r in rows if r[0] == "acceptance head"), key=lambda r: abs(r[2] - one[2]))
        says.append(
            f"A fixed length of {one[1]} takes {one[2]:.3f} target forwards a token and throws {one[3]:.2f} "
            f"guesses away; the head with limit {near[1]:g} takes {near[2]:.3f} and throws {near[3]:.2f}."
        )
    ways = dict.fromkeys(r[0] for r in rows)
    lines = [Line(way, sorted([r[3], r[2]] for r in rows if r[0] == way)) for way in ways]
    columns = ["way", "K or limit", "target forwards per token", "thrown away a token", "tokens per forward"]
    chart = Chart("What a token costs", "guesses thrown away", "target forwards", lines)
    return Result(columns, rows, says, chart)
