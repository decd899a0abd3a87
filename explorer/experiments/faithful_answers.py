"""Can decoding keep an answer to its document?

Answers are sampled (temperature 1, top-k 50, top-p 0.9) where the model's own answer would be wrong: to
questions on fact sheets that it answers differently without the sheet, and on lands where the sky is green.
Context-aware decoding subtracts alpha times what the model would say after an empty document. right: the
whole answer is the document's, with a 95% interval; its own: it is what the model says greedily without the
document; overlap: the share of the answer's words that are in the document; ahead: the lead over alpha 0 in
right answers, with the standard error over questions.
"""

import math
from itertools import islice
from statistics import fmean, stdev

from decoders.trace.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.evidence import Item, answer_text, gain, overlap, sheets, unusual, words
from explorer.experiments.reading import moved, percent, rows_with
from explorer.experiments.spread import over
from visualizers.analysis.calibration import Z

PAPERS = ("context-aware-decoding-reduces-hallucination-in-query",)
COUNT, SEEDS, TOKENS = 240, 4, 5  # questions, and answers to each
ALPHAS = (0.0, 0.15, 0.3, 0.5, 1.0)  # 0 leaves the model unchanged; those of the study and 1.0
DRAWN = {"temperature": 1.0, "top_k": 50, "top_p": 0.9}  # the study's sampling parameters


def own(models: Models, item: Item) -> list[str]:
    """The words of the model's own answer, after an empty document."""
    return words(answer_text(decoded(models, "greedy", item.prompt.removeprefix(item.evidence), TOKENS)))


def asked(models: Models) -> dict[str, list[tuple[Item, list[str]]]]:
    """Kind -> questions to which the document's answer differs from the model's own, and that own answer."""
    lands = list(dict.fromkeys(unusual("unusual, asked", 2 * COUNT)))  # without duplicates
    results = {}
    for kind, items in progress.each({"fact sheets": sheets(2 * COUNT), "unusual lands": lands}.items()):
        pairs = ((item, own(models, item)) for item in progress.each(items))
        differing = (pair for pair in pairs if pair[1] != words(pair[0].right))
        results[kind] = list(islice(differing, COUNT))
    return results


def drawn(models: Models, item: Item, number: int, alpha: float) -> list[Trace]:
    """The answers to question `number`; all alphas use the same random numbers, which differ between
    questions.
    """
    given = {"alpha": alpha, "context": item.evidence, **DRAWN}
    seeds = range(number * SEEDS, (number + 1) * SEEDS)
    return [decoded(models, "context_aware", item.prompt, TOKENS, seed, **given) for seed in seeds]


def error(values: list[float]) -> float:
    """The standard error of a mean."""
    return stdev(values) / math.sqrt(len(values))


def row(
    alpha: float, questions: list[tuple[Item, list[str]]], answers: list[list[Trace]], plain: list[float]
) -> tuple[list[Cell], list[float]]:
    """The results of one alpha, and the share of right answers to each question; `plain`: those of alpha
    0.
    """
    pairs = list(zip(questions, answers, strict=True))
    texts = [(item, belief, answer_text(trace)) for (item, belief), traces in pairs for trace in traces]
    right = [fmean(words(answer_text(t)) == words(item.right) for t in traces) for (item, _), traces in pairs]
    leads = [one - other for one, other in zip(right, plain or right, strict=True)]
    share, half = fmean(right), Z * error(right)
    beliefs = fmean(words(text) == belief for _, belief, text in texts)
    shared = fmean(overlap(text, item.evidence) for item, _, text in texts)
    traces = [trace for some in answers for trace in some]
    cost = sum(t.costs.totals()["target_forwards"] for t in traces) / sum(len(t.output()) for t in traces)
    interval = [max(0.0, share - half), min(1.0, share + half)]
    cells = [alpha, share, *interval, beliefs, shared, gain(traces), cost, fmean(leads), error(leads)]
    return cells, right


def run(models: Models) -> Result:
    """One row per kind of question and alpha; curves of right answers over alpha."""
    rows, lines, says = [], [], []
    with progress.part(0.1):
        kinds = asked(models)
    for kind, questions in progress.each(kinds.items(), weight=lambda one: len(one[1])):
        mine, plain = [], []
        for alpha in progress.each(ALPHAS):
            numbered = [(item, at, alpha) for at, (item, _) in enumerate(questions)]
            answers = over(models, drawn, numbered)
            cells, right = row(alpha, questions, answers, plain)
            plain = plain or right
            mine.append(cells)
        rows += [[kind, len(questions), *cells] for cells in mine]
        lines.append(Line(kind, [cells[:4] for cells in mine]))
        says.append(comparison(f"{len(questions)} {kind}", mine))
    columns = [
        "document",
        "questions",
        "alpha",
        "right",
        "from",
        "to",
        "its own",
        "overlap",
        "gained bits",
        "forwards per token",
        "ahead",
        "± error",
    ]
    return Result(
        columns, rows, says, Chart("Drawn answers that are the document's", "alpha", "right", lines)
    )


def comparison(who: str, rows: list[list[Cell]]) -> str:
    """The change from alpha 0 to one half."""
    first, half = rows[0], next(row for row in rows if row[0] == 0.5)
    lead, spread = half[-2:]
    verb = "rise" if lead > 2 * spread else "fall" if lead < -2 * spread else "go, without a clear change,"
    ahead = f"{lead:+.3f}".replace("-", "−")
    return (
        f"{who}: right answers {verb} from {first[1]:.1%} at alpha 0 to {half[1]:.1%} at 0.5 ({ahead} ± "
        f"{spread:.3f}), and the model's own answers go from {first[4]:.1%} to {half[4]:.1%}, for "
        f"{half[7]:.1f} forwards per token."
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
