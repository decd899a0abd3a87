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

from collections.abc import Callable
from statistics import fmean, median

import torch

from decoders.constraints.trie import trie_of
from decoders.engine.engine import Engine
from explorer.experiments import Models, progress
from explorer.experiments.asked import Timed, timed
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.curves import CurvesBy
from explorer.experiments.models.item_rankers import ItemHead, Ranking, by_beam, by_names
from explorer.experiments.models.small import fit, next_loss
from explorer.experiments.models.small_llama import small_llama
from explorer.experiments.reading import Row, rows_with, two
from explorer.experiments.small_trainings.toy_catalogue import (
    NAMES,
    histories,
    name_tokens,
    name_vectors,
    ndcg,
    recall,
    true_ranking,
)
from explorer.experiments.sweep import Setting, Sweep

PAPERS = ("rethinking-large-language-model-architectures-for-sequential",)
WIDTHS = (1, 5, 20, len(NAMES))
WIDTH, LAYERS, HEADS = 96, 3, 4
HEAD_LAYERS = 2
CUSTOMERS, LENGTH, STEPS, BATCH, RATE = 4000, 8, 800, 16, 2e-3
QUESTIONS = 300
RECALL, FOUND = "Recall@10", "exact ten found"
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


def settings(models: Models) -> list[Setting]:
    """All ways to rank, the exact one first; language model and head are trained here."""
    names, vocabulary = numbered(name_tokens(models))
    with progress.part(0.1):
        vectors = name_vectors(models)
    rows = histories(CUSTOMERS, LENGTH, seed=0)
    language = small_llama(vocabulary, WIDTH, LAYERS, HEADS)
    head = ItemHead(vectors, WIDTH, HEAD_LAYERS, HEADS)

    def loss(some: torch.Tensor) -> torch.Tensor:
        return next_loss(language(some).logits, some)

    with progress.part(0.5):
        fit(language.parameters(), loss, texts_of(rows, names), STEPS, BATCH, RATE)
    with progress.part(0.5):
        fit(head.parameters(), lambda some: next_loss(head(some), some), rows, STEPS, BATCH, RATE)
    engine, trie = Engine(language.eval().requires_grad_(False)), trie_of(names)
    head.eval().requires_grad_(False)

    def text(history: list[int]) -> list[int]:
        return [0, *(token for item in history for token in names[item])]

    ways: dict[str, Callable[[list[int]], Ranking]] = {
        EXACT: lambda history: by_names(engine, text(history), trie),
        **{
            BEAM.format(width): lambda history, width=width: by_beam(engine, text(history), trie, width)
            for width in WIDTHS
        },
        HEAD: head.rank,
        TRUE: lambda history: Ranking(true_ranking(history[-1]), 0, 0),
    }
    held = histories(QUESTIONS, LENGTH + 1, seed=1).tolist()
    asked = [(row[:-1], row[-1]) for row in held]
    return [Setting((name,), parameters={"ask": ask}, cases=asked) for name, ask in ways.items()]


def measures(answers: list[Timed], exact: list[Timed]) -> Row:
    """Means over the questions; no time where no model was asked."""
    lists, best = ([one.answer.items for one in some] for some in (answers, exact))
    ranks = [
        items.index(one.right) + 1 if one.right in items else None
        for one, items in zip(answers, lists, strict=True)
    ]
    found = [len({*items[:10]} & {*others[:10]}) for items, others in zip(lists, best, strict=True)]
    forwards = fmean(one.answer.forwards for one in answers)
    return {
        "forwards": forwards,
        "read": fmean(one.answer.read for one in answers),
        "ms": 1000 * median(one.seconds for one in answers) if forwards else None,
        RECALL: recall(ranks, 10),
        "NDCG@10": ndcg(ranks, 10),
        FOUND: sum(found) / 10 / len(found),
        "ranked": fmean(map(len, lists)),
    }


def says(rows: list[Row]) -> list[str]:
    """The beams against the exact scores, the head against both, and all against the truth."""
    by_way = {row["way"]: row for row in rows}
    exact, head, true = (by_way[name] for name in (EXACT, HEAD, TRUE))
    narrow, wide = (by_way[BEAM.format(width)] for width in (WIDTHS[1], WIDTHS[-1]))
    return [
        f"A beam as wide as the list finds {wide[FOUND]:.0%} of the ten items with the best exact scores, a "
        f"beam of {WIDTHS[1]} finds {narrow[FOUND]:.0%}.",
        f"The head reads {head['read']:.0f} vectors in one forward, however long the names are; the beam of "
        f"{WIDTHS[1]} reads {narrow['read']:.0f} tokens in {narrow['forwards']:.1f} forwards, and the exact "
        f"scores {exact['read']:.0f} tokens in one.",
        f"Recall@10 is {exact[RECALL]:.3f} for the exact scores, {head[RECALL]:.3f} for the head and "
        f"{true[RECALL]:.3f} for the customers' own probabilities, which only luck can beat.",
        "A new item is a new path for the beam and for the exact scores; the head has no row for it until it "
        "is trained again.",
    ]


SWEEP = Sweep(
    names=("way",),
    settings=settings,
    decode=timed,
    measures=measures,
    says=says,
    chart=CurvesBy(
        "The right item among the first ten",
        "tokens read",
        RECALL,
        lambda row: row["way"].partition(" of ")[0],
        ("read", RECALL),
        where=lambda row: row["way"] != TRUE,
        log=True,
    ),
    order=lambda row: (row["way"] in (HEAD, TRUE), row["way"] == EXACT),
    one_process=True,
)


def finding(answer: dict) -> str:
    """Cost and quality of the head against those of a beam over names."""
    (head,), (beam,) = rows_with(answer, "way", HEAD), rows_with(answer, "way", BEAM.format(20))
    return (
        f"One forward of an item head ranks all 512 items in {head['ms']:.1f} ms with a Recall@10 of "
        f"{two(head[RECALL])}, and a beam of 20 over their names takes {beam['forwards']:.1f} forwards "
        f"and {beam['ms']:.1f} ms for {two(beam[RECALL])}."
    )


def stands(answer: dict) -> Basis:
    """Questions to models that were trained once."""
    (head,), (beam,) = rows_with(answer, "way", HEAD), rows_with(answer, "way", BEAM.format(20))
    compared = by_shares("Recall@10, head against beam", head[RECALL], beam[RECALL], QUESTIONS)
    return Basis({"questions": QUESTIONS}, trained=1, compared=[compared])
