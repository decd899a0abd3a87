"""Does a plan of topics make a summary cover more?

Fact sheets and their summaries, in words. Both decoders read a sheet with the same kind of encoder and write
with gated convolutions, which see only a few words back. The flat one writes the summary as one sequence. The
planned one (Generating Summaries with Topic Templates and Structured Convolutional Decoders, 2019) has a
recurrent state for each sentence, which says the sentence's topic and steers its words; the topic END ends
the text. Topics are the nine kinds of facts; the paper finds them by LDA. The flat decoder has more layers,
so that it is no smaller. Greedy texts of sheets that neither has read. topics: the F1 of a text's topics, as
its words show them, and those of the sheet's own summary. facts: the F1 of a text's facts and those of the
sheet's own summary, whatever their wording. twice: texts that say something twice. obeyed: sentences on the
topic that was forced upon them, where the sheet has such a fact.
"""

import random
import re
from collections import Counter
from dataclasses import dataclass
from statistics import fmean

import torch

from decoders.search.planned.discourse_units import f1
from explorer.experiments import Cell, Models, Result, progress
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.models.small import fit
from explorer.experiments.models.topic_decoders import Flat, Planned
from explorer.experiments.pictures import Bars
from explorer.experiments.reading import percent, rows_with, two
from explorer.tasks.facts import COLOURS, FOODS, NAMES, PLACES, THINGS
from explorer.tasks.summaries import (
    FEARS,
    GAMES,
    JOBS,
    KINDS,
    NUMBERS,
    PETS,
    SIZES,
    SOUNDS,
    Sheet,
    make_sheet,
)

PAPERS = ()  # none: unlike in the paper, the plan does not make a summary cover clearly more topics here
SHEETS, HELD_OUT = 6000, 200
WIDTH, LAYERS, FLAT_LAYERS = 48, 3, 5
STEPS, BATCH, RATE, SEEDS = 700, 32, 4e-3, 3
SENTENCES, WORDS, SOURCE = 4, 14, 56  # of a summary; of a sentence with begin and end; of a sheet
BEGIN = 1  # and end; 0 is padding
WORD = re.compile(r"\w+|\.")
FLAT, PLANNED = "flat", "planned"
MEASURES = ("topics", "facts", "true", "twice")
COLUMNS = ["decoder", "seed", "parameters", *MEASURES, "obeyed", "own plan again"]
VALUES = {
    "name": NAMES,
    "colour": COLOURS,
    "thing": THINGS,
    "place": PLACES,
    "food": FOODS,
    "size": SIZES,
    "pet": PETS,
    "number": NUMBERS,
    "job": JOBS,
    "sound": SOUNDS,
    "fear": FEARS,
    "game": GAMES,
}


def form(template: str) -> re.Pattern:
    """What a template gives, whatever the words in it."""
    return re.compile(
        re.sub(r"{(\w+)}", lambda match: f"(?P<{match[1]}>{'|'.join(VALUES[match[1]])})", template)
    )


TELLS = [[form(f"{way}.") for way in kind.tells] for kind in KINDS]
FACTS = [[form(kind.fact)] for kind in KINDS]
Fact = tuple[int, frozenset]  # kind, and what it is about


def fact_of(text: str, forms: list[list[re.Pattern]]) -> Fact | None:
    """The fact that a text states in one of these forms, a list for each kind; None if it states none."""
    for kind, ways in enumerate(forms):
        for way in ways:
            match = way.fullmatch(text)
            if match:
                return kind, frozenset(match.groupdict().items())
    return None


@dataclass(frozen=True)
class Data:
    """Sheets as numbers of words: sources [R, S]; texts [R, T] and sentences [R, N, T], each from BEGIN to
    BEGIN; topics [R, N + 1], the last one END.
    """

    sheets: list[Sheet]
    words: list[str]
    source: torch.Tensor
    text: torch.Tensor
    sentences: torch.Tensor
    topics: torch.Tensor


