"""How long should a draft be?

If each drafted token is accepted with probability alpha, a draft of K tokens commits (1 - alpha^(K+1)) / (1 -
alpha) tokens per round (Leviathan et al. 2023, equation 1). Real positions are not all alike: what do the
models achieve?
"""

from itertools import islice, product

from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result
from explorer.experiments.asked import acceptance, decoded, prompts, tokens_per_forward
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.reading import rows_of, two
from explorer.experiments.spread import over

PAPERS = ()
LENGTHS, PROMPTS, TOKENS = (1, 2, 3, 4, 6, 8, 12), 6, 64


def of_length(models: Models, length: int, prompt: str, tokens: int) -> Trace:
    """One prompt continued with drafts of one length."""
    return decoded(models, "speculative", prompt, tokens, num_assistant_tokens=length)


def run(models: Models) -> Result:
    """Tokens per round for several K, greedily, with the formula's value for the acceptance at K = 1."""
    rows, alpha = [], 0.0
    asked = prompts("stories", PROMPTS)
    drafted = iter(over(models, of_length, product(LENGTHS, asked, [TOKENS])))
    each = {}
    for length in LENGTHS:
        traces = list(islice(drafted, len(asked)))
        share = acceptance(traces)
        each[length] = [tokens_per_forward([trace]) for trace in traces]
        alpha = alpha or share
        formula = (1 - alpha ** (length + 1)) / (1 - alpha)
        drafts = sum(t.costs.totals()["draft_forwards"] for t in traces)
        new = sum(t.costs.totals()["new_tokens"] for t in traces)
        rows.append([length, tokens_per_forward(traces), formula, share, drafts / new])
    best = max(rows, key=lambda row: row[1])
    says = [
        f"At K = 1 a drafted token is accepted in {alpha:.0%} of the cases; with K = {best[0]} a target "
        f"forward yields {best[1]:.2f} tokens, where the formula gives {best[2]:.2f}.",
        "The formula treats all positions alike; where it predicts less than was measured, easy positions "
        "come in runs.",
    ]
    lines = [
        Line("measured", [[row[0], row[1]] for row in rows]),
        Line("by the formula", [[row[0], row[2]] for row in rows]),
    ]
    columns = ["K", "tokens per forward", "by the formula", "acceptance", "draft forwards per token"]
    chart = Chart("Tokens per target forward", "drafted tokens K", "tokens", lines)
    gaps = [b - a for a, b in zip(each[LENGTHS[0]], each[LENGTHS[-1]], strict=True)]
    compared = [by_pairs(f"tokens per target forward, K {LENGTHS[-1]} against {LENGTHS[0]}", gaps)]
    return Result(columns, rows, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """The shortest draft against the longest."""
    rows = rows_of(answer)
    short, long = rows[0], rows[-1]
    work = long["draft forwards per token"] / short["draft forwards per token"]
    return (
        f"Drafting {long['K']} tokens at a time instead of {short['K']} takes {work:.1f} times as many draft "
        f"forwards and yields {two(long['tokens per forward'])} tokens per target forward instead of "
        f"{two(short['tokens per forward'])}."
    )


def stands(answer: dict) -> Basis:
    """Prompts, decoded greedily."""
    return Basis({"prompts": PROMPTS}, compared=as_measured(answer))
