"""Units of a text: the clauses from which a content plan chooses, and which of them a summary covers.

Segments, ROUGE and the alignment of Adams et al. (2023), Generating EDU Extracts for Plan-Guided Summary
Re-Ranking.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from decoders.search.planned.topic_tokens import SEAM

OPEN, CLOSE = TAGS = ("<e>", "</e>")  # around the units of a plan
CUT = re.compile(r"(?<=[,;:])(?=\s)|(?=\sand\s)")  # inside a sentence
LINE = re.compile(r"(?<=\n)")
JOINT = re.compile(r"\s*(?:and\s+)?")  # before a unit, not part of it
MARKS = '.,;:!?"”'  # after a unit, not part of it
MIN_WORDS = 2  # words of a unit
MAX_UNITS = 20  # units that the greedy oracle takes
WORD = re.compile(r"[a-z]+|[0-9]")
NOTHING = (  # words that say nothing about a clause's topic, and are not counted
    "a an and are as at be been by for from had has have he her his i in is it its not of on or she so that "
    "the their there they this to was were will with you"
)
EMPTY = frozenset(NOTHING.split())


def units(text: str) -> list[tuple[int, int]]:
    """(begin, end) of each clause: sentences, cut at marks and in front of `and`. Pieces of fewer than
    MIN_WORDS words go to the clause before them. A last line that ends with a colon is an instruction, not a
    unit.
    """
    line = text.rfind("\n") + 1
    end = line if line and text.rstrip().endswith(":") else len(text)
    seams = {m.start() for seam in (SEAM, CUT, LINE) for m in seam.finditer(text, 0, end)}
    spans: list[tuple[int, int]] = []
    places = sorted({0, end} | seams)
    for begin, after in zip(places, places[1:], strict=False):
        begin = JOINT.match(text, begin, after).end()
        piece = text[begin:after].rstrip().rstrip(MARKS).rstrip()
        if len(piece.split()) >= MIN_WORDS:
            spans.append((begin, begin + len(piece)))
        elif piece and spans and "\n" not in text[spans[-1][1] : begin]:
            spans[-1] = (spans[-1][0], begin + len(piece))
    return spans


def unit_texts(text: str) -> list[str]:
    """The text of each unit."""
    return [text[begin:end] for begin, end in units(text)]


@lru_cache(4096)
def grams(text: str) -> tuple[Counter, Counter]:
    """Counts of the words and of the pairs of neighbouring words of a text, without those in EMPTY."""
    words = [word for word in WORD.findall(text.lower()) if word not in EMPTY]
    return Counter(words), Counter(zip(words, words[1:], strict=False))


def f1(words: Counter, wanted: Counter) -> float:
    """F1 of two counts."""
    common, whole = (words & wanted).total(), words.total() + wanted.total()
    return 2 * common / whole if whole else 0.0


def rouge(text: str, wanted: str) -> float:
    """The mean of the F1 of ROUGE-1 and ROUGE-2."""
    return sum(f1(a, b) for a, b in zip(grams(text), grams(wanted), strict=True)) / 2


def gained(sources: list[str], wanted: str, limit: int = MAX_UNITS) -> list[int]:
    """The greedy oracle: adds units as long as the ROUGE of all of them together rises."""
    chosen: list[int] = []
    best = 0.0
    while len(chosen) < min(limit, len(sources)):
        rest = (i for i in range(len(sources)) if i not in chosen)
        scores = {i: rouge(text_of_plan(sources, [*chosen, i]), wanted) for i in rest}
        top = max(scores, key=scores.get)
        if scores[top] <= best:
            break
        best = scores[top]
        chosen.append(top)
    return sorted(chosen)


def text_of_plan(sources: list[str], plan: list[int]) -> str:
    """The units of a plan as one text."""
    return " ".join(sources[i] for i in sorted(plan))


def oracle(sources: list[str], targets: list[str]) -> list[int]:
    """The plan of a summary with the units `targets`: the source unit nearest to each of them, or the greedy
    oracle, whichever has the higher ROUGE with the whole summary.
    """
    wanted = " ".join(targets)
    nearest = {max(range(len(sources)), key=lambda i: rouge(sources[i], one)) for one in targets}
    plans = [sorted(nearest), gained(sources, wanted)]
    return max(plans, key=lambda plan: rouge(text_of_plan(sources, plan), wanted))


def labels(sources: list[str], targets: list[str]) -> list[float]:
    """The soft label of each source unit: its best ROUGE with any unit of the summary."""
    return [max((rouge(source, one) for one in targets), default=0.0) for source in sources]


def implied(sources: list[str], sentences: list[str]) -> set[int]:
    """The plan that a summary follows: for each of its sentences the first of the units that the sentence
    gains from.
    """
    return {i for sentence in sentences for i in gained(sources, sentence)[:1]}


def agreement(sources: list[str], sentences: list[str], plan: Iterable[int]) -> float:
    """F1 of the plan that a summary follows and the plan that was asked for."""
    return f1(Counter(implied(sources, sentences)), Counter(plan))
