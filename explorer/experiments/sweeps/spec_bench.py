"""Which drafting method is best on which text?

As in Spec-Bench (Xia et al. 2024), each speculative strategy decodes greedily with its defaults, alternating
with plain greedy decoding of the same prompt; the texts must be equal. The cells of the six kinds of text are
tokens per target forward.
"""

import time
from typing import NamedTuple

from decoders.trace.trace import Trace
from explorer.experiments import Models, progress
from explorer.experiments.asked import KINDS, decoded, lossless, prompts, without_sampling
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.sweep import Setting, Sweep

PAPERS = ("unlocking-efficiency-in-large-language-model-inference",)
COUNT, TOKENS = 6, 48


class Measured(NamedTuple):
    """On the prompts of one kind: tokens per target forward, tokens/s relative to greedy's, and whether all
    texts equal greedy's.
    """

    tokens: float
    speed: float
    equal: bool


def timed(models: Models, strategy: str, prompt: str, **parameters: float) -> tuple[Trace, float]:
    """(trace, tokens/s) of one prompt."""
    began = time.perf_counter()
    trace = decoded(models, strategy, prompt, TOKENS, **parameters)
    return trace, len(trace.output()) / (time.perf_counter() - began)


def measured(models: Models, strategy: str, kind: str, **parameters: float) -> Measured:
    """A strategy in turn with greedy, prompt by prompt."""
    pairs = [
        (timed(models, strategy, prompt, **parameters), timed(models, "greedy", prompt))
        for prompt in progress.each(prompts(kind, COUNT))
    ]
    speed = sum(rate for (_, rate), _ in pairs) / sum(rate for _, (_, rate) in pairs)
    equal = all(trace.output() == plain.output() for (trace, _), (plain, _) in pairs)
    return Measured(tokens_per_forward([trace for (trace, _), _ in pairs]), speed, equal)


def measures(kinds: list[Measured], greedy: list[Measured]) -> Row:
    """Tokens per target forward on each kind of text, and the speed and equality of all."""
    return {
        **{kind: one.tokens for kind, one in zip(KINDS, kinds, strict=True)},
        "speed": sum(one.speed for one in kinds) / len(kinds),
        "greedy's text": "yes" if all(one.equal for one in kinds) else "no",
    }


def says(rows: list[Row]) -> list[str]:
    """The best strategy on each kind of text."""
    best = {kind: max(rows, key=lambda row: row[kind]) for kind in KINDS}
    return [
        *(
            f"On {kind} {row['strategy']} gets furthest: {row[kind]:.2f} tokens per target forward."
            for kind, row in best.items()
        ),
        "Speed is tokens/s over greedy's, measured in turn, prompt by prompt: the mean over the kinds.",
    ]


SWEEP = Sweep(
    names=("strategy",),
    settings=lambda models: [
        Setting((name,), name, without_sampling(name), [(kind,) for kind in KINDS])
        for name in ("greedy", *lossless())
    ],
    decode=measured,
    measures=measures,
    says=says,
    sampled={"prompts of each kind": COUNT},
    one_process=True,
)


def finding(answer: dict) -> str:
    """How many methods win somewhere, and the one that depends most on the text."""
    rows = rows_of(answer)
    winners = {max(rows, key=lambda row: row[kind])["strategy"] for kind in KINDS}
    widest = max(rows, key=lambda row: max(row[kind] for kind in KINDS) - min(row[kind] for kind in KINDS))
    best, worst = (pick(KINDS, key=widest.__getitem__) for pick in (max, min))
    wins = (
        f"No method wins everywhere: {len(winners)} different ones are best on {len(KINDS)} kinds of text"
        if len(winners) > 1
        else f"On all {len(KINDS)} kinds of text {winners.pop()} is best"
    )
    return (
        f"{wins}; {widest['strategy']} depends most on the text, with {two(widest[best])} tokens per target "
        f"forward on {best} and {two(widest[worst])} on {worst}."
    )
