"""How much does a decoder's setting matter?

A Thorough Examination of Decoding Methods (2024) in miniature: every decoder of that study with its sweep of
settings, on closed tasks (counts, questions on facts, translations, word problems: the share of right
answers) and on open ones (beginnings of stories: how much of a text is repeated, and the share of distinct
token trigrams). time: measured, as a multiple of greedy's for the same problems. The study's scores of
divergence from human texts need such texts and are left out.
"""

from statistics import fmean
from time import perf_counter
from typing import Any

from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.cost_and_accuracy import answer
from explorer.experiments.pictures import Heat, Marked, Picture, Spread, Strip
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.statistics import distinct, repetition
from explorer.tasks import HELD_OUT_SEED, problems

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


def row(models: Models, method: str, strategy: str, setting: dict) -> list:
    """The results of one setting on the closed tasks, their time in seconds, and the results on stories."""
    begun = perf_counter()
    shares = [
        fmean([answer(models, strategy, setting, p).right for p in problems(task, COUNT, HELD_OUT_SEED)])
        for task in progress.each(CLOSED, until=0.8)
    ]
    seconds = perf_counter() - begun
    scores = [
        decoded(models, strategy, text, TOKENS, **setting).output()
        for text in progress.each(prompts("stories", STORIES))
    ]
    open_ = [fmean([repetition(text) for text in scores]), fmean([distinct([text], 3) for text in scores])]
    setting_text = ", ".join(
        f"{name} {value}" for name, value in setting.items() if name not in ("finishers", "form")
    )
    return [f"{method}: {setting_text or setting.get('form', '—')}", *shares, fmean(shares), seconds, *open_]


def run(models: Models) -> Result:
    """One row per setting; how much each method gains from tuning."""
    columns = ["decoder", *CLOSED, "closed", "time", "repeated", "distinct-3"]
    at = {column: i for i, column in enumerate(columns)}
    rows, best, usual = [], {}, {}
    methods = progress.each(METHODS.items(), weight=lambda one: len(one[1][0]))
    for method, (settings, chosen) in methods:
        own = [row(models, method, *setting) for setting in progress.each(settings)]
        best[method] = (max(own, key=lambda r: r[at["closed"]]), fmean([r[at["closed"]] for r in own]))
        usual[method] = own[chosen]
        rows += own
    plain = rows[0][at["time"]]
    for one in rows:
        one[at["time"]] /= plain
    gains = sorted(best, key=lambda m: best[m][1] - best[m][0][at["closed"]])
    tuned = [f"{m} {best[m][0][at['closed']] - best[m][1]:.3f}" for m in gains if len(METHODS[m][0]) > 1]
    first, recommended = (
        max(of, key=score)
        for of, score in (
            (rows, lambda r: r[at["closed"]]),
            (list(usual.values()), lambda r: r[at["closed"]]),
        )
    )
    stuck = [
        f"{name} {usual[name][at['repeated']]:.0%}" for name in ("greedy", "beam search", "FSD-d", "top-p")
    ]
    says = [
        f"On the closed tasks the best of all settings is {first[0]} with {first[at['closed']]:.0%}; of the "
        f"usual settings, {recommended[0]} with {recommended[at['closed']]:.0%}; greedy has "
        f"{rows[0][at['closed']]:.0%}.",
        f"Best setting minus the mean of the sweep (the price of not tuning): {', '.join(tuned)}.",
        f"Share of a story that is repeated at the usual settings: {', '.join(stuck)}.",
    ]
    heat = [
        (s["temperature"], r)
        for s, r in zip(
            [setting for settings, _ in METHODS.values() for _, setting in settings], rows, strict=True
        )
        if set(s) == {"temperature"}
    ]
    lines = [Line(name, [[t, r[at[name]]] for t, r in heat]) for name in ("closed", "repeated", "distinct-3")]
    chart = Chart("Sampling by its temperature", "temperature", "share", lines)
    return Result(columns, rows, says, chart, pictures=pictures(columns, rows))


def pictures(columns: list[str], rows: list[list[Cell]]) -> list[Picture]:
    """Every setting of every method on every task; and the gains of tuning per method."""
    left, strips, spread = iter(rows), [], []
    tasks, all_closed = [columns.index(task) for task in CLOSED], columns.index("closed")
    for method, (settings, usual) in METHODS.items():
        own = [next(left) for _ in settings]
        names = [row[0].partition(": ")[2].removeprefix("—") for row in own]
        strips.append(Strip(method, names, [[row[at] for row in own] for at in tasks]))
        shares = [row[all_closed] for row in own]
        spread.append(Marked(method, [max(shares), shares[usual], fmean(shares)]))
    spread.sort(key=lambda row: -row.values[0])
    return [
        Heat(
            "Every setting on every task",
            "share of right answers, one cell per setting",
            list(CLOSED),
            strips,
            0.0,
            1.0,
        ),
        Spread(
            "Tuned, usual, on average",
            "right on all closed tasks",
            ["the best setting", "the usual one", "the mean of the sweep"],
            spread,
        ),
    ]


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
    many = len(CLOSED) * COUNT
    ends = max(right[widest]), many, min(right[widest]), many
    compared = by_shares(f"right answers, best against worst setting of {widest}", *ends)
    return Basis({"problems": many}, compared=[compared])
