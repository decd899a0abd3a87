"""Is the most likely answer the best one?

Language Model Decoding as Likelihood-Utility Alignment (2022) in miniature. First: beams, stochastic beams
and samples give candidates for each problem. How well do their log-probability and their utility agree (rank
correlation within a problem), and what is the utility of the most likely candidate, of all candidates on
average, and of the best? Longest story asks for as many words as possible. Second: an oracle that knows the
prefixes of the right answer is degraded by noise, and guides beams and a tree search. At which noise do they
stop being better than beam search, which has no oracle?
"""

from dataclasses import dataclass, replace
from statistics import fmean

from decoders.callbacks import Callbacks
from decoders.lane import Lane, Limits
from decoders.search.beam.hypotheses import returned
from explorer.experiments import Line, Models, Result, progress
from explorer.experiments.asked import own_logprob, problems_of, prompts, text_of
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.curves import CurvesBy
from explorer.experiments.pictures import Cloud, Clouds, fitted
from explorer.experiments.reading import Row, percent, rows_of
from explorer.experiments.statistics import spearman
from explorer.experiments.sweep import Setting, Sweep, concluded, swept
from explorer.tasks import TASKS, Problem

PAPERS = ("language-model-decoding-as-likelihood-utility-alignment",)
COUNT, EACH, TOKENS = 20, 6, 48  # problems per task, candidates per method
CLOSED = ("count", "word_problem", "translate", "json")
STORIES, LONGEST = 6, "longest story"
WANTED, CORRELATION, BEAMS = "what is wanted", "rank correlation", "beam search"
LADDER, LADDER_COUNT = ("count", "translate"), 12
NOISE = (0.0, 0.25, 0.5, 1.0, 4.0)
GUIDED: dict[str, tuple[str, dict]] = {
    "guided beams": ("value_beam", {"num_beams": 3, "candidates": 6}),
    "guided tree search": ("value_mcts", {"simulations": 12, "width": 6}),
}


def candidates(models: Models, prompt: str) -> list[tuple[str, float]]:
    """Distinct texts for a prompt, from beams, stochastic beams and samples, with their log-probabilities."""
    target = models["target"]
    ids, limits = target.encode(prompt), Limits(TOKENS)
    beams = {"num_beams": EACH, "num_return_sequences": EACH}
    ways = [("beam", beams, 0), ("stochastic_beam", {"num_beams": EACH}, 0)]
    traces = [Lane(name, ids, models, given, seed, limits).run() for name, given, seed in ways]
    texts = {tuple(text) for trace in traces for text, _ in returned(trace)}
    texts |= {tuple(Lane("sample", ids, models, {}, seed, limits).run().output()) for seed in range(EACH)}
    return [(text_of(models, text), own_logprob(models, ids, text)) for text in sorted(texts)]


@dataclass(frozen=True)
class Drawn:
    """The candidates for one prompt: log-probabilities, utilities, and the correlation of the two."""

    logprobs: list[float]
    useful: list[float]
    correlation: float | None


def drawn(models: Models, asked: Problem | str) -> Drawn:
    """The candidates for a problem, or for the beginning of a story, whose worth is their number of words."""
    found = candidates(models, asked if isinstance(asked, str) else asked.prompt)
    if isinstance(asked, str):
        useful = [float(len(text.split())) for text, _ in found]
    else:
        useful = [float(TASKS[asked.task].check(asked, text).right) for text, _ in found]
    logprobs = [logprob for _, logprob in found]
    return Drawn(logprobs, useful, spearman(logprobs, useful))


def correlation(some: list[Drawn]) -> float | None:
    """The mean rank correlation within a prompt; None if no prompt has one."""
    known = [one.correlation for one in some if one.correlation is not None]
    return fmean(known) if known else None


def measures(some: list[Drawn], _: list[Drawn]) -> Row:
    """Rank correlation, and the utility of the most likely candidate, of the mean one and of the best."""
    return {
        CORRELATION: correlation(some),
        "problems that have one": sum(one.correlation is not None for one in some),
        "most likely": fmean(one.useful[one.logprobs.index(max(one.logprobs))] for one in some),
        "mean": fmean(fmean(one.useful) for one in some),
        "best": fmean(max(one.useful) for one in some),
    }


def cloud(wanted: str, some: list[Drawn]) -> Cloud:
    """All candidates as points, one line per prompt."""
    pairs = [zip(one.logprobs, one.useful, strict=True) for one in some]
    groups = [[[round(x, 2), round(y, 3)] for x, y in points] for points in pairs]
    return Cloud(wanted, correlation(some), groups, [line for group in groups if (line := fitted(group))])


