"""When is decoding unnecessary?

If an answer is one of a known list, a beam over the tokens of its name does in many forwards what a linear
layer over the list does in one (Lite-LLM4Rec, Wang et al. 2024). The same question, "what does this customer
take next?", on a stand-in of 512 toy items and invented customers: a small language model of names, trained
here, is searched by a beam that is restricted to the names, or asked for the exact probability of every name;
and a head, trained here too, reads one vector per item of the history (the mean of the target's hidden states
of its name, computed once) and has a row for each item. ms: on this machine, for one question, the median of
all. The results on recommendation hold for these customers alone. A new item is a new path of the trie for
the beam and the exact scores; the head must be trained again.
"""

import time
from collections.abc import Callable
from statistics import median

import torch

from decoders.constraints.trie import trie_of
from decoders.engine.engine import Engine
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.item_rankers import ItemHead, Ranking, by_beam, by_names
from explorer.experiments.models.small import fit, next_loss
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.reading import rows_with, two
from explorer.experiments.small_trainings.toy_catalogue import (
    NAMES,
    histories,
    name_tokens,
    name_vectors,
    ndcg,
    recall,
    true_ranking,
)

PAPERS = ("rethinking-large-language-model-architectures-for-sequential",)
WIDTHS = (1, 5, 20, len(NAMES))
WIDTH, LAYERS, HEADS = 96, 3, 4
HEAD_LAYERS = 2
CUSTOMERS, LENGTH, STEPS, BATCH, RATE = 4000, 8, 800, 16, 2e-3
QUESTIONS = 300
BEAM, EXACT, HEAD, TRUE = "beam of {}", "exact scores", "item head", "the customers' own probabilities"


def numbered(names: list[list[int]]) -> tuple[list[list[int]], int]:
    """Names as tokens renumbered from 1, each ending with 0; and the number of distinct tokens."""
    numbers = {token: at for at, token in enumerate(sorted({t for name in names for t in name}), 1)}
    return [[*(numbers[token] for token in name), 0] for name in names], len(numbers) + 1


def texts_of(rows: torch.Tensor, names: list[list[int]]) -> torch.Tensor:
    """Histories [R, N] as tokens [R, T]: an end token, then their names; cut to the shortest."""
    texts = [[0, *(token for item in row for token in names[item])] for row in rows.tolist()]
    shortest = min(map(len, texts))
    return torch.tensor([text[:shortest] for text in texts])


def taken(ask: Callable[[list[int]], Ranking], asked: list[list[int]]) -> tuple[list[Ranking], float]:
    """The rankings of all questions, and the median time in milliseconds."""
    rankings, seconds = [], []
    ask(asked[0])  # the first call is a warm-up
    for history in asked:
        start = time.perf_counter()
        rankings.append(ask(history))
        seconds.append(time.perf_counter() - start)
    return rankings, 1000 * median(seconds)


