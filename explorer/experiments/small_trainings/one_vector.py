"""Does a weaker decoder put more into the vector of a text?

RetroMAE (2022) trains an encoder whose first state, the vector, is all that a decoder learns of the words
that it does not see; then the decoder is thrown away. The less the decoder can do alone, the more the vector
has to hold: here it has one layer or three, and sees many words or few. DupMAE (RetroMAE v2, 2023) also asks
the other tokens for the words of the text. A text states a few facts twice, in the two wordings of fact
sheets and in random order, so that a decoder that sees most words finds the others without a vector. none:
the encoder alone fills in hidden words. words: what a linear map, learned from vectors of other texts, finds
of a text's names and values in its vector. found: how often the nearest of the vectors of held-out texts is
that of the same facts, worded and ordered anew; with scores: with DupMAE's scores of words beside the vector.
Encoder, steps and texts are the same.
"""

import random
from dataclasses import dataclass
from statistics import fmean

import torch

from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.models.small import fit
from explorer.experiments.models.text_vectors import TextVectors, which
from explorer.experiments.pictures import Bars
from explorer.experiments.reading import Row, percent, rows_of
from explorer.experiments.small_trainings.topic_decoders import FACTS, VALUES, WORD, Fact, fact_of
from explorer.tasks.summaries import KINDS, make_sheet

PAPERS = ()  # none: unlike in the paper, a weaker decoder does not clearly put more into the vector here
TEXTS, LEARNED, HELD_OUT, STATED = 20_000, 2000, 400, 2  # texts; those of the linear map; facts of a text
WIDTH, LAYERS = 48, 2
STEPS, BATCH, RATE, SEEDS = 1500, 24, 3e-3, 3
RIDGE = 1e-3  # penalty of the linear map
MOVED = 0.05  # a share that twice the steps move further had not converged


@dataclass(frozen=True)
class Way:
    """A training: layers of the decoder, the share of the words that it sees, and DupMAE's other task."""

    name: str
    decoder: int = 1
    seen: float = 0.3
    bag: bool = False
    steps: int = 1  # times STEPS


NONE, STRONG, SHALLOW, DEEP = "none", "3 layers, sees 85%", "1 layer, sees 85%", "3 layers, sees 30%"
RETRO, DUP, TWICE = "1 layer, sees 30% (RetroMAE)", "DupMAE", "RetroMAE, twice as long"
WAYS = (
    Way(NONE, decoder=0),
    Way(STRONG, 3, 0.85),
    Way(SHALLOW, 1, 0.85),
    Way(DEEP, 3),
    Way(RETRO),
    Way(DUP, bag=True),
    Way(TWICE, steps=2),
)
COLUMNS = ["decoder", "words", "found", "found with scores"]


def worded(facts: list[Fact], rng: random.Random) -> list[str]:
    """The words of a text that states each fact once as a sheet does and once as a summary does."""
    said = []
    for kind, about in facts:
        for form in (KINDS[kind].fact, rng.choice(KINDS[kind].tells)):
            said.append(f"{form.format(**dict(about))}.")
    rng.shuffle(said)
    return WORD.findall(" ".join(said))


@dataclass(frozen=True)
class Data:
    """Texts [R, T] in numbers of words, the last HELD_OUT of them worded anew, and the words that facts are
    about.
    """

    texts: torch.Tensor
    anew: torch.Tensor
    about: torch.Tensor
    vocabulary: int


def made_texts() -> Data:
    """Texts on facts of random sheets."""
    rng = random.Random("one vector")
    facts = []
    for _ in range(TEXTS + HELD_OUT):
        units = make_sheet(rng).units[:STATED]
        facts.append([fact for unit in units if (fact := fact_of(unit, FACTS))])
    texts = [worded(some, rng) for some in facts]
    anew = [worded(some, rng) for some in facts[-HELD_OUT:]]
    words = ["", "_", *sorted({word for text in texts + anew for word in text})]
    number = {word: at for at, word in enumerate(words)}
    length = max(map(len, texts + anew))

    def ids(text: list[str]) -> list[int]:
        return [number[word] for word in text] + [0] * (length - len(text))

    values = {word for some in VALUES.values() for value in some for word in WORD.findall(value)} - {"the"}
    return Data(
        torch.tensor([ids(text) for text in texts]),
        torch.tensor([ids(text) for text in anew]),
        torch.tensor(sorted(number[word] for word in values if word in number)),
        len(words),
    )


def trained(way: Way, data: Data, seed: int) -> TextVectors:
    """A model trained on all texts but the held-out ones."""
    torch.manual_seed(seed)
    model = TextVectors(data.vocabulary, data.texts.shape[1], WIDTH, LAYERS, way.decoder, way.seen, way.bag)
    rows = data.texts[:-HELD_OUT]
    fit(model.parameters(), model.loss, rows, way.steps * STEPS, BATCH, RATE, seed)
    return model.eval()