def topics_of(sheet: Sheet) -> list[int]:
    """The kinds of the sentences of its own summary."""
    return [fact[0] for sentence in sheet.summary if (fact := fact_of(sentence, TELLS))]


def numbered(sheets: list[Sheet]) -> Data:
    """The sheets in numbers of the words that occur in them."""
    cut = [WORD.findall(f"{sheet.text} {sheet.answer}") for sheet in sheets]
    words = ["", "|", *sorted({word for text in cut for word in text})]
    number = {word: at for at, word in enumerate(words)}

    def ids(text: str, length: int) -> list[int]:
        return ([number[word] for word in WORD.findall(text)] + [0] * length)[:length]

    def closed(text: str, length: int) -> list[int]:
        return ([BEGIN, *(number[word] for word in WORD.findall(text)), BEGIN] + [0] * length)[:length]

    empty = [0] * WORDS
    sentences = [
        ([closed(one, WORDS) for one in sheet.summary] + [empty] * SENTENCES)[:SENTENCES] for sheet in sheets
    ]
    topics = [([*topics_of(sheet), len(KINDS)] + [-1] * SENTENCES)[: SENTENCES + 1] for sheet in sheets]
    return Data(
        sheets,
        words,
        torch.tensor([ids(sheet.text, SOURCE) for sheet in sheets]),
        torch.tensor([closed(sheet.answer, SENTENCES * WORDS) for sheet in sheets]),
        torch.tensor(sentences),
        torch.tensor(topics),
    )


def sentences_of(words: list[str]) -> list[str]:
    """The sentences of a text of words."""
    return [f"{one.strip()}." for one in " ".join(words).split(".") if one.strip()]


def judged(sheet: Sheet, written: list[str]) -> list[float]:
    """MEASURES of the written sentences of a sheet's summary."""
    there = {fact_of(unit, FACTS) for unit in sheet.units}
    own = [fact_of(sentence, TELLS) for sentence in sheet.summary]
    made = [fact_of(sentence, TELLS) for sentence in written]
    stated = [fact for fact in made if fact]
    kinds = [Counter(fact[0] for fact in facts) for facts in (stated, own)]
    true = fmean(fact in there for fact in made) if made else 0.0
    return [f1(*kinds), f1(Counter(stated), Counter(own)), true, float(len(set(written)) < len(written))]


def trained(data: Data, seed: int) -> tuple[Flat, Planned]:
    """Both decoders, trained on all sheets but the held-out ones."""
    torch.manual_seed(seed)
    flat = Flat(len(data.words), SOURCE, WIDTH, FLAT_LAYERS, SENTENCES * WORDS)
    planned = Planned(len(data.words), SOURCE, WIDTH, LAYERS, WORDS, len(KINDS), SENTENCES)
    numbers = torch.arange(len(data.sheets) - HELD_OUT)
    losses = {
        flat: lambda some: flat.loss(data.source[some], data.text[some]),
        planned: lambda some: planned.loss(data.source[some], data.sentences[some], data.topics[some]),
    }
    for model, loss in progress.each(losses.items()):
        fit(model.parameters(), loss, numbers, STEPS, BATCH, RATE, seed)
        model.eval()
    return flat, planned


def obeyed(planned: Planned, data: Data, held: range) -> float:
    """How often a first sentence has the topic that was forced upon it, for every topic of each sheet."""
    asked = []
    for at in held:
        kinds = {fact[0] for unit in data.sheets[at].units if (fact := fact_of(unit, FACTS))}
        asked += [(at, kind) for kind in sorted(kinds)]
    texts, _ = planned.texts(data.source[[at for at, _ in asked]], [[kind] for _, kind in asked])
    said = [
        fact_of(" ".join(data.words[word] for word in text[0]).replace(" .", "."), TELLS) for text in texts
    ]
    return fmean(fact is not None and fact[0] == kind for fact, (_, kind) in zip(said, asked, strict=True))


