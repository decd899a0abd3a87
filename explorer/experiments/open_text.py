"""Which strategies repeat themselves?

Every strategy continues the same beginnings of stories; those that sample do so with several seeds. distinct:
the share of distinct token bigrams and trigrams among the texts of one beginning; self-BLEU: how similar they
are, 1 if all are equal; repeated: the share of a text's runs of four tokens that have occurred before; nats:
how surprising the target finds a token of the text, on average.
"""

from itertools import product
from statistics import fmean

from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, own_logprob, prompts
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.reading import percent, rows_of
from explorer.experiments.spread import over
from explorer.experiments.statistics import distinct, repetition, self_bleu

PAPERS = ()
PROMPTS, SEEDS, TOKENS = 8, 6, 64
SETTINGS: list[tuple[str, dict]] = [
    ("greedy", {}),
    ("beam", {"num_beams": 4}),
    ("contrastive_search", {"top_k": 5, "penalty_alpha": 0.6}),
    ("momentum", {}),
    ("fsd", {}),
    ("sample", {"temperature": 0.5}),
    ("sample", {"temperature": 0.7}),
    ("sample", {"temperature": 1.0}),
    ("sample", {"temperature": 1.3}),
    ("sample", {"top_k": 5}),
    ("sample", {"top_k": 20}),
    ("sample", {"top_p": 0.8}),
    ("sample", {"top_p": 0.95}),
    ("sample", {"min_p": 0.1}),
    ("sample", {"typical_p": 0.5}),
    ("sample", {"top_h": 0.5}),
    ("sample", {"epsilon_cutoff": 0.01}),
    ("sample", {"eta_cutoff": 0.004}),
    ("mirostat", {"tau": 2.5}),
    ("mirostat", {"tau": 4.0}),
]
DRAWING = ("sample", "mirostat")
CURVE = "temperature"


def continued(models: Models, name: str, beginning: str, setting: dict, seed: int) -> tuple[list[int], float]:
    """A text's tokens, and the target's mean surprisal per token in nats."""
    trace = decoded(models, name, beginning, TOKENS, seed, **setting)
    output = trace.output()
    return output, -own_logprob(models, trace.prompt, output) / len(output)


def run(models: Models) -> Result:
    """One row per setting; curves of the share of distinct trigrams and of surprisal over temperature."""
    beginnings = prompts("stories", PROMPTS)
    rows, each = [], {}
    curves = {"distinct-3": [], "repeated": [], "self-BLEU": []}
    settings = progress.each(SETTINGS, weight=lambda one: SEEDS if one[0] in DRAWING else 1)
    for name, setting in settings:
        seeds = SEEDS if name in DRAWING else 1
        texts = over(models, continued, product([name], beginnings, [setting], range(seeds)))
        groups = [[text for text, _ in texts[at : at + seeds]] for at in range(0, len(texts), seeds)]
        surprises = [nats for _, nats in texts]
        two, three = (fmean([distinct(group, n) for group in groups]) for n in (2, 3))
        alike = fmean([self_bleu(group) for group in groups]) if seeds > 1 else None
        again = fmean([repetition(text) for group in groups for text in group])
        title = ", ".join([name, *(f"{key} {value}" for key, value in setting.items())])
        rows.append([title, two, three, alike, again, fmean(surprises)])
        each[title] = [fmean([repetition(text) for text in group]) for group in groups]
        if CURVE in setting:
            for label, value in (("distinct-3", three), ("repeated", again), ("self-BLEU", alike)):
                curves[label].append([setting[CURVE], value])
    columns = ["strategy", "distinct-2", "distinct-3", "self-BLEU", "repeated", "nats"]
    stuck, drawn = max(rows, key=lambda r: r[4]), [r for r in rows if r[3] is not None]
    alike, unlike = max(drawn, key=lambda r: r[3]), min(drawn, key=lambda r: r[3])
    says = [
        f"{stuck[0]} repeats itself most: {stuck[4]:.0%} of its runs of four tokens are not new.",
        f"The texts of {alike[0]} are most alike (self-BLEU {alike[3]:.2f}), those of {unlike[0]} least "
        f"({unlike[3]:.2f}).",
    ]
    lines = [Line(label, points) for label, points in curves.items()]
    chart = Chart("Samples and their temperature", "temperature", "share", lines)
    compared = [
        by_pairs(
            f"repeated, {stuck[0].partition(',')[0]} against {name}",
            [a - b for a, b in zip(each[stuck[0]], each[name], strict=True)],
        )
        for name in ("greedy", "sample, temperature 1.0")
    ]
    return Result(columns, rows, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """The strategy that repeats itself most, compared with greedy search and plain sampling."""
    rows = {row["strategy"]: row["repeated"] for row in rows_of(answer)}
    best = max(rows, key=rows.__getitem__)
    named = best.partition(",")[0]
    return (
        f"Of all strategies, {named} repeats itself most: {percent(rows[best])} of its runs of four tokens "
        f"have occurred before, against {percent(rows['greedy'])} for greedy search and "
        f"{percent(rows['sample, temperature 1.0'])} for sampling at temperature 1."
    )


def stands(answer: dict) -> Basis:
    """Beginnings, and seeds of the strategies that sample."""
    return Basis({"beginnings": PROMPTS, "seeds": SEEDS}, compared=as_measured(answer))