def run(models: Models) -> Result:
    """One row per way."""
    names, vocabulary = numbered(name_tokens(models))
    with progress.part(0.1):
        vectors = name_vectors(models)
    rows = histories(CUSTOMERS, LENGTH, seed=0)
    language, head = (
        small_llama(vocabulary, WIDTH, LAYERS, HEADS),
        ItemHead(vectors, WIDTH, HEAD_LAYERS, HEADS),
    )
    with progress.part(0.5):
        texts = texts_of(rows, names)
        fit(
            language.parameters(),
            lambda some: next_loss(language(some).logits, some),
            texts,
            STEPS,
            BATCH,
            RATE,
        )
    with progress.part(0.5):
        fit(head.parameters(), lambda some: next_loss(head(some), some), rows, STEPS, BATCH, RATE)
    engine, trie = Engine(language.eval().requires_grad_(False)), trie_of(names)
    head.eval().requires_grad_(False)
    held = histories(QUESTIONS, LENGTH + 1, seed=1).tolist()
    asked, right = [row[:-1] for row in held], [row[-1] for row in held]

    def text(history: list[int]) -> list[int]:
        return [0, *(token for item in history for token in names[item])]

    ways: dict[str, Callable[[list[int]], Ranking]] = {
        BEAM.format(width): lambda history, width=width: by_beam(engine, text(history), trie, width)
        for width in WIDTHS
    }
    ways |= {EXACT: lambda history: by_names(engine, text(history), trie), HEAD: head.rank}
    results = {name: taken(ask, asked) for name, ask in progress.each(ways.items())}
    ideal = [Ranking(true_ranking(history[-1]), 0, 0) for history in asked]
    table = [row(name, *measured, right, results[EXACT][0]) for name, measured in results.items()]
    table.append(row(TRUE, ideal, None, right, results[EXACT][0]))
    columns = ["way", "forwards", "read", "ms", "Recall@10", "NDCG@10", "exact ten found", "ranked"]
    line = Line("beam", [[float(one[2]), one[4]] for one in table[: len(WIDTHS)]])
    others = [Line(one[0], [[float(one[2]), one[4]]]) for one in table[len(WIDTHS) : -1]]
    chart = Chart("The right item among the first ten", "tokens read", "Recall@10", [line, *others], log=True)
    return Result(columns, table, conclusions(table), chart)


def row(
    name: str, rankings: list[Ranking], ms: float | None, right: list[int], exact: list[Ranking]
) -> list[Cell]:
    """A way's row in the table: means over the questions."""
    ranks = [
        one.items.index(item) + 1 if item in one.items else None
        for one, item in zip(rankings, right, strict=True)
    ]
    tens = [set(one.items[:10]) & set(other.items[:10]) for one, other in zip(rankings, exact, strict=True)]
    means = [sum(getattr(one, what) for one in rankings) / len(rankings) for what in ("forwards", "read")]
    ranked = sum(len(one.items) for one in rankings) / len(rankings)
    return [
        name,
        *means,
        ms,
        recall(ranks, 10),
        ndcg(ranks, 10),
        sum(map(len, tens)) / 10 / len(tens),
        ranked,
    ]


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    rows = {one[0]: one for one in table}
    exact, head, narrow = rows[EXACT], rows[HEAD], rows[BEAM.format(WIDTHS[1])]
    return [
        f"A beam as wide as the list finds {rows[BEAM.format(WIDTHS[-1])][6]:.0%} of the ten items with the "
        f"best exact scores, a beam of {WIDTHS[1]} finds {narrow[6]:.0%}.",
        f"The head reads {head[2]:.0f} vectors in one forward, however long the names are; the beam of "
        f"{WIDTHS[1]} reads {narrow[2]:.0f} tokens in {narrow[1]:.1f} forwards, and the exact scores "
        f"{exact[2]:.0f} tokens in one.",
        f"Recall@10 is {exact[4]:.3f} for the exact scores, {head[4]:.3f} for the head and "
        f"{rows[TRUE][4]:.3f} for the customers' own probabilities, which are beaten by luck alone.",
        "A new item is a new path for the beam and for the exact scores; the head has no row for it until it "
        "is trained again.",
    ]


def finding(answer: dict) -> str:
    """Cost and quality of the head against those of a beam over names."""
    (head,), (beam,) = rows_with(answer, "way", HEAD), rows_with(answer, "way", BEAM.format(20))
    return (
        f"One forward of an item head ranks all 512 items in {head['ms']:.1f} ms with a Recall@10 of "
        f"{two(head['Recall@10'])}, and a beam of 20 over their names takes {beam['forwards']:.1f} forwards "
        f"and {beam['ms']:.1f} ms for {two(beam['Recall@10'])}."
    )


def stands(answer: dict) -> Basis:
    """Questions to models that were trained once."""
    (head,), (beam,) = rows_with(answer, "way", HEAD), rows_with(answer, "way", BEAM.format(20))
    shares = head["Recall@10"], QUESTIONS, beam["Recall@10"], QUESTIONS
    compared = by_shares("Recall@10, head against beam", *shares)
    return Basis({"questions": QUESTIONS}, trained=1, compared=[compared])