def words_found(vectors: torch.Tensor, there: torch.Tensor) -> float:
    """The share of the words of held-out texts that a linear map finds in their vectors [R, d], as many as
    there are. there [R, W]: which words a text has.
    """
    read = torch.cat([vectors, torch.ones(len(vectors), 1)], 1)
    learned, held = read[:-HELD_OUT], there[-HELD_OUT:]
    inner = learned.T @ learned + RIDGE * torch.eye(read.shape[1])
    scores = read[-HELD_OUT:] @ torch.linalg.solve(inner, learned.T @ there[:-HELD_OUT])
    ranks = scores.argsort(descending=True).argsort()
    among = (ranks < held.sum(1, keepdim=True)) & (held > 0)
    return float((among.sum(1) / held.sum(1)).mean())


def nearest(vectors: torch.Tensor, anew: torch.Tensor) -> float:
    """How often the most similar of vectors [N, d] is that of the same text worded anew [N, d]."""
    return float(((anew @ vectors.T).argmax(1) == torch.arange(len(anew))).float().mean())


def measured(model: TextVectors, data: Data) -> list[float]:
    """Words, found, and found with scores, of the held-out texts."""
    texts = data.texts[-LEARNED - HELD_OUT :]
    vectors, anew = model.vectors(texts), model.vectors(data.anew)
    there = which(texts, data.vocabulary)[:, data.about]
    held = vectors[-HELD_OUT:]
    return [
        words_found(vectors[:, :WIDTH], there),
        nearest(held[:, :WIDTH], anew[:, :WIDTH]),
        nearest(held, anew),
    ]


def run(models: Models) -> Result:
    """A row for each training."""
    data = made_texts()
    found = {
        way.name: [measured(trained(way, data, seed), data) for seed in progress.each(range(SEEDS))]
        for way in progress.each(WAYS)
    }
    table: list[list[Cell]] = []
    for way in WAYS:
        words, alone, beside = (fmean(one[at] for one in found[way.name]) for at in range(3))
        table.append([way.name, words, alone, beside if way.bag else None])
    names = [row[0] for row in table]
    values = [[row[at] for row in table] for at in (1, 2)]
    bars = Bars("What a vector holds", "decoder in training", "share", names, COLUMNS[1:3], values)
    return Result(COLUMNS, table, conclusions(table), compared=differences(found), pictures=[bars])


def differences(found: dict[str, list[list[float]]]) -> list:
    """What a weaker decoder and DupMAE's other task give, seed by seed."""
    pairs = (
        ("found, few words seen against most", RETRO, SHALLOW, 1),
        ("found, 1 layer against 3", RETRO, DEEP, 1),
        ("words, RetroMAE against the strongest", RETRO, STRONG, 0),
        ("words, DupMAE against RetroMAE", DUP, RETRO, 0),
        ("found, DupMAE against RetroMAE", DUP, RETRO, 1),
    )
    return [
        by_pairs(what, [one[at] - other[at] for one, other in zip(found[mine], found[others], strict=True)])
        for what, mine, others, at in pairs
    ]


def conclusions(table: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    says = []
    for name, words, alone, beside in table:
        scores = "" if beside is None else f", with the scores of words beside it {percent(beside)}"
        says.append(
            f"{name[0].upper()}{name[1:]}: a linear map finds {percent(words)} of a text's words in its "
            f"vector; the vector finds {percent(alone)} of the texts worded anew{scores}."
        )
    return says


def finding(answer: dict) -> str:
    """What the vectors hold, whatever the decoder, and with DupMAE's other task."""
    rows: dict[str, Row] = {row["decoder"]: row for row in rows_of(answer)}
    shares = [rows[name]["words"] for name in (STRONG, SHALLOW, DEEP, RETRO)]
    return (
        f"With any decoder an encoder's vectors hold {percent(min(shares))} to {percent(max(shares))} of a "
        f"text's words, with DupMAE {percent(rows[DUP]['words'])}, and with its scores find "
        f"{percent(rows[DUP]['found with scores'])} of the texts."
    )


def stands(answer: dict) -> Basis:
    """Seeds, and held-out texts."""
    rows: dict[str, Row] = {row["decoder"]: row for row in rows_of(answer)}
    once, twice = rows[RETRO], rows[TWICE]
    far = [name for name in ("words", "found") if abs(twice[name] - once[name]) > MOVED]
    moved = ", ".join(f"{name} from {percent(once[name])} to {percent(twice[name])}" for name in far)
    unfinished = f"twice the steps move RetroMAE's {moved}" if far else ""
    return Basis({"held-out texts": HELD_OUT}, SEEDS, unfinished, compared=as_measured(answer))