def says(rows: list[Row]) -> list[str]:
    """How well the two agree, and what the most likely candidate is worth."""
    known = sorted((row for row in rows if row[CORRELATION] is not None), key=lambda row: -row[CORRELATION])
    together = ", ".join(f"{row[WANTED]} {row[CORRELATION]:.2f}" for row in known)
    worth = ", ".join(f"{row[WANTED]} {row['most likely']:.2f} of {row['best']:.2f}" for row in rows)
    return [
        *([f"Rank correlation of log-probability and utility: {together}."] if known else []),
        f"Utility of the most likely candidate, out of the best one's: {worth}.",
    ]


SWEEP = Sweep(
    names=(WANTED,),
    settings=lambda models: [
        *(Setting((task,), cases=problems_of([task], COUNT)) for task in CLOSED),
        Setting((LONGEST,), cases=[(text,) for text in prompts("stories", STORIES)]),
    ],
    decode=drawn,
    measures=measures,
    within=WANTED,
    says=says,
    sampled={"problems of each task": COUNT},
)


def solved(models: Models, strategy: str, problem: Problem, **given: float | str) -> bool:
    """Whether one lane solves a problem when its scorer asks an oracle."""
    oracle = Callbacks(lambda _, written: float(problem.answer.strip().startswith(written.strip())))
    prompt = models["target"].encode(problem.prompt)
    trace = Lane(strategy, prompt, models, given, 0, Limits(TOKENS), callbacks=oracle).run()
    return TASKS[problem.task].check(problem, text_of(models, trace.output())).right


def searches(models: Models) -> list[Setting]:
    """Beam search, and the searches that an oracle guides, with every noise."""
    asked = problems_of(LADDER, LADDER_COUNT)
    return [
        Setting((BEAMS, 0.0), "beam", {"num_beams": 3, "length_penalty": 0.0}, asked),
        *(
            Setting((name, noise), strategy, given | {"scorer": "tests", "value_noise": noise}, asked)
            for name, (strategy, given) in GUIDED.items()
            for noise in NOISE
        ),
    ]


SPOILED = Sweep(
    names=("search", "noise"),
    settings=searches,
    decode=solved,
    measures=lambda right, _: {"right": fmean(right)},
    says=lambda rows: [],
    chart=CurvesBy(
        "Right answers with a spoiled oracle", "deviation of its noise", "right", "search", ("noise", "right")
    ),
    sampled={"problems": len(LADDER) * LADDER_COUNT},
)


def crossing(line: Line, plain: float) -> str:
    """The noise at which a search becomes only as good as beam search, whose share is `plain`."""
    lost = [noise for noise, share in line.points if share <= plain]
    first, last = line.points[0][1], line.points[-1][1]
    until = f"below a deviation of {lost[0]:g}" if lost else "at every deviation tried"
    return (
        f"{line.label}: {first:.0%} right with a perfect oracle, {last:.0%} with the most noise; better than "
        f"beam search's {plain:.0%} {until}."
    )


def run(models: Models) -> Result:
    """The candidates for each task, and the searches with a spoiled oracle."""
    with progress.part(0.6):
        made = swept(models, SWEEP)
    chart = SPOILED.run(models).chart
    beams, *guided = chart.lines
    ((_, plain),) = beams.points
    everywhere = Line(BEAMS, [[noise, plain] for noise in NOISE])
    clouds = [cloud(row[WANTED], some) for row, some in zip(made.rows, made.outcomes, strict=True)]
    return concluded(
        made,
        SWEEP,
        after=[crossing(line, plain) for line in guided],
        chart=replace(chart, lines=[everywhere, *guided]),
        pictures=[Clouds("Likely and useful", "log p", "utility", clouds)],
    )


def widest_task(answer: dict) -> Row:
    """The task in which the most likely and the best candidate are furthest apart."""
    tasks = [row for row in rows_of(answer) if row[WANTED] != LONGEST]
    return max(tasks, key=lambda row: row["best"] - row["most likely"])


def finding(answer: dict) -> str:
    """The most likely and the best candidate of one task."""
    widest = widest_task(answer)
    return (
        f"In the task “{widest[WANTED].replace('_', ' ')}” a right answer is among the candidates "
        f"for {percent(widest['best'])} of the problems, while the most likely candidate is right for "
        f"{percent(widest['most likely'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task, with the same candidates."""
    widest = widest_task(answer)
    won = round(COUNT * (widest["best"] - widest["most likely"]))
    compared = by_wins("right, best against most likely candidate", won, 0, COUNT)
    return Basis(SWEEP.sampled, compared=[compared])
