"""How much does a decoder's setting matter?

A Thorough Examination of Decoding Methods (2024) in miniature: every decoder of that study with its sweep of
settings, on closed tasks (counts, questions on facts, translations, word problems: the share of right
answers) and on open ones (beginnings of stories: how much of a text is repeated, and the share of distinct
token trigrams). time: measured, as a multiple of greedy's for the same problems. The study's scores of
divergence from human texts need such texts and are left out.
"""

from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import Any

from explorer.experiments import Models
from explorer.experiments.asked import decoded, problems_of, prompts, text_of
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.curves import over_temperatures
from explorer.experiments.measures import right_by_task
from explorer.experiments.pictures import Heat, Marked, Picture, Spread, Strip
from explorer.experiments.reading import Row, highest, percent, rows_of
from explorer.experiments.statistics import distinct, repetition
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import TASKS, Problem

PAPERS = ("a-thorough-examination-of-decoding-methods-in",)
CLOSED, COUNT = ("count", "facts", "translate", "word_problem"), 16
STORIES, TOKENS = 3, 64


def swept(strategy: str, name: str, values: tuple, **fixed: Any) -> list[tuple[str, dict]]:
    """The strategy with each value of one parameter."""
    return [(strategy, {name: value, **fixed}) for value in values]


# Method -> its settings, and which of them is usually recommended.
METHODS: dict[str, tuple[list[tuple[str, dict]], int]] = {
    "greedy": ([("greedy", {})], 0),
    "beam search": (swept("beam", "num_beams", (4, 8)), 0),
    "diverse beams": (
        [
            ("diverse_beam", {"num_beams": n, "num_beam_groups": g, "diversity_penalty": 1.0})
            for n, g in ((4, 2), (4, 4), (8, 2), (8, 4))
        ],
        0,
    ),
    "contrastive search": (swept("contrastive_search", "penalty_alpha", (0.1, 0.3, 0.5, 0.6), top_k=5), 3),
    "contrastive decoding": (swept("contrastive_decoding", "form", ("ratio (2022)", "weighed (2023)")), 1),
    "DoLa": (swept("dola", "dola_layers", ("low", "high")), 0),
    "FSD": (swept("fsd", "alpha", (0.1, 0.2, 0.4, 0.6), form="states"), 2),
    "FSD-d": (swept("fsd", "alpha", (0.1, 0.2, 0.4, 0.6), form="n-grams"), 2),
    "temperature": (swept("sample", "temperature", (0.1, 0.3, 0.5, 0.7, 0.9, 1.0)), 3),
    "top-k": (swept("sample", "top_k", (5, 10, 20, 50, 100)), 3),
    "top-p": (swept("sample", "top_p", (0.8, 0.85, 0.9, 0.95)), 2),
    "typical": (swept("sample", "typical_p", (0.2, 0.5, 0.9, 0.95)), 3),
    "eta": (swept("sample", "eta_cutoff", (0.0003, 0.0006, 0.002, 0.004)), 1),
    "Mirostat": (swept("mirostat", "tau", (2.5, 3.0, 4.0, 5.0)), 1),
    "self-consistency": (swept("first_finish", "num_samples", (8,), finishers=8, temperature=0.7), 0),
}


@dataclass(frozen=True)
class Written:
    """A text: the answer to a problem of a task, or the continuation of a story, whose task is ""."""

    task: str
    right: bool
    seconds: float
    tokens: list[int]


def written(models: Models, strategy: str, asked: Problem | str, **parameters: Any) -> Written:
    """The answer to a problem, or what follows the beginning of a story."""
    begun = perf_counter()
    if isinstance(asked, str):
        return Written("", False, 0.0, decoded(models, strategy, asked, TOKENS, **parameters).output())
    output = decoded(models, strategy, asked.prompt, TOKENS, **parameters).output()
    right = TASKS[asked.task].check(asked, text_of(models, output)).right
    return Written(asked.task, right, perf_counter() - begun, output)


def measures(texts: list[Written], greedy: list[Written]) -> Row:
    """Right answers to the closed tasks and the time that these took, and the repetition in stories."""
    closed, stories = right_by_task(texts, CLOSED), [text.tokens for text in texts if not text.task]
    return {
        **closed,
        "closed": fmean(closed.values()),
        "time": sum(text.seconds for text in texts) / sum(text.seconds for text in greedy),
        "repeated": fmean(map(repetition, stories)),
        "distinct-3": fmean(distinct([text], 3) for text in stories),
    }


