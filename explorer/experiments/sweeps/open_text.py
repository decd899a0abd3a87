"""Which strategies repeat themselves?

Every strategy continues the same beginnings of stories; those that sample do so with several seeds. distinct:
the share of distinct token bigrams and trigrams among the texts of one beginning; self-BLEU: how similar they
are, 1 if all are equal; repeated: the share of a text's runs of four tokens that have occurred before; nats:
how surprising the target finds a token of the text, on average.
"""

from statistics import fmean
from typing import Any

from explorer.experiments import Models
from explorer.experiments.asked import decoded, own_logprob, prompts
from explorer.experiments.curves import over_temperatures
from explorer.experiments.reading import Row, highest, lowest, percent, rows_of
from explorer.experiments.statistics import distinct, repetition, self_bleu
from explorer.experiments.sweep import Difference, Setting, Sweep, titled

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
TEMPERATURES = {titled(*one): one[1]["temperature"] for one in SETTINGS if "temperature" in one[1]}
GREEDY, PLAIN = "greedy", titled("sample", {"temperature": 1.0})  # with which the most repetitive is compared


def continued(models: Models, strategy: str, beginning: str, **parameters: Any) -> Row:
    """How alike and repetitive the texts after one beginning are, and how surprising a token; several texts
    if the strategy draws. self-BLEU needs several.
    """
    seeds = range(SEEDS if strategy in DRAWING else 1)
    traces = [decoded(models, strategy, beginning, TOKENS, seed, **parameters) for seed in seeds]
    texts = [trace.output() for trace in traces]
    return {
        "distinct-2": distinct(texts, 2),
        "distinct-3": distinct(texts, 3),
        "self-BLEU": self_bleu(texts) if len(texts) > 1 else None,
        "repeated": fmean(map(repetition, texts)),
        "nats": fmean(-own_logprob(models, one.prompt, one.output()) / len(one.output()) for one in traces),
    }


def most_repeated(rows: list[Row]) -> Row:
    """The setting that repeats itself most."""
    return highest(rows, "repeated")


def says(rows: list[Row]) -> list[str]:
    """The extremes in repetition and in likeness."""
    stuck, drawn = most_repeated(rows), [row for row in rows if row["self-BLEU"] is not None]
    alike, unlike = (pick(drawn, "self-BLEU") for pick in (highest, lowest))
    return [
        f"{stuck['strategy']} repeats itself most: {stuck['repeated']:.0%} of its runs of four tokens are "
        "not new.",
        f"The texts of {alike['strategy']} are most alike (self-BLEU {alike['self-BLEU']:.2f}), those of "
        f"{unlike['strategy']} least ({unlike['self-BLEU']:.2f}).",
    ]


def more_than(name: str) -> Difference:
    """The setting that repeats itself most against another."""
    return Difference(
        lambda stuck, row: f"repeated, {stuck['strategy'].partition(',')[0]} against {name}",
        "repeated",
        lambda rows: (most_repeated(rows), next(row for row in rows if row["strategy"] == name)),
    )


SWEEP = Sweep(
    names=("strategy",),
    settings=lambda models: [
        Setting((titled(*one),), *one, [(beginning,) for beginning in prompts("stories", PROMPTS)])
        for one in SETTINGS
    ],
    decode=continued,
    says=says,
    chart=over_temperatures(
        "Samples and their temperature", "strategy", TEMPERATURES, ("distinct-3", "repeated", "self-BLEU")
    ),
    differences=(more_than(GREEDY), more_than(PLAIN)),
    sampled={"beginnings": PROMPTS, "seeds": SEEDS},
)


def finding(answer: dict) -> str:
    """The strategy that repeats itself most, compared with greedy search and plain sampling."""
    rows = {row["strategy"]: row["repeated"] for row in rows_of(answer)}
    best = max(rows, key=rows.__getitem__)
    named = best.partition(",")[0]
    return (
        f"Of all strategies, {named} repeats itself most: {percent(rows[best])} of its runs of four tokens "
        f"have occurred before, against {percent(rows[GREEDY])} for greedy search and "
        f"{percent(rows[PLAIN])} for sampling at temperature 1."
    )
