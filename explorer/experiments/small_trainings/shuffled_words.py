"""Can shuffled words be put in order all at once?

Eight neighbouring tokens of text that the target wrote, from the beginning of a sentence on, come as a bag.
MP3 (Zhai et al., 2022) says for every word at which place it stands, in one forward: each place takes its
likeliest word, or the likeliest of all orders is found (assignment). In rounds, the most certain words get
their places first, and the others are asked again. For comparison, a pointer of about the same size writes
the words one after the other, greedily or with five beams. right: whole texts; places: tokens that stand
where they did; neighbours: pairs that follow each other again. The 511 most frequent tokens are
distinguished. Position prediction is meant as pre-training: the same layers then learn from few texts whether
two neighbours in a text are exchanged, after position prediction, after filling in hidden words for as many
steps, or from scratch.
"""

from collections.abc import Callable
from statistics import fmean

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.models.small import fit, own_text
from explorer.experiments.models.word_order import Places, Pointer, alone, at_once, in_rounds, left_to_right
from explorer.experiments.pictures import Chart, Line
from explorer.experiments.reading import Row, percent, rows_of
from explorer.experiments.without_decoding.information_surplus import by_frequency

PAPERS = ()  # none: here position prediction does not clearly help what is learned after it
FREQUENT, WIDTH, LAYERS, HEADS = 511, 64, 3, 4
TEXTS, LENGTH, WORDS = 3000, 64, 8  # texts of the target, their tokens, and those of a bag
HELD_OUT, STEPS, BATCH, RATE, SEEDS = 400, 2000, 48, 3e-3, 3
LABELLED, TESTED, FINE = 2048, 1000, 400  # texts with neighbours exchanged or not; steps on them
HIDE = 0.15  # share of the words that are filled in
ROUNDS, BEAMS = (2, 4), 5
ASSIGNED, GREEDY = "assignment", "pointer, greedily"
PLACES, FILLED, SCRATCH = "position prediction", "hidden words", "none"
COLUMNS = ["decoding", "forwards", "right", "places", "neighbours", "exchange found"]


def windows(texts: torch.Tensor, stops: set[int]) -> torch.Tensor:
    """Rows [R, WORDS]: the tokens after each of `stops` in texts [N, T], where there are enough; texts
    without any are cut to pieces.
    """
    rows = []
    for text in texts.tolist():
        begins = [at + 1 for at, token in enumerate(text) if token in stops] or range(0, len(text), WORDS)
        rows += [text[at : at + WORDS] for at in begins if at + WORDS <= len(text)]
    return torch.tensor(rows)


class Filler(nn.Module):
    """The encoder of `Places`, pre-trained to fill in hidden words whose places are known."""

    def __init__(self, places: Places):
        super().__init__()
        self.places, self.hidden = places, nn.Parameter(torch.randn(WIDTH) * 0.02)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Loss of the hidden words of rows [B, N], at least one in each batch."""
        gone = torch.rand(rows.shape) < HIDE
        gone[0, 0] = True
        at = torch.arange(rows.shape[1]).expand_as(rows)
        words = torch.where(gone[..., None], self.hidden, self.places.embed(rows))
        states = self.places.encoder(words + self.places.position(at))
        return cross_entropy(states[gone] @ self.places.embed.weight.T, rows[gone])


def exchanged(rows: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, labels [R]): in every second row two different neighbours have changed places."""
    generator = torch.Generator().manual_seed(seed)
    made, labels = rows.clone(), torch.arange(len(rows)) % 2
    for at in range(1, len(rows), 2):
        pairs = (rows[at, 1:] != rows[at, :-1]).nonzero()[:, 0]
        if len(pairs):
            one = int(pairs[torch.randint(len(pairs), (1,), generator=generator)])
            made[at, [one, one + 1]] = rows[at, [one + 1, one]]
    return made, labels


def exchange_found(places: Places, learn: torch.Tensor, test: torch.Tensor, seed: int) -> float:
    """The share of test rows that are told right after fine-tuning on LABELLED rows."""
    torch.manual_seed(seed)
    head = nn.Linear(WIDTH, 1)
    rows, labels = exchanged(learn[:LABELLED], seed)

    def logits(some: torch.Tensor) -> torch.Tensor:
        at = torch.arange(some.shape[1]).expand_as(some)
        return head(places.states(some, at).mean(1))[:, 0]

    def loss(numbers: torch.Tensor) -> torch.Tensor:
        return binary_cross_entropy_with_logits(logits(rows[numbers]), labels[numbers].float())

    fit([*places.parameters(), *head.parameters()], loss, torch.arange(len(rows)), FINE, 32, 1e-3, seed)
    unseen, wanted = exchanged(test, 1000 + seed)
    with torch.no_grad():
        return float(((logits(unseen) > 0) == wanted.bool()).float().mean())


def measured(rows: torch.Tensor, order: torch.Tensor) -> tuple[float, float, float]:
    """(whole texts, places, neighbours) that are right, for orders [B, N] of rows [B, N]."""
    same = rows.gather(1, order) == rows
    after = order[:, 1:] == order[:, :-1] + 1
    return tuple(float(share.float().mean()) for share in (same.all(1), same, after))