def called(method: str, setting: dict) -> str:
    """`temperature: temperature 0.5`: a setting of a method as its row is called."""
    words = [f"{name} {value}" for name, value in setting.items() if name not in ("finishers", "form")]
    return f"{method}: {', '.join(words) or setting.get('form', '—')}"


def settings(models: Models) -> list[Setting]:
    """Every setting of every method."""
    asked = [*problems_of(CLOSED, COUNT), *((text,) for text in prompts("stories", STORIES))]
    return [
        Setting((called(method, given),), strategy, given, asked)
        for method, (own, _) in METHODS.items()
        for strategy, given in own
    ]


def by_method(rows: list[Row]) -> dict[str, list[Row]]:
    """Method -> the rows of its settings."""
    left = iter(rows)
    return {method: [next(left) for _ in own] for method, (own, _) in METHODS.items()}


def says(rows: list[Row]) -> list[str]:
    """The best setting, the best usual one, and how much each method gains from tuning."""
    methods = by_method(rows)
    usual = {method: own[METHODS[method][1]] for method, own in methods.items()}
    first, recommended = (highest(of, "closed") for of in (rows, usual.values()))
    gains = {
        method: max(row["closed"] for row in own) - fmean(row["closed"] for row in own)
        for method, own in methods.items()
    }
    tuned = [f"{m} {gains[m]:.3f}" for m in sorted(gains, key=lambda m: -gains[m]) if len(methods[m]) > 1]
    stuck = [f"{name} {usual[name]['repeated']:.0%}" for name in ("greedy", "beam search", "FSD-d", "top-p")]
    return [
        f"On the closed tasks the best of all settings is {first['decoder']} with {first['closed']:.0%}; of "
        f"the usual settings, {recommended['decoder']} with {recommended['closed']:.0%}; greedy has "
        f"{rows[0]['closed']:.0%}.",
        f"Best setting minus the mean of the sweep (the price of not tuning): {', '.join(tuned)}.",
        f"Share of a story that is repeated at the usual settings: {', '.join(stuck)}.",
    ]


def pictures(rows: list[Row]) -> list[Picture]:
    """Every setting of every method on every task; and the gains of tuning per method."""
    strips, spread = [], []
    for method, own in by_method(rows).items():
        names = [row["decoder"].partition(": ")[2].removeprefix("—") for row in own]
        strips.append(Strip(method, names, [[row[task] for row in own] for task in CLOSED]))
        shares = [row["closed"] for row in own]
        spread.append(Marked(method, [max(shares), shares[METHODS[method][1]], fmean(shares)]))
    spread.sort(key=lambda row: -row.values[0])
    what = "share of right answers, one cell per setting"
    names = ["the best setting", "the usual one", "the mean of the sweep"]
    return [
        Heat("Every setting on every task", what, list(CLOSED), strips, 0.0, 1.0),
        Spread("Tuned, usual, on average", "right on all closed tasks", names, spread),
    ]


TEMPERATURES = {called("temperature", given): given["temperature"] for _, given in METHODS["temperature"][0]}
SWEEP = Sweep(
    names=("decoder",),
    settings=settings,
    decode=written,
    measures=measures,
    says=says,
    chart=over_temperatures(
        "Sampling by its temperature", "decoder", TEMPERATURES, ("closed", "repeated", "distinct-3")
    ),
    pictures=pictures,
    sampled={"problems": len(CLOSED) * COUNT},
    one_process=True,
)


def by_decoder(answer: dict) -> dict[str, list[float]]:
    """Decoder -> the shares of right answers with each of its settings."""
    right: dict[str, list[float]] = {}
    for row in rows_of(answer):
        right.setdefault(row["decoder"].partition(":")[0], []).append(row["closed"])
    return right


def finding(answer: dict) -> str:
    """The decoder whose settings differ most, compared with greedy, which has none."""
    right = by_decoder(answer)
    widest = max(right, key=lambda name: max(right[name]) - min(right[name]))
    return (
        f"The setting matters most for {widest}: from {percent(min(right[widest]))} to "
        f"{percent(max(right[widest]))} of the answers are right; greedy search, which has nothing to set, "
        f"gets {percent(right['greedy'][0])}."
    )


def stands(answer: dict) -> Basis:
    """Closed problems, each answered once with every setting."""
    right = by_decoder(answer)
    widest = max(right, key=lambda name: max(right[name]) - min(right[name]))
    ends = max(right[widest]), min(right[widest]), len(CLOSED) * COUNT
    compared = by_shares(f"right answers, best against worst setting of {widest}", *ends)
    return Basis(SWEEP.sampled, compared=[compared])
