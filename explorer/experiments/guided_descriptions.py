"""Does guidance make a text more specific?

The target fills in the sentence between the beginning and the end of an unseen story, a form that it learned
from a few stories, among many without an end in front: the end is the condition, and the second view has only
the beginning. Greedy text at guidance_scale gamma; 1 is the unchanged model. found: how often the story's own
end is the most likely of 100 by p(end's words | sentence), under word counts of the sentence, smoothed by
those of all ends (Jelinek and Mercer; Ponte and Croft 1998); overlap: word F1 with the story's own sentence;
more, less: change from gamma 1, with the standard error over sentences. The stories are held out from
training, so this experiment takes `--corpus FOLDER`.
"""

import math
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch

from decoders.models.loaded_model import LoadedModel
from explorer.corpus import MIDDLE_PROMPT, around, first_sentences, read_stories
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.basis import Basis, by_error
from explorer.experiments.reading import highest, moved, percent, rows_of
from explorer.experiments.statistics import lead
from explorer.experiments.sweeps.evidence import words

PAPERS = ("guiding-image-captioning-models-toward-more-specific",)
READS_CORPUS = True
COUNT, EACH, AMONG = 300, 3, 100  # sentences; maximum per story; endings to choose from
GAMMAS = (1.0, 1.2, 1.5, 2.0, 3.0)
TOKENS, BATCH = 24, 30
SMOOTH = 0.5  # weight of the word counts of all endings


@dataclass(frozen=True)
class Gap:
    """A story with a sentence left out."""

    begin: str
    end: str
    middle: str
    story: int

    @property
    def prompt(self) -> str:
        """The prompt, in the form that the target saw in training."""
        return MIDDLE_PROMPT.format(begin=self.begin, end=self.end)


def gaps(stories: list[str]) -> list[Gap]:
    """Up to COUNT gaps, at most EACH per story, cut as in training."""
    draw, cut = random.Random(0), []
    for number, story in enumerate(stories):
        sentences = first_sentences(story)[:-1]
        places = range(1, len(sentences) - 2)
        for at in sorted(draw.sample(places, min(EACH, len(places)))):
            begin, middle, end = around(sentences, at)
            cut.append(Gap(begin, end, middle, number))
    return cut[:COUNT]


