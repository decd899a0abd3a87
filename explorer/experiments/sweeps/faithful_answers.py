"""Can decoding keep an answer to its document?

Answers are sampled (temperature 1, top-k 50, top-p 0.9) where the model's own answer would be wrong: to
questions on fact sheets that it answers differently without the sheet, and on lands where the sky is green.
Context-aware decoding subtracts alpha times what the model would say after an empty document. right: the
whole answer is the document's, with a 95% interval; its own: it is what the model says greedily without the
document; overlap: the share of the answer's words that are in the document; ahead: the lead over alpha 0 in
right answers, with the standard error over questions.
"""

import math
from dataclasses import dataclass
from itertools import islice
from statistics import fmean, stdev
from typing import Any

from decoders.trace.trace import Trace
from explorer.experiments import Models, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.curves import CurvesBy
from explorer.experiments.reading import Row, grouped, moved, percent, rows_with
from explorer.experiments.statistics import lead
from explorer.experiments.sweep import Setting, Sweep
from explorer.experiments.sweeps.evidence import (
    Item,
    answer_text,
    gained_bits,
    gains,
    overlap,
    sheets,
    unusual,
    words,
)
from visualizers.analysis.calibration import Z

PAPERS = ("context-aware-decoding-reduces-hallucination-in-query",)
COUNT, SEEDS, TOKENS = 240, 4, 5  # questions, and answers to each
ALPHAS = (0.0, 0.15, 0.3, 0.5, 1.0)  # 0 leaves the model unchanged; those of the study and 1.0
DRAWN = {"temperature": 1.0, "top_k": 50, "top_p": 0.9}  # the study's sampling parameters


def own(models: Models, item: Item) -> list[str]:
    """The words of the model's own answer, after an empty document."""
    return words(answer_text(decoded(models, "greedy", item.prompt.removeprefix(item.evidence), TOKENS)))


def asked(models: Models) -> dict[str, list[tuple[int, Item, list[str]]]]:
    """Kind -> questions to which the document's answer differs from the model's own: number, question, own
    answer.
    """
    lands = list(dict.fromkeys(unusual("unusual, asked", 2 * COUNT)))  # without duplicates
    results = {}
    for kind, items in progress.each({"fact sheets": sheets(2 * COUNT), "unusual lands": lands}.items()):
        pairs = ((item, own(models, item)) for item in progress.each(items))
        differing = (pair for pair in pairs if pair[1] != words(pair[0].right))
        results[kind] = [(at, *pair) for at, pair in enumerate(islice(differing, COUNT))]
    return results


@dataclass(frozen=True)
class Drawn:
    """The answers to a question: which are right, and which are the model's own; the overlap of each; the
    nats by which the document made each token more likely; and what all cost.
    """

    right: list[bool]
    own: list[bool]
    overlaps: list[float]
    gains: list[float]
    forwards: int
    tokens: int


def drawn(
    models: Models, strategy: str, number: int, item: Item, belief: list[str], **parameters: Any
) -> Drawn:
    """The answers to question `number`; all alphas use the same random numbers, which differ between
    questions.
    """
    given = {"context": item.evidence, **DRAWN, **parameters}
    seeds = range(number * SEEDS, (number + 1) * SEEDS)
    return judged(
        [decoded(models, strategy, item.prompt, TOKENS, seed, **given) for seed in seeds], item, belief
    )


def judged(traces: list[Trace], item: Item, belief: list[str]) -> Drawn:
    """What the answers to a question say."""
    texts = [answer_text(trace) for trace in traces]
    right, own = ([words(text) == wanted for text in texts] for wanted in (words(item.right), belief))
    return Drawn(
        right,
        own,
        [overlap(text, item.evidence) for text in texts],
        [one for trace in traces for one in gains(trace)],
        sum(trace.costs.totals()["target_forwards"] for trace in traces),
        sum(len(trace.output()) for trace in traces),
    )


def settings(models: Models) -> list[Setting]:
    """Every kind of question with every alpha."""
    with progress.part(0.1):
        kinds = asked(models)
    return [
        Setting((kind, len(cases), alpha), "context_aware", {"alpha": alpha}, cases)
        for kind, cases in kinds.items()
        for alpha in ALPHAS
    ]


def measures(questions: list[Drawn], plain: list[Drawn]) -> Row:
    """The results of one alpha; `plain`: those of alpha 0."""
    right, before = ([fmean(one.right) for one in some] for some in (questions, plain))
    share, half = fmean(right), Z * stdev(right) / math.sqrt(len(right))
    ahead, error = lead(right, before)
    return {
        "right": share,
        "from": max(0.0, share - half),
        "to": min(1.0, share + half),
        "its own": fmean(own for question in questions for own in question.own),
        "overlap": fmean(shared for question in questions for shared in question.overlaps),
        "gained bits": gained_bits(one.gains for one in questions),
        "forwards per token": sum(one.forwards for one in questions) / sum(one.tokens for one in questions),
        "ahead": ahead,
        "± error": error,
    }


def says(rows: list[Row]) -> list[str]:
    """The change from alpha 0 to one half, for each kind of question."""
    return [comparison(own) for own in grouped(rows, "document").values()]


def comparison(rows: list[Row]) -> str:
    """The change from alpha 0 to one half."""
    first, half = rows[0], next(row for row in rows if row["alpha"] == 0.5)
    lead, spread = half["ahead"], half["± error"]
    verb = "rise" if lead > 2 * spread else "fall" if lead < -2 * spread else "go, without a clear change,"
    return (
        f"{first['questions']} {first['document']}: right answers {verb} from {first['right']:.1%} at alpha "
        f"0 to {half['right']:.1%} at 0.5 ({lead:+.3f} ± {spread:.3f}), and the model's own answers go from "
        f"{first['its own']:.1%} to {half['its own']:.1%}, for {half['forwards per token']:.1f} forwards per "
        "token."
    )


SWEEP = Sweep(
    names=("document", "questions", "alpha"),
    settings=settings,
    decode=drawn,
    measures=measures,
    within="document",
    says=says,
    chart=CurvesBy(
        "Drawn answers that are the document's",
        "alpha",
        "right",
        "document",
        ("alpha", "right", "from", "to"),
    ),
    sampled={"questions": COUNT, "answers to each": SEEDS},
)


def finding(answer: dict) -> str:
    """From plain decoding to the largest alpha, where documents contradict what is usual."""
    rows = rows_with(answer, "document", "unusual lands")
    return (
        "Where a document contradicts what is usual, the share of answers that follow it "
        f"{moved(rows[0]['right'], rows[-1]['right'], percent)} when decoding subtracts what the model would "
        f"say without the document; a token then takes {rows[-1]['forwards per token']:.0f} forwards."
    )


def stands(answer: dict) -> Basis:
    """Questions with several drawn answers each."""
    last = rows_with(answer, "document", "unusual lands")[-1]
    compared = by_error("answers that follow the document", last["ahead"], last["± error"])
    return Basis({"questions": last["questions"], "answers to each": SEEDS}, compared=[compared])
