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
from collections.abc import Iterable
from dataclasses import dataclass

from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.experiments import Models
from explorer.experiments.asked import decoded
from explorer.experiments.basis import Basis, by_shares
from explorer.experiments.curves import CurvesBy
from explorer.experiments.measures import right_with_interval, won_and_lost
from explorer.experiments.reading import Row, grouped, highest, percent, rows_with
from explorer.experiments.sweep import Setting, Sweep
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.tasks.facts import COLOURS

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


def answer_text(trace: Trace) -> str:
    """What was written, without the end-of-text token."""
    return trace.text().split("<|")[0]


def gains(trace: Trace) -> list[float]:
    """Nats by which the wanted view made each token more likely than the other; none without a second."""
    scores = [e for step in trace.steps for e in step.of(Measure) if e.name == ScoreName.CONTRAST]
    return [2 * e.parts["wanted"] - sum(e.parts.values()) for e in scores]


def gained_bits(answers: Iterable[list[float]]) -> float | None:
    """Bits by which the wanted view made a token more likely, on average over answers with these `gains`;
    None if there was only one view.
    """
    nats = [one for answer in answers for one in answer]
    return sum(nats) / len(nats) / math.log(2) if nats else None


@dataclass(frozen=True)
class Answered:
    """An answer: whether it is that of the evidence, or the usual one; its share of the evidence's words; the
    nats by which the evidence made each token more likely; and what it cost.
    """

    right: bool
    usual: bool
    shared: float
    gains: list[float]
    forwards: int
    tokens: int


def weighed(models: Models, strategy: str, item: Item, **parameters: float) -> Answered:
    """The answer with the evidence weighted by `alpha`; the question is in both views."""
    trace = decoded(models, strategy, item.prompt, TOKENS, context=item.evidence, **parameters)
    text = answer_text(trace)
    return Answered(
        begins(text, item.right),
        begins(text, item.usual),
        overlap(text, item.evidence),
        gains(trace),
        trace.costs.totals()["target_forwards"],
        len(trace.output()),
    )


def settings(models: Models) -> list[Setting]:
    """Every kind of prompt with every alpha."""
    asked = {kind: unusual(kind, COUNT) for kind in FORMS} | {"fact sheets": sheets(COUNT)}
    return [
        Setting((kind, alpha), "context_aware", {"alpha": alpha}, [(item,) for item in items])
        for kind, items in asked.items()
        for alpha in ALPHAS
    ]


def measures(answers: list[Answered], plain: list[Answered]) -> Row:
    """Right and usual answers, the effect of the evidence, and what a token costs; `plain`: of alpha 0."""
    count = len(answers)
    return {
        **right_with_interval(answers),
        "usual": sum(one.usual for one in answers) / count,
        "words of the evidence": sum(one.shared for one in answers) / count,
        "gained bits": gained_bits(one.gains for one in answers),
        "forwards per token": sum(one.forwards for one in answers) / sum(one.tokens for one in answers),
        **won_and_lost(answers, plain),
    }


def says(rows: list[Row]) -> list[str]:
    """Each kind at alpha 0 and at its best alpha."""
    sentences = []
    for kind, (plain, *others) in grouped(rows, "prompts").items():
        best = highest(others, "right")
        verb = "rises" if best["right"] > plain["right"] else "goes"
        sentences.append(
            f"{kind}: the share of right answers {verb} from {plain['right']:.0%} at alpha 0 to "
            f"{best['right']:.0%} at the best alpha, {best['alpha']:g} (p {best['p']:.2f})."
        )
    return sentences


SWEEP = Sweep(
    names=("prompts", "alpha"),
    settings=settings,
    decode=weighed,
    measures=measures,
    within="prompts",
    says=says,
    chart=CurvesBy(
        "Answers that follow the evidence", "alpha", "right", "prompts", ("alpha", "right", "from", "to")
    ),
    sampled={"prompts of each kind": COUNT},
)


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
    compared = by_shares("right answers, asked against told", asked, stated, COUNT)
    return Basis(SWEEP.sampled, compared=[compared])
