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
from explorer.experiments import Models, Result, progress
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.curves import CurvesBy
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
from explorer.experiments.reading import Row, percent, rows_with
from explorer.experiments.small_trainings.toy_catalogue import (
    NAMES,
    histories,
    name_vectors,
    recall,
    true_ranking,
)
from explorer.experiments.sweep import Setting, Sweep, concluded, swept

PAPERS = ("recgpt",)
PUBLISHED: Widths = (10, 5, 20)
WIDTHS: tuple[Widths, ...] = ((1, 1, 1), (5, 3, 10), PUBLISHED, (40, 20, 80), (512, 512, 512))
LABELS = {widths: " / ".join(map(str, widths)) for widths in WIDTHS}
WIDTH, LAYERS, HEADS = 96, 3, 4
CUSTOMERS, LENGTH, STEPS, BATCH, RATE = 4000, 8, 1500, 16, 2e-3
QUESTIONS, RANDOM_QUESTIONS, RANDOM_CODES = 400, 1000, 64
LISTED = 10  # items in the picture
TRAINED, SUMS, FIRST, EVALUATED = "trained model", "all sums", "best first", "codes evaluated"
# Logits [4, V] of the next item's codes, the items' codes [I, 4] and their trie, and the right item if known.
Question = tuple[torch.Tensor, torch.Tensor, TrieNode, int | None]


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


def random_questions() -> list[Question]:
    """Random logits [4, 64], each with random codes [512, 4] of its own."""
    generator = torch.Generator().manual_seed(0)
    logits = [torch.randn((PARTS, RANDOM_CODES), generator=generator) for _ in range(RANDOM_QUESTIONS)]
    codes = [
        torch.randint(RANDOM_CODES, (len(NAMES), PARTS), generator=generator) for _ in range(RANDOM_QUESTIONS)
    ]
    return [(*pair, trie_of(pair[1].tolist()), None) for pair in zip(logits, codes, strict=True)]


def asked(models: Models) -> list[Question]:
    """The next items of customers whom the trained model has not seen."""
    with progress.part(0.1):
        latents = latents_of(name_vectors(models))
    codes = renumbered(quantised(latents))
    with progress.part(0.8):
        model = trained(codes, latents)
    rows, meant, root = histories(QUESTIONS, LENGTH + 1, seed=1), same_codes(codes), trie_of(codes.tolist())
    logits = model(codes[rows[:, :-1]], latents[rows[:, :-1]])[:, -1]
    return [(one, codes, root, meant[item]) for one, item in zip(logits, rows[:, -1].tolist(), strict=True)]


def settings(models: Models) -> list[Setting]:
    """Beams of all widths, and the sums of all items, on the questions of both sets."""
    ways = {label: widths for widths, label in LABELS.items()} | {SUMS: None}
    sets = {TRAINED: asked(models), "random": random_questions()}
    cases = {name: [(question,) for question in questions] for name, questions in sets.items()}
    return [
        Setting((name, label), parameters={"widths": widths}, cases=cases[name])
        for name in sets
        for label, widths in ways.items()
    ]


def answered(models: Models, question: Question, widths: Widths | None) -> Row:
    """How good the items of a beam are, or those of the sums, and whether the right one is among them."""
    logits, codes, root, right = question
    best = exact(logits, codes)
    found = best if widths is None else beam(logits, root, widths)
    first, five = compared(found, best)
    places = {item: at for at, item in enumerate(found.items, 1)}
    return {
        FIRST: first,
        "best five found": five,
        EVALUATED: found.num_evaluated,
        "Recall@10": None if right is None else recall([places.get(right)], 10),
    }


def compared(found: Ranked, best: Ranked) -> tuple[bool, float]:
    """Whether the beam's first item is the best of all, and the share of the best five in its first five."""
    shared = set(found.items[:5]) & set(best.items[:5])
    return found.items[:1] == best.items[:1], len(shared) / len(best.items[:5])


