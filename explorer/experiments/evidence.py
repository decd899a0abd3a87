"""Does a model believe what it has just read?

Prompts state something unusual, such as a green sky, and ask for it; fact sheets ask for a fact that could be
otherwise. Context-aware decoding amplifies what the evidence adds, and the more so the larger alpha is. How
often is the answer that of the evidence, how often the usual one, how much of it consists of the evidence's
words, how much more likely did the evidence make its tokens, and how many forwards does a token take? won:
right where alpha 0 is wrong; lost: the reverse; p: of a sign test on these.
"""

import math
import random
import re
from dataclasses import dataclass

from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.experiments import Cell, Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.reading import percent, rows_with
from explorer.experiments.spread import over
from explorer.experiments.statistics import sign_test
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.tasks.facts import COLOURS
from visualizers.analysis.calibration import wilson

PAPERS = ()
COUNT, TOKENS = 60, 5
ALPHAS = (0.0, 0.15, 0.3, 0.5, 1.0)  # 0 leaves the model unchanged
USUAL = {
    "sky": "blue",
    "grass": "green",
    "sun": "yellow",
    "snow": "white",
    "milk": "white",
    "night": "black",
    "sea": "blue",
    "fire": "red",
}
FORMS = {  # kind -> evidence and question
    "unusual, asked": (
        "In this land the {x} is {c}. All of the {x} is {c}.",
        "Question: What color is the {x}?\nAnswer:",
    ),
    "unusual, told": ("The {x} in this land is {c}.", "Tom looked at the {x}. The color of the {x} was"),
}


@dataclass(frozen=True)
class Item:
    """A prompt, the part of it that is evidence, the right answer, and the usual answer."""

    prompt: str
    evidence: str
    right: str
    usual: str | None = None


def unusual(kind: str, count: int) -> list[Item]:
    """Things of a colour that they do not have; duplicates are possible."""
    rng, items = random.Random(f"{kind} {HELD_OUT_SEED}"), []
    for _ in range(count):
        x = rng.choice(sorted(USUAL))
        c = rng.choice([colour for colour in COLOURS if colour != USUAL[x]])
        evidence, question = (part.format(x=x, c=c) for part in FORMS[kind])
        items.append(Item(f"{evidence}\n{question}", evidence, c, USUAL[x]))
    return items


def sheets(count: int) -> list[Item]:
    """Questions on held-out fact sheets."""
    made = problems("facts", count, HELD_OUT_SEED)
    return [Item(p.prompt, p.prompt.split("\n")[0], p.answer.strip()) for p in made]


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def begins(text: str, wanted: str | None) -> bool:
    """Whether a text begins with these words."""
    return wanted is not None and words(text)[: len(words(wanted))] == words(wanted)


def overlap(text: str, evidence: str) -> float:
    """The share of a text's words that occur in the evidence."""
    return sum(word in words(evidence) for word in words(text)) / max(1, len(words(text)))


def weighed(models: Models, item: Item, alpha: float) -> Trace:
    """The answer with the evidence weighted by `alpha`; the question is in both views."""
    return decoded(models, "context_aware", item.prompt, TOKENS, alpha=alpha, context=item.evidence)


def answer_text(trace: Trace) -> str:
    """What was written, without the end-of-text token."""
    return trace.text().split("<|")[0]


def gain(traces: list[Trace]) -> float | None:
    """Bits by which the evidence made a token more likely, on average; None if there was only one view."""
    scores = [e for t in traces for s in t.steps for e in s.of(Measure) if e.name == ScoreName.CONTRAST]
    gains = [
        2 * e.parts["wanted"] - sum(e.parts.values()) for e in scores
    ]  # the wanted view minus the other one
    return sum(gains) / len(gains) / math.log(2) if gains else None


def row(kind: str, alpha: float, items: list[Item], traces: list[Trace], plain: list[bool]) -> list[Cell]:
    """The results of one alpha on one kind; `plain`: where alpha 0 was right."""
    texts = [answer_text(trace) for trace in traces]
    right = [begins(text, item.right) for text, item in zip(texts, items, strict=True)]
    usual = [begins(text, item.usual) for text, item in zip(texts, items, strict=True)]
    shared = [overlap(text, item.evidence) for text, item in zip(texts, items, strict=True)]
    forwards = sum(t.costs.totals()["target_forwards"] for t in traces)
    cost = forwards / sum(len(t.output()) for t in traces)
    won = sum(a and not b for a, b in zip(right, plain, strict=True))
    lost = sum(b and not a for a, b in zip(right, plain, strict=True))
    count = len(items)
    share = [sum(right) / count, *wilson(sum(right), count), sum(usual) / count]
    return [kind, alpha, *share, sum(shared) / count, gain(traces), cost, won, lost, sign_test(won, lost)]


def run(models: Models) -> Result:
    """One row per kind of prompt and alpha, and one curve per kind."""
    rows, lines, says = [], [], []
    prompts = {kind: unusual(kind, COUNT) for kind in FORMS} | {"fact sheets": sheets(COUNT)}
    for kind, items in progress.each(prompts.items()):
        plain: list[bool] = []
        for alpha in progress.each(ALPHAS):
            traces = over(models, weighed, [(item, alpha) for item in items])
            plain = plain or [begins(answer_text(t), i.right) for t, i in zip(traces, items, strict=True)]
            rows.append(row(kind, alpha, items, traces, plain))
        mine = rows[-len(ALPHAS) :]
        lines.append(Line(kind, [r[1:5] for r in mine]))
        best = max(mine[1:], key=lambda r: r[2])
        verb = "rises" if best[2] > mine[0][2] else "goes"
        says.append(
            f"{kind}: the share of right answers {verb} from {mine[0][2]:.0%} at alpha 0 to "
            f"{best[2]:.0%} at the best alpha, {best[1]:g} (p {best[-1]:.2f})."
        )
    columns = [
        "prompts",
        "alpha",
        "right",
        "from",
        "to",
        "usual",
        "words of the evidence",
        "gained bits",
        "forwards per token",
        "won",
        "lost",
        "p",
    ]
    return Result(columns, rows, says, Chart("Answers that follow the evidence", "alpha", "right", lines))


def finding(answer: dict) -> str:
    """Plain decoding when asked about what it has read, and when continuing the story."""
    asked, stated = (rows_with(answer, "prompts", kind)[0]["right"] for kind in FORMS)
    return (
        "When a text says something unusual, such as that the sky is green, the model answers “green” in "
        f"{percent(asked)} of the cases if it is asked for the color, and in {percent(stated)} if it "
        "continues with a story."
    )


def stands(answer: dict) -> Basis:
    """Prompts of both forms."""
    asked, stated = (rows_with(answer, "prompts", kind)[0]["right"] for kind in FORMS)
    compared = by_shares("right answers, asked against told", asked, COUNT, stated, COUNT)
    return Basis({"prompts of each kind": COUNT}, compared=[compared])