def ways(places: Places, pointer: Pointer) -> dict[str, tuple[int, Callable[[torch.Tensor], torch.Tensor]]]:
    """Name -> (forwards, how words [B, N] are ordered)."""
    return {
        "each place alone": (1, lambda words: at_once(places, words, alone)),
        ASSIGNED: (1, lambda words: at_once(places, words)),
        **{
            f"assignment in {rounds} rounds": (rounds, lambda words, n=rounds: in_rounds(places, words, n))
            for rounds in (*ROUNDS, WORDS)
        },
        GREEDY: (WORDS, lambda words: left_to_right(pointer, words)),
        f"pointer, {BEAMS} beams": (WORDS, lambda words: left_to_right(pointer, words, BEAMS)),
    }


def of_seed(rows: torch.Tensor, held: torch.Tensor, test: torch.Tensor, seed: int) -> dict[str, list[float]]:
    """Way, or pre-training -> its measures, after training everything with one seed."""

    def fresh() -> Places:
        torch.manual_seed(seed)
        return Places(FREQUENT + 1, WORDS, WIDTH, LAYERS, HEADS)

    places, filler = fresh(), Filler(fresh())
    pointer = Pointer(FREQUENT + 1, WORDS, WIDTH, LAYERS, HEADS)
    draw = torch.Generator().manual_seed(seed)
    shares = iter(torch.rand(STEPS, generator=draw).tolist())
    trained = {
        places: lambda some: places.loss(some, next(shares)),
        pointer: pointer.loss,
        filler: filler.loss,
    }
    for model, loss in progress.each(trained.items(), until=0.9):
        fit(model.parameters(), loss, rows, STEPS, BATCH, RATE, seed)
        model.eval()
    found = {name: [one[0], *measured(held, one[1](held))] for name, one in ways(places, pointer).items()}
    begun = {PLACES: places, FILLED: filler.places, SCRATCH: fresh()}
    return found | {
        name: [exchange_found(one, held, test, seed)] for name, one in progress.each(begun.items())
    }


def run(models: Models) -> Result:
    """A row for each way to decode, and for each way to begin."""
    with progress.part(0.2):
        texts = own_text(models, TEXTS, LENGTH)
    stops = {token for token in texts.unique().tolist() if models["target"].bytes_of(token).strip() == b"."}
    rows = by_frequency(windows(texts, stops), texts, FREQUENT)
    aside = min(HELD_OUT + TESTED, len(rows) // 2)
    train, held, test = rows[aside:], rows[:aside][:HELD_OUT], rows[:aside][-TESTED:]
    found = [of_seed(train, held, test, seed) for seed in progress.each(range(SEEDS))]
    table: list[list[Cell]] = []
    for name, one in found[0].items():
        means = [fmean(each[name][at] for each in found) for at in range(len(one))]
        own = [round(means[0]), *means[1:], None] if len(one) > 1 else [None, None, None, None, means[0]]
        table.append([name, *own])
    return Result(COLUMNS, table, conclusions(table), chart(table), compared=differences(found))


def differences(found: list[dict[str, list[float]]]) -> list:
    """What assignment, rounds and the pointer gain, and what the pre-trainings do, seed by seed."""
    pairs = (
        ("places, assignment against each alone", ASSIGNED, "each place alone", 2),
        (f"places, {WORDS} rounds against one", f"assignment in {WORDS} rounds", ASSIGNED, 2),
        ("neighbours, pointer against assignment", GREEDY, ASSIGNED, 3),
        ("position prediction against scratch", PLACES, SCRATCH, 0),
        ("position prediction against hidden words", PLACES, FILLED, 0),
    )
    return [
        by_pairs(what, [one[mine][at] - one[other][at] for one in found]) for what, mine, other, at in pairs
    ]


def chart(table: list[list[Cell]]) -> Chart:
    """Right neighbours and texts by the number of forwards."""
    decoded = [row for row in table if row[1] is not None]
    kinds = {"assignment": "assignment", "pointer": "pointer"}
    lines = [
        Line(f"{label}: {column}", [[float(row[1]), row[at]] for row in decoded if kinds[label] in row[0]])
        for label in kinds
        for column, at in (("neighbours", 4), ("right", 2))
    ]
    return Chart("Shuffled words in order", "forwards", "share", lines)


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    decoded = [row for row in table if row[1] is not None]
    says = [
        f"{row[0][0].upper()}{row[0][1:]}, {row[1]} forward{'s' * (row[1] > 1)}: {percent(row[2])} of the "
        f"texts are right, {percent(row[3])} of the places and {percent(row[4])} of the neighbours."
        for row in decoded
    ]
    begun = {row[0]: row[5] for row in table if row[1] is None}
    listed = ", ".join(f"{percent(share)} after {name}" for name, share in begun.items())
    return [*says, f"Exchanged neighbours are told from {LABELLED} texts: {listed}."]


def finding(answer: dict) -> str:
    """One forward with an assignment against rounds and a pointer, and what the pre-training gives."""
    rows: dict[str, Row] = {row["decoding"]: row for row in rows_of(answer)}
    once, pointer = rows[ASSIGNED], rows[GREEDY]
    found = {name: percent(rows[name]["exchange found"]) for name in (PLACES, FILLED, SCRATCH)}
    return (
        f"One forward with an assignment orders {percent(once['right'])} of shuffled texts, a pointer in "
        f"{pointer['forwards']} forwards {percent(pointer['right'])}; after position prediction a small "
        f"model finds exchanged neighbours in {found[PLACES]}, after filling in words in {found[FILLED]}, "
        f"from scratch in {found[SCRATCH]}."
    )


STANDS = Basis({"held-out bags": HELD_OUT, "texts with or without an exchange": TESTED}, trained=SEEDS)