def same_codes(codes: torch.Tensor) -> list[int]:
    """For each item the one that its codes denote: the last item with the same codes."""
    last = {tuple(code): item for item, code in enumerate(codes.tolist())}
    return [last[tuple(code)] for code in codes.tolist()]


def telling(questions: list[Question]) -> Question:
    """The first question in which the beam misses some of the ten best items, otherwise the first of all."""
    for one in questions:
        logits, codes, root, _ = one
        if set(exact(logits, codes).items[:LISTED]) - set(beam(logits, root, PUBLISHED).items):
            return one
    return questions[0]


def drawn(logits: torch.Tensor, codes: torch.Tensor, root: TrieNode, _: int | None) -> Heat:
    """The best items of one question: what each code adds to their sums, and which of them the beam
    missed.
    """
    best, ranked = exact(logits, codes), beam(logits, root, PUBLISHED)
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


def says(rows: list[Row]) -> list[str]:
    """The widest beam, and the published one against the sums."""
    by = {(row["scores"], row["widths"]): row for row in rows}
    full, beams, sums = (by[TRAINED, name] for name in (LABELS[WIDTHS[-1]], LABELS[PUBLISHED], SUMS))
    return [
        f"A beam as wide as the catalogue puts the best item first in {full[FIRST]:.0%} of the questions: it "
        "equals the sums of all items.",
        f"The beam of {LABELS[PUBLISHED]} evaluates {beams[EVALUATED]:.0f} codes of the trained model; the "
        f"sums need {sums[EVALUATED]:.0f} numbers and no search, since no prediction depends on another.",
    ]


SWEEP = Sweep(
    names=("scores", "widths"),
    settings=settings,
    decode=answered,
    within="scores",
    says=says,
    chart=CurvesBy(
        "The beam's first item is the best of all",
        EVALUATED,
        "share",
        "scores",
        (EVALUATED, FIRST),
        where=lambda row: row["widths"] != SUMS,
        log=True,
    ),
    one_process=True,
)


def run(models: Models) -> Result:
    """The sweep, with one question of the trained model, and what of its recall is possible."""
    made = swept(models, SWEEP)
    questions, sums = [one for (one,) in made.settings[0].cases], made.rows[len(WIDTHS)]
    shared = len(NAMES) - len({tuple(code) for code in questions[0][1].tolist()})
    asked = histories(QUESTIONS, LENGTH + 1, seed=1).tolist()
    ideal = [1 + true_ranking(last).index(wanted) for *_, last, wanted in asked]
    after = [
        f"{shared} of {len(NAMES)} items have the same four codes as a later one, which then counts as the "
        "item meant.",
        f"Recall@10 of the sums is {sums['Recall@10']:.3f}, and that of the customers' own probabilities "
        f"{recall(ideal, 10):.3f}: figures of invented customers.",
    ]
    return concluded(made, SWEEP, after=after, pictures=[drawn(*telling(questions))])


def finding(answer: dict) -> str:
    """How often the published widths miss the best item."""
    known = {row["scores"]: row[FIRST] for row in rows_with(answer, "widths", LABELS[PUBLISHED])}
    return (
        f"A beam of the published widths puts the best of 512 items first in {percent(known[TRAINED])} of "
        f"the questions with a trained model and in {percent(known['random'])} with random scores, where "
        "adding up four numbers for each item never misses it."
    )


def stands(answer: dict) -> Basis:
    """Questions to a model that was trained once; random scores have questions of their own."""
    best = {row["scores"]: row[FIRST] for row in rows_with(answer, "widths", LABELS[PUBLISHED])}
    shares, many = (best[TRAINED], best["random"]), (QUESTIONS, RANDOM_QUESTIONS)
    compared = by_shares("best item first, trained against random", *shares, *many)
    units = {"questions": QUESTIONS, "questions with random scores": RANDOM_QUESTIONS}
    return Basis(units, trained=1, compared=[compared])
