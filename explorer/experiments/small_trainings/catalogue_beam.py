"""Does a beam over item codes find the best item of a catalogue?

RecGPT (Jiang et al. 2025) encodes an item as four codes, predicts the four codes of the next item in one
forward, and searches them with a beam that is restricted to the codes of real items. This repeats the codes,
the prediction and the beam on a stand-in: 512 toy items ("small red ball"), whose codes come from the
target's hidden states of their names, and invented customers; the results on recommendation hold for these
alone. The four predictions are independent of each other, so an item's score is a sum of four numbers, and
all 512 sums are quick to compute: how often does the beam miss the item with the highest sum? "random":
random scores for items with random codes, 64 for each part.
"""

import math

import torch

from decoders.constraints.trie import TrieNode, trie_of
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.models.item_codes import (
    PARTS,
    CodeModel,
    Ranked,
    Widths,
    beam,
    exact,
    latents_of,
    quantised,
)
from explorer.experiments.models.small import fit
from explorer.experiments.pictures import Heat, Strip
from explorer.experiments.reading import percent, rows_of, rows_with
from explorer.experiments.small_trainings.toy_catalogue import (
    NAMES,
    histories,
    name_vectors,
    recall,
    true_ranking,
)

PAPERS = ("recgpt",)
PUBLISHED: Widths = (10, 5, 20)
WIDTHS: tuple[Widths, ...] = ((1, 1, 1), (5, 3, 10), PUBLISHED, (40, 20, 80), (512, 512, 512))
WIDTH, LAYERS, HEADS = 96, 3, 4
CUSTOMERS, LENGTH, STEPS, BATCH, RATE = 4000, 8, 1500, 16, 2e-3
QUESTIONS, RANDOM_QUESTIONS, RANDOM_CODES = 400, 1000, 64
LISTED = 10  # items in the picture


def renumbered(codes: torch.Tensor) -> torch.Tensor:
    """Codes [I, 4], renumbered by their rank among those that occur; most of the 15,360 do not."""
    return codes.unique(return_inverse=True)[1]


def trained(codes: torch.Tensor, latents: torch.Tensor) -> CodeModel:
    """A code model trained on the items that customers took."""
    model = CodeModel(int(codes.max()) + 1, WIDTH, LAYERS, HEADS, LENGTH)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        logits = model(codes[rows[:, :-1]], latents[rows[:, :-1]])  # [B, N, 4, V]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 2), codes[rows[:, 1:]].flatten())

    fit(model.parameters(), loss, histories(CUSTOMERS, LENGTH, seed=0), STEPS, BATCH, RATE)
    return model.eval().requires_grad_(False)


def random_questions() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Random logits [4, 64] and random codes [512, 4], one pair per question."""
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn((PARTS, RANDOM_CODES), generator=generator) for _ in range(RANDOM_QUESTIONS)]
    codes = [
        torch.randint(RANDOM_CODES, (len(NAMES), PARTS), generator=generator) for _ in range(RANDOM_QUESTIONS)
    ]
    return logits, codes


def compared(ranked: Ranked, best: Ranked) -> tuple[bool, float]:
    """Whether the beam's first item is the best of all, and the share of the best five in its first five."""
    shared = set(ranked.items[:5]) & set(best.items[:5])
    return ranked.items[:1] == best.items[:1], len(shared) / len(best.items[:5])


def run(models: Models) -> Result:
    """One row per set of scores and widths."""
    with progress.part(0.1):
        latents = latents_of(name_vectors(models))
    raw = quantised(latents)
    codes = renumbered(raw)
    with progress.part(0.8):
        model = trained(codes, latents)
    asked = histories(QUESTIONS, LENGTH + 1, seed=1)
    logits = list(model(codes[asked[:, :-1]], latents[asked[:, :-1]])[:, -1])
    right = asked[:, -1].tolist()
    meant = same_codes(codes)
    random_logits, random_codes = random_questions()
    sets = {
        "trained model": (logits, [codes] * QUESTIONS, [meant[item] for item in right]),
        "random": (random_logits, random_codes, None),
    }
    table: list[list[Cell]] = []
    for name, (each, items, wanted) in progress.each(sets.items()):
        table += measured(name, each, items, wanted)
    columns = ["scores", "widths", "best first", "best five found", "codes evaluated", "Recall@10"]
    lines = [
        Line(name, [[row[4], row[2]] for row in table if row[0] == name and row[1] != "all sums"])
        for name in sets
    ]
    chart = Chart("The beam's first item is the best of all", "codes evaluated", "share", lines, log=True)
    says = conclusions(table, raw, asked)
    return Result(columns, table, says, chart, pictures=[drawn(telling(logits, codes), codes)])


def same_codes(codes: torch.Tensor) -> list[int]:
    """For each item the one that its codes denote: the last item with the same codes."""
    last = {tuple(code): item for item, code in enumerate(codes.tolist())}
    return [last[tuple(code)] for code in codes.tolist()]


