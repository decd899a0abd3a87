"""Is the most likely answer the best one?

Language Model Decoding as Likelihood-Utility Alignment (2022) in miniature. First: beams, stochastic beams
and samples give candidates for each problem. How well do their log-probability and their utility agree (rank
correlation within a problem), and what is the utility of the most likely candidate, of all candidates on
average, and of the best? Longest story asks for as many words as possible. Second: an oracle that knows the
prefixes of the right answer is degraded by noise, and guides beams and a tree search. At which noise do they
stop being better than beam search, which has no oracle?
"""

from collections.abc import Callable
from statistics import fmean

from decoders.callbacks import Callbacks
from decoders.lane import Lane, Limits
from decoders.search.beam.hypotheses import returned
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import own_logprob, prompts, text_of
from explorer.experiments.basis import Basis, by_wins
from explorer.experiments.pictures import Cloud, Clouds, fitted
from explorer.experiments.reading import Row, percent, rows_of
from explorer.experiments.statistics import spearman
from explorer.tasks import HELD_OUT_SEED, TASKS, Problem, problems

PAPERS = ("language-model-decoding-as-likelihood-utility-alignment",)
COUNT, EACH, TOKENS = 20, 6, 48  # problems per task, candidates per method
CLOSED = ("count", "word_problem", "translate", "json")
STORIES, LONGEST = 6, "longest story"
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


def aligned(
    models: Models, name: str, prompt_of: list[str], worth: Callable[[int, str], float]
) -> tuple[list[Cell], Cloud]:
    """A row: rank correlation, and the utility of the most likely candidate, of the mean one and of the best.
    Also all candidates as points, one line per problem.
    """
    correlations, likeliest, mean, best, groups = [], [], [], [], []
    for at, prompt in progress.each(enumerate(prompt_of)):
        drawn = candidates(models, prompt)
        useful = [worth(at, text) for text, _ in drawn]
        logprobs = [logprob for _, logprob in drawn]
        groups.append([[round(x, 2), round(y, 3)] for x, y in zip(logprobs, useful, strict=True)])
        correlation = spearman(logprobs, useful)
        if correlation is not None:
            correlations.append(correlation)
        likeliest.append(useful[logprobs.index(max(logprobs))])
        mean.append(fmean(useful))
        best.append(max(useful))
    known = fmean(correlations) if correlations else None
    row = [name, known, len(correlations), fmean(likeliest), fmean(mean), fmean(best)]
    return row, Cloud(name, known, groups, [line for group in groups if (line := fitted(group))])


def solved(models: Models, strategy: str, given: dict, problem: Problem) -> bool:
    """Whether one lane solves a problem when its scorer asks an oracle."""
    oracle = Callbacks(lambda _, written: float(problem.answer.strip().startswith(written.strip())))
    prompt = models["target"].encode(problem.prompt)
    trace = Lane(strategy, prompt, models, given, 0, Limits(TOKENS), callbacks=oracle).run()
    return TASKS[problem.task].check(problem, text_of(models, trace.output())).right


def run(models: Models) -> Result:
    """One row per task, and one per way and noise deviation."""
    results: list[tuple[list[Cell], Cloud]] = []
    for task in progress.each(CLOSED, until=0.5):
        asked = problems(task, COUNT, HELD_OUT_SEED)

        def right(at: int, text: str, task=task, asked=asked) -> float:
            return float(TASKS[task].check(asked[at], text).right)

        results.append(aligned(models, task, [problem.prompt for problem in asked], right))
    with progress.part(0.1):
        results.append(
            aligned(models, LONGEST, prompts("stories", STORIES), lambda _, text: float(len(text.split())))
        )
    rows = [row for row, _ in results]
    asked = [problem for task in LADDER for problem in problems(task, LADDER_COUNT, HELD_OUT_SEED)]
    beams = {"num_beams": 3, "length_penalty": 0.0}
    plain = fmean([solved(models, "beam", beams, p) for p in progress.each(asked, until=0.05)])
    lines = [Line("beam search", [[deviation, plain] for deviation in NOISE])]
    for name, (strategy, given) in progress.each(GUIDED.items()):
        shares = [
            fmean(
                [
                    solved(models, strategy, given | {"scorer": "tests", "value_noise": noise}, p)
                    for p in progress.each(asked)
                ]
            )
            for noise in progress.each(NOISE)
        ]
        lines.append(Line(name, [list(point) for point in zip(NOISE, shares, strict=True)]))
    says = [*summed_up(rows), *(crossing(line, plain) for line in lines[1:])]
    columns = ["what is wanted", "rank correlation", "problems that have one", "most likely", "mean", "best"]
    chart = Chart("Right answers with a spoiled oracle", "deviation of its noise", "right", lines)
    says = [one.replace(" -", " −").replace("(-", "(−") for one in says]
    clouds = Clouds("Likely and useful", "log p", "utility", [cloud for _, cloud in results])
    return Result(columns, rows, says, chart, pictures=[clouds])


def summed_up(rows: list[list[Cell]]) -> list[str]:
    """Two sentences on the rows."""
    known = sorted((r for r in rows if r[1] is not None), key=lambda r: -r[1])
    together = ", ".join(f"{r[0]} {r[1]:.2f}" for r in known)
    worth = ", ".join(f"{r[0]} {r[3]:.2f} of {r[5]:.2f}" for r in rows)
    return [
        *([f"Rank correlation of log-probability and utility: {together}."] if known else []),
        f"Utility of the most likely candidate, out of the best one's: {worth}.",
    ]


def crossing(line: Line, plain: float) -> str:
    """The noise at which a search becomes only as good as beam search, whose share is `plain`."""
    lost = [noise for noise, share in line.points if share <= plain]
    first, last = line.points[0][1], line.points[-1][1]
    until = f"below a deviation of {lost[0]:g}" if lost else "at every deviation tried"
    return (
        f"{line.label}: {first:.0%} right with a perfect oracle, {last:.0%} with the most noise; better than "
        f"beam search's {plain:.0%} {until}."
    )


def widest_task(answer: dict) -> Row:
    """The task in which the most likely and the best candidate are furthest apart."""
    tasks = [row for row in rows_of(answer) if row["what is wanted"] != LONGEST]
    return max(tasks, key=lambda row: row["best"] - row["most likely"])


def finding(answer: dict) -> str:
    """The most likely and the best candidate of one task."""
    widest = widest_task(answer)
    return (
        f"In the task “{widest['what is wanted'].replace('_', ' ')}” a right answer is among the candidates "
        f"for {percent(widest['best'])} of the problems, while the most likely candidate is right for "
        f"{percent(widest['most likely'])}."
    )


def stands(answer: dict) -> Basis:
    """Problems of each task, with the same candidates."""
    widest = widest_task(answer)
    won = round(COUNT * (widest["best"] - widest["most likely"]))
    compared = by_wins("right, best against most likely candidate", won, 0, COUNT)
    return Basis({"problems of each task": COUNT}, compared=[compared])