def padded(target: LoadedModel, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask [N, T], left-padded."""
    rows = [target.encode(text) for text in texts]
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids.to(target.model.device), mask.to(target.model.device)


def filled(target: LoadedModel, some: list[Gap], gamma: float) -> list[str]:
    """The sentences that the target writes under guidance, batched, like those of the strategy `guidance`."""
    ids, mask = padded(target, [gap.prompt for gap in some])
    without, shown = padded(target, [gap.begin for gap in some])
    out = target.model.generate(
        input_ids=ids,
        attention_mask=mask,
        guidance_scale=gamma,
        negative_prompt_ids=without,
        negative_prompt_attention_mask=shown,
        do_sample=False,
        max_new_tokens=TOKENS,
        pad_token_id=0,
    )
    written = out[:, ids.shape[1] :].tolist()
    ends = [next((i for i, token in enumerate(row) if token in target.eos), len(row)) for row in written]
    return [target.tokenizer.decode(row[:end]).strip() for row, end in zip(written, ends, strict=True)]


def candidates(some: list[Gap]) -> list[list[str]]:
    """AMONG endings for each gap: first its own, then those of other stories."""
    draw, rows = random.Random(1), []
    for gap in some:
        others = sorted({other.end for other in some if other.story != gap.story})
        rows.append([gap.end, *draw.sample(others, min(AMONG - 1, len(others)))])
    return rows


def likelihood(text: list[str], end: list[str], usual: Counter[str]) -> float:
    """log p(words of `end` | text) up to a constant: words that the text does not contain count 0."""
    counts, total = Counter(text), usual.total()
    gained = (1 - SMOOTH) / SMOOTH / max(1, len(text)) * total
    return sum(math.log1p(gained * counts[word] / usual[word]) for word in end)


def hit(text: str, ends: list[str], usual: Counter[str]) -> float:
    """1 if the first ending is more likely than all others, else 0."""
    own, *others = (likelihood(words(text), words(end), usual) for end in ends)
    return float(all(own > other for other in others))


def shared(text: str, reference: str) -> float:
    """F1 of the words of two texts."""
    one, two = Counter(words(text)), Counter(words(reference))
    both = one.total() + two.total()
    return 2 * (one & two).total() / both if both else 0.0


def row(texts: list[str], some: list[Gap], plain: list[list[float]]) -> tuple[list[Cell], list[list[float]]]:
    """The scores of the texts for some gaps, and each one's hit and overlap; `plain`: those of gamma 1."""
    usual = Counter(word for gap in some for word in words(gap.end))
    hits = [hit(text, ends, usual) for text, ends in zip(texts, candidates(some), strict=True)]
    overlaps = [shared(text, gap.middle) for text, gap in zip(texts, some, strict=True)]
    before = plain or [hits, overlaps]
    more, less = lead(hits, before[0]), lead(overlaps, before[1])
    length = fmean(len(words(text)) for text in texts)
    return [fmean(hits), *more, fmean(overlaps), *less, length], [hits, overlaps]


def run(models: Models, corpus: Path) -> Result:
    """One row per gamma and one for the stories themselves; the trade-off as a curve."""
    target, (_, held) = models["target"], read_stories(corpus)
    some, plain, rows = gaps(held), [], []
    for gamma in progress.each(GAMMAS):
        parts = [some[at : at + BATCH] for at in range(0, len(some), BATCH)]
        cells, each = row(
            [text for part in progress.each(parts) for text in filled(target, part, gamma)], some, plain
        )
        plain = plain or each
        rows.append([f"{gamma:g}", *cells])
    own, _ = row([gap.middle for gap in some], some, plain)
    columns = ["gamma", "found", "more", "± more", "overlap", "less", "± less", "words"]
    line = Line("gamma 1 to 3", [[r[1], r[4]] for r in rows])
    says = [comparison(next(r for r in rows if r[0] == "2"), rows[0], len(some))]
    says.append(
        f"Most ends are found at gamma {max(rows, key=lambda r: r[1])[0]}, {max(r[1] for r in rows):.0%}; "
        f"the stories' own sentences find {own[0]:.0%}."
    )
    chart = Chart("What is gained and what is given up", "ends found", "overlap with the story", [line])
    return Result(columns, [*rows, ["the story's own", *own]], says, chart)


def comparison(two: list[Cell], one: list[Cell], count: int) -> str:
    """The effect of gamma 2."""
    surer = "rises" if two[2] > 2 * two[3] else "goes, without a clear rise,"
    falls = "falls" if two[5] < -2 * two[6] else "goes, without a clear fall,"
    more, less = (f"{value:+.3f}".replace("-", "−") for value in (two[2], two[5]))
    return (
        f"From gamma 1 to 2 the share of ends found {surer} from {one[1]:.1%} to {two[1]:.1%} ({more} ± "
        f"{two[3]:.3f}), and the overlap with the stories' own sentences {falls} from {one[4]:.3f} to "
        f"{two[4]:.3f} ({less} ± {two[6]:.3f}), over {count} sentences."
    )


def finding(answer: dict) -> str:
    """From no guidance to the gamma at which most endings are recognised."""
    plain, *guided = rows_of(answer)[:-1]  # the last row is for the stories' own sentences
    best = highest(guided, "found")
    return (
        f"With guidance of strength {best['gamma']}, the share of sentences that give the story's ending "
        f"away {moved(plain['found'], best['found'], percent)}, and their overlap with the story's own words "
        f"{moved(plain['overlap'], best['overlap'])}."
    )


def stands(answer: dict) -> Basis:
    """Sentences, each written once with every gamma."""
    best = highest(rows_of(answer)[1:-1], "found")
    compared = [
        by_error("endings found, guided against not", best["more"], best["± more"]),
        by_error("overlap, guided against not", best["less"], best["± less"]),
    ]
    return Basis({"sentences": COUNT}, compared=compared)
