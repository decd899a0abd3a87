"""Which drafting method is best on which text?

As in Spec-Bench (Xia et al. 2024), each speculative strategy decodes greedily with its defaults, alternating
with plain greedy decoding of the same prompt; the texts must be equal. The cells of the six kinds of text are
tokens per target forward.
"""

import time

from decoders.trace.trace import Trace
from explorer.experiments import Models, Result, progress
from explorer.experiments.asked import KINDS, decoded, lossless, prompts, tokens_per_forward, without_sampling
from explorer.experiments.basis import Basis
from explorer.experiments.reading import rows_of, two

PAPERS = ("unlocking-efficiency-in-large-language-model-inference",)
COUNT, TOKENS = 6, 48


def timed(models: Models, strategy: str, prompt: str) -> tuple[Trace, float]:
    """(trace, tokens/s) of one prompt, without sampling."""
    began = time.perf_counter()
    trace = decoded(models, strategy, prompt, TOKENS, **without_sampling(strategy))
    return trace, len(trace.output()) / (time.perf_counter() - began)


def measured(models: Models, strategy: str, kind: str) -> tuple[float, float, bool]:
    """(tokens per target forward, mean of tokens/s relative to greedy's, whether all texts equal
    greedy's).
    """
    asked = prompts(kind, COUNT)
    pairs = [
        (timed(models, strategy, prompt), timed(models, "greedy", prompt)) for prompt in progress.each(asked)
    ]
    speed = sum(rate for (_, rate), _ in pairs) / sum(rate for _, (_, rate) in pairs)
    equal = all(trace.output() == plain.output() for (trace, _), (plain, _) in pairs)
    return tokens_per_forward([trace for (trace, _), _ in pairs]), speed, equal


def run(models: Models) -> Result:
    """One row per strategy: tokens per target forward on each kind of text, and the mean of the speed
    ratios.
    """
    rows = []
    for name in progress.each(["greedy", *lossless()]):
        by_kind = [measured(models, name, kind) for kind in progress.each(KINDS)]
        speed, equal = sum(speed for _, speed, _ in by_kind) / len(by_kind), all(same for *_, same in by_kind)
        rows.append([name, *(tokens for tokens, _, _ in by_kind), speed, "yes" if equal else "no"])
    says = []
    for at, kind in enumerate(KINDS, 1):
        best = max(rows, key=lambda row: row[at])
        says.append(f"On {kind} {best[0]} gets furthest: {best[at]:.2f} tokens per target forward.")
    says.append(
        "Speed is tokens/s over greedy's, measured in turn, prompt by prompt: the mean over the kinds."
    )
    return Result(["strategy", *KINDS, "speed", "greedy's text"], rows, says)


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


def stands(answer: dict) -> Basis:
    """Prompts of each kind, each continued once by every strategy."""
    return Basis({"prompts of each kind": COUNT})