def measured(
    name: str, logits: list[torch.Tensor], codes: list[torch.Tensor], right: list[int] | None
) -> list[list[Cell]]:
    """Rows for all widths, and one for the sums of all items."""
    best = [exact(*pair) for pair in zip(logits, codes, strict=True)]
    tries: dict[int, TrieNode] = {}
    roots = [tries.setdefault(id(some), trie_of(some.tolist())) for some in codes]
    by_widths = {
        str(widths): [beam(*pair, widths) for pair in zip(logits, roots, strict=True)] for widths in WIDTHS
    }
    table: list[list[Cell]] = []
    for label, ranked in (by_widths | {"all sums": best}).items():
        hits = [compared(one, other) for one, other in zip(ranked, best, strict=True)]
        ranks = None
        if right is not None:
            places = [{item: at for at, item in enumerate(one.items, 1)} for one in ranked]
            ranks = [place.get(item) for place, item in zip(places, right, strict=True)]
        table.append(
            [
                name,
                label.strip("()").replace(", ", " / "),
                sum(first for first, _ in hits) / len(hits),
                sum(share for _, share in hits) / len(hits),
                sum(one.num_evaluated for one in ranked) / len(ranked),
                None if ranks is None else recall(ranks, 10),
            ]
        )
    return table


def telling(logits: list[torch.Tensor], codes: torch.Tensor) -> torch.Tensor:
    """The first question in which the beam misses some of the ten best items, otherwise the first of all."""
    root = trie_of(codes.tolist())
    for one in logits:
        if set(exact(one, codes).items[:LISTED]) - set(beam(one, root, PUBLISHED).items):
            return one
    return logits[0]


def drawn(logits: torch.Tensor, codes: torch.Tensor) -> Heat:
    """The best items of one question: what each code adds to their sums, and which of them the beam
    missed.
    """
    best, ranked = exact(logits, codes), beam(logits, trie_of(codes.tolist()), PUBLISHED)
    rank = {item: at for at, item in enumerate(ranked.items, 1)}
    logprobs = logits.log_softmax(-1)
    rows = []
    for at, item in enumerate(best.items[:LISTED], 1):
        rank_text = f"number {rank[item]} of the beam" if item in rank else "missed by the beam"
        adds = [float(logprobs[part, code]) for part, code in enumerate(codes[item].tolist())]
        rows.append(Strip(f"{at} {NAMES[item]}, {rank_text}", [NAMES[item]], [[value] for value in adds]))
    low = float(math.floor(min(value for row in rows for (value,) in row.values)))
    columns = [f"code {part + 1}" for part in range(PARTS)]
    return Heat("The ten best items of one question", "log p of the code", columns, rows, low, 0.0)


def conclusions(table: list[list[Cell]], raw: torch.Tensor, asked: torch.Tensor) -> list[str]:
    """The conclusions, as sentences."""
    rows = {(row[0], row[1]): row for row in table}
    label = " / ".join(map(str, PUBLISHED))
    full, sums = (rows["trained model", name] for name in (" / ".join(map(str, WIDTHS[-1])), "all sums"))
    shared = len(NAMES) - len({tuple(code) for code in raw.tolist()})
    ideal = [1 + true_ranking(last).index(wanted) for last, wanted in asked[:, -2:].tolist()]
    return [
        f"A beam as wide as the catalogue puts the best item first in {full[2]:.0%} of the questions: it "
        "equals the sums of all items.",
        f"The beam of {label} evaluates {rows['trained model', label][4]:.0f} codes of the trained model; "
        f"the sums need {sums[4]:.0f} numbers and no search, since no prediction depends on another.",
        f"{shared} of {len(NAMES)} items have the same four codes as a later one, which then counts as the "
        "item meant.",
        f"Recall@10 of the sums is {sums[5]:.3f}, and that of the customers' own probabilities "
        f"{recall(ideal, 10):.3f}: figures of invented customers.",
    ]


def finding(answer: dict) -> str:
    """How often the published widths miss the best item."""
    label = " / ".join(map(str, PUBLISHED))
    known = {row["scores"]: row["best first"] for row in rows_of(answer) if row["widths"] == label}
    return (
        "A beam of the published widths puts the best of 512 items first in "
        f"{percent(known['trained model'])} of the questions with a trained model and in "
        f"{percent(known['random'])} with random scores, where adding up four numbers for each item never "
        "misses it."
    )


def stands(answer: dict) -> Basis:
    """Questions to a model that was trained once; random scores have questions of their own."""
    label = " / ".join(map(str, PUBLISHED))
    best = {row["scores"]: row["best first"] for row in rows_with(answer, "widths", label)}
    trained, chance = best["trained model"], best["random"]
    compared = by_shares(
        "best item first, trained against random", trained, QUESTIONS, chance, RANDOM_QUESTIONS
    )
    return Basis(
        {"questions": QUESTIONS, "questions with random scores": RANDOM_QUESTIONS},
        trained=1,
        compared=[compared],
    )