def of_seed(data: Data, seed: int) -> list[list[Cell]]:
    """The rows of both decoders."""
    held = range(len(data.sheets) - HELD_OUT, len(data.sheets))
    source = data.source[held.start :]
    flat, planned = trained(data, seed)
    own, plans = planned.texts(source)
    again, _ = planned.texts(source, plans)
    texts = {FLAT: flat.texts(source), PLANNED: [[word for one in text for word in one] for text in own]}
    rows = []
    for name, model in ((FLAT, flat), (PLANNED, planned)):
        written = [sentences_of([data.words[word] for word in text]) for text in texts[name]]
        judgements = [judged(data.sheets[at], some) for at, some in zip(held, written, strict=True)]
        means = [fmean(column) for column in zip(*judgements, strict=True)]
        forced: list[Cell] = [None, None]
        if name == PLANNED:
            same = fmean(one == other for one, other in zip(own, again, strict=True))
            forced = [obeyed(planned, data, held), same]
        rows.append([name, seed, sum(p.numel() for p in model.parameters()), *means, *forced])
    return rows


def run(models: Models) -> Result:
    """A row for each decoder and seed."""
    rng = random.Random("topic decoders")
    data = numbered([make_sheet(rng) for _ in range(SHEETS + HELD_OUT)])
    rows = [row for seed in progress.each(range(SEEDS)) for row in of_seed(data, seed)]
    rows.sort(key=lambda row: row[0])
    flat, planned = rows[:SEEDS], rows[SEEDS:]
    compared = [
        by_pairs(
            f"{name}, planned against flat",
            [one[at] - other[at] for one, other in zip(planned, flat, strict=True)],
        )
        for at, name in enumerate(MEASURES[:2], 3)
    ]
    means = [[fmean(row[at] for row in some) for at in range(3, 7)] for some in (flat, planned)]
    bars = Bars(
        "Summaries by two decoders", "measure", "share, or F1", list(MEASURES), [FLAT, PLANNED], means
    )
    return Result(COLUMNS, rows, conclusions(rows), compared=compared, pictures=[bars])


def conclusions(rows: list[list[Cell]]) -> list[str]:
    """The conclusions, as sentences."""
    says = []
    for name in (FLAT, PLANNED):
        own = [row for row in rows if row[0] == name]
        topics, facts, true, twice = (fmean(row[at] for row in own) for at in range(3, 7))
        says.append(
            f"The {name} decoder, {own[0][2]:,} parameters: F1 {topics:.2f} with the topics of the sheet's "
            f"own summary and {facts:.2f} with its facts; {percent(true)} of the sentences are true, and "
            f"{percent(twice)} of the texts say something twice."
        )
    forced, again = (fmean(row[at] for row in rows if row[0] == PLANNED) for at in (7, 8))
    return [
        *says,
        f"A first sentence is on the topic that is forced upon it in {percent(forced)} of the cases; the "
        f"decoder's own plan, forced, gives its own text again in {percent(again)}.",
    ]


def finding(answer: dict) -> str:
    """What both cover, and whether forced topics are obeyed."""
    (flat, planned) = (rows_with(answer, "decoder", name) for name in (FLAT, PLANNED))
    topics, facts = (
        [two(fmean(row[column] for row in rows)) for rows in (planned, flat)] for column in MEASURES[:2]
    )
    forced = percent(fmean(row["obeyed"] for row in planned))
    return (
        f"A decoder that plans a topic for each sentence covers a sheet's topics with an F1 of {topics[0]} "
        f"and its facts with {facts[0]}, a flat one with {topics[1]} and {facts[1]}; a topic that is forced "
        f"upon a sentence is obeyed in {forced} of the cases."
    )


def stands(answer: dict) -> Basis:
    """Seeds, and held-out sheets."""
    true = [fmean(row["true"] for row in rows_with(answer, "decoder", name)) for name in (PLANNED, FLAT)]
    unfinished = f"{percent(true[0])} and {percent(true[1])} of the sentences are true of their sheets"
    return Basis({"held-out sheets": HELD_OUT}, SEEDS, unfinished, compared=as_measured(answer))
