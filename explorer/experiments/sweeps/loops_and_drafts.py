"""Do drafts love loops?

Greedy texts of small models often end in a loop, which any draft foresees. How many drafted tokens are
accepted inside loops, and how many outside, with a draft model and with drafts that are copied? The prompts
are beginnings whose texts loop on the shipped pair; a text that does not loop counts nowhere.
"""

from dataclasses import dataclass

from explorer.experiments import Models
from explorer.experiments.asked import decoded
from explorer.experiments.pictures import Marked, Spread
from explorer.experiments.reading import Row, rows_of
from explorer.experiments.sweep import Difference, Setting, Sweep
from visualizers.analysis.loops_and_thinking import IN_LOOP, OUTSIDE, loops_and_thinking

PAPERS = ()
TOKENS = 200
PROMPTS = (
    "Every day the little bird sang a song. It sang",
    "The train went up the hill. It said,",
    "Ben found a small bird. Its wing was hurt.",
    "Tom had a big dog.",
    "Lily had a big wish. She wanted to",
    "The frog said ribbit. The duck said",
    "Once there was a king who",
    "The dog ran. The dog jumped. The dog",
    "Ben had a toy car. It was red and fast. He",
    "One day, Lily went to the park.",
    "The dog was tired. Mom said it was time to sleep.",
    "The old man looked at the sky and said,",
    "The boy knocked on the door. Knock, knock.",
    "Once upon a time there was a dog.",
    "Once upon a time, there was a little dog",
    "Mia has a red hat. Tom has a blue ball. The colors are",
)
NAMES = {"speculative": "a draft model", "prompt_lookup": "copies"}
WAYS = {"speculative": {"num_assistant_tokens": 3}, "prompt_lookup": {}}


@dataclass(frozen=True)
class Counted:
    """Of one text, the drafted tokens on one side of its loops, and the target's entropies there in bits."""

    accepted: int
    drafted: int
    bits: list[float]


def counted(models: Models, strategy: str, prompt: str, *, side: str, **parameters: int) -> Counted:
    """What was drafted in the loops of a text, or outside of them; nothing if it has none."""
    report = loops_and_thinking(decoded(models, strategy, prompt, TOKENS, **parameters))
    if not report.loops:
        return Counted(0, 0, [])
    row = report.row(side)
    return Counted(row.accepted, row.drafted, row.bits)


def acceptance(texts: list[Counted]) -> float:
    """Accepted over drafted tokens."""
    drafted = sum(one.drafted for one in texts)
    return sum(one.accepted for one in texts) / drafted if drafted else 0.0


def measures(texts: list[Counted], _: list[Counted]) -> Row:
    """Acceptance and entropy with their counts."""
    bits = [value for one in texts for value in one.bits]
    return {
        "acceptance": acceptance(texts),
        "drafted tokens": sum(one.drafted for one in texts),
        "entropy in bits": sum(bits) / len(bits) if bits else None,
        "texts": sum(one.drafted > 0 for one in texts),
    }


def says(rows: list[Row]) -> list[str]:
    """Inside against outside, for both ways to draft."""
    inside, outside, copied, apart = rows
    return [
        f"A draft model's tokens are accepted in {inside['acceptance']:.0%} of {inside['drafted tokens']:,} "
        f"cases in loops, and in {outside['acceptance']:.0%} of {outside['drafted tokens']:,} outside.",
        f"Copied drafts: {copied['acceptance']:.0%} in loops, {apart['acceptance']:.0%} outside.",
    ]


def spread(rows: list[Row]) -> list[Spread]:
    """Acceptance on both sides, for each way to draft."""
    pairs = [(rows[at], rows[at + 1]) for at in range(0, len(rows), 2)]
    marked = [Marked(a["drafted by"], [a["acceptance"], b["acceptance"]]) for a, b in pairs]
    return [Spread("Accepted drafted tokens", "share", ["in loops", "outside"], marked)]


SWEEP = Sweep(
    names=("drafted by", "where"),
    settings=lambda models: [
        Setting((NAMES[strategy], side), strategy, parameters | {"side": side}, list(zip(PROMPTS)))
        for strategy, parameters in WAYS.items()
        for side in (IN_LOOP, OUTSIDE)
    ],
    decode=counted,
    measures=measures,
    says=says,
    pictures=spread,
    differences=(
        Difference(
            "acceptance of a draft model, in loops against outside",
            acceptance,
            lambda rows: (rows[0], rows[1]),
        ),
        Difference(
            "acceptance of copied drafts, in loops against outside",
            acceptance,
            lambda rows: (rows[2], rows[3]),
        ),
    ),
    sampled={"prompts": len(PROMPTS)},
)


def finding(answer: dict) -> str:
    """Inside against outside."""
    inside, outside, *_ = rows_of(answer)
    return (
        f"In a loop {inside['acceptance']:.0%} of the drafted tokens are accepted, outside of loops "
        f"{outside['acceptance']:.0%}: an acceptance rate over texts that loop flatters the draft."
    )
