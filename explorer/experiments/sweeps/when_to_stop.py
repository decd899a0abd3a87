"""When should a draft stop?

At temperature 1, SpecDec++ ends a draft once a rejection has become more likely than a limit; a draft of
fixed length cannot adapt. What does each cost, in target forwards and in discarded draft tokens? And are the
acceptance probabilities that the head, or the draft itself, predicts well calibrated?
"""

from statistics import fmean

from decoders.speculative.methods.specdec_pp import HEAD, OWN
from decoders.trace.trace import Trace
from explorer.experiments import Models, Result, progress
from explorer.experiments.asked import cases
from explorer.experiments.curves import CurvesBy
from explorer.experiments.measures import target_forwards_per_token, thrown_away_per_token, tokens_per_forward
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.sweep import Difference, Setting, Sweep, concluded, outcomes_of, swept
from visualizers.analysis.calibration import calibration_error, predictions
from visualizers.analysis.lane_stats import LaneFacts

PAPERS = ("specdec-plus-plus",)
LENGTHS, LIMITS, BINS = (1, 2, 3, 4, 6, 8), (0.1, 0.3, 0.5, 0.7, 0.9), 10
PROMPTS, TOKENS, SEEDS = 6, 64, 4
MAX_DRAFT = 20
FIXED, FORWARDS, WASTED = "fixed length", "target forwards per token", "thrown away per token"
PREDICTORS = {"acceptance head": HEAD, "draft's own probability": OWN}


def stopping(way: str, limit: float, drafted: int = MAX_DRAFT) -> Setting:
    """SpecDec++ with one of the predictors and a limit."""
    given = {"stop": limit, "predictor": PREDICTORS[way], "num_assistant_tokens": drafted}
    return Setting((way, limit), "specdec_pp", {"temperature": 1.0} | given, asked())


def asked() -> list[tuple]:
    """The prompts and seeds that all settings share."""
    return cases("stories", PROMPTS, TOKENS, SEEDS)


def settings(models: Models) -> list[Setting]:
    """Each fixed length, and each limit of either predictor."""
    fixed = [
        Setting((FIXED, k), "speculative", {"temperature": 1.0, "num_assistant_tokens": k}, asked())
        for k in LENGTHS
    ]
    return [*fixed, *(stopping(way, limit) for way in PREDICTORS for limit in LIMITS)]


def says(rows: list[Row]) -> list[str]:
    """Two fixed lengths against the limit of the head whose number of forwards is closest."""
    sentences = []
    for fixed in (row for row in rows if row["way"] == FIXED and row["K or limit"] in (2, 4)):
        near = nearest(rows, fixed)
        sentences.append(
            f"A fixed length of {fixed['K or limit']} takes {fixed[FORWARDS]:.3f} target forwards per token "
            f"and throws {fixed[WASTED]:.2f} guesses away; the head with limit {near['K or limit']:g} takes "
            f"{near[FORWARDS]:.3f} and throws {near[WASTED]:.2f}."
        )
    return sentences


def calibration(way: str, traces: list[Trace]) -> list[str]:
    """Whether the predictor of drafts that it does not stop is right, in a sentence."""
    pairs = predictions([made for trace in traces for made in LaneFacts(trace).rounds])
    if not pairs:
        return []
    return [
        f"{way[0].upper()}{way[1:]}: it predicted that {fmean(probability for probability, _ in pairs):.0%} "
        f"of {len(pairs)} tested tokens would be accepted, and {fmean(came for _, came in pairs):.0%} were; "
        f"over ten bins it is off by {calibration_error(pairs, BINS):.3f} on average."
    ]


def nearest(rows: list[Row], fixed: Row) -> Row:
    """The limit of the head whose number of forwards is closest to a fixed length's."""
    heads = [row for row in rows if row["way"] == "acceptance head"]
    return min(heads, key=lambda row: abs(row[FORWARDS] - fixed[FORWARDS]))


def matched(rows: list[Row]) -> tuple[Row, Row]:
    """A fixed length of four, and the limit of the head whose number of forwards is closest to it."""
    lengths = [row for row in rows if row["way"] == FIXED]
    fixed = min(lengths, key=lambda row: abs(row["K or limit"] - 4))
    return fixed, nearest(rows, fixed)


SWEEP = Sweep(
    names=("way", "K or limit"),
    settings=settings,
    measures=lambda traces, _: {
        FORWARDS: target_forwards_per_token(traces),
        WASTED: thrown_away_per_token(traces),
        "tokens per forward": tokens_per_forward(traces),
    },
    says=says,
    chart=CurvesBy("What a token costs", "guesses thrown away", "target forwards", "way", (WASTED, FORWARDS)),
    differences=tuple(
        Difference(
            f"{what}, stopping against a fixed length", measure, lambda rows: tuple(reversed(matched(rows)))
        )
        for what, measure in ((FORWARDS, target_forwards_per_token), (WASTED, thrown_away_per_token))
    ),
    sampled={"prompts": PROMPTS, "seeds": SEEDS},
)


def run(models: Models) -> Result:
    """The sweep, and the calibration of both predictors on drafts that are never stopped."""
    with progress.part(0.85):
        made = swept(models, SWEEP)
    never = [stopping(way, 1.0, drafted=8) for way in PREDICTORS]
    traces = outcomes_of(models, SWEEP, never)
    says = [one for way, some in zip(PREDICTORS, traces, strict=True) for one in calibration(way, some)]
    return concluded(made, SWEEP, before=says)


def finding(answer: dict) -> str:
    """A fixed length, and the head whose number of forwards is closest to it."""
    fixed, near = matched(rows_of(answer))
    return (
        f"A draft that stops when a rejection becomes likely throws away {two(near[WASTED])} guesses per "
        f"token at {two(near[FORWARDS])} target forwards; a fixed length of {fixed['K or limit']} throws "
        f"away {two(fixed[WASTED])} at {two(fixed[FORWARDS])}."
    )
