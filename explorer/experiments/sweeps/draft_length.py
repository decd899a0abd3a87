"""How long should a draft be?

If each drafted token is accepted with probability alpha, a draft of K tokens commits (1 - alpha^(K+1)) / (1 -
alpha) tokens per round (Leviathan et al. 2023, equation 1). Real positions are not all alike: what do the
models achieve?
"""

from decoders.trace.trace import Trace
from explorer.experiments.asked import cases
from explorer.experiments.curves import Curves
from explorer.experiments.measures import acceptance, draft_forwards_per_token, tokens_per_forward
from explorer.experiments.reading import Row, highest, rows_of, two
from explorer.experiments.sweep import Difference, Setting, Sweep

PAPERS = ()
LENGTHS, PROMPTS, TOKENS = (1, 2, 3, 4, 6, 8, 12), 6, 64


def measures(traces: list[Trace], shortest: list[Trace]) -> Row:
    """Tokens per round, with the formula's value for the acceptance at K = 1."""
    alpha, k = acceptance(shortest), traces[0].parameters["num_assistant_tokens"]
    return {
        "tokens per forward": tokens_per_forward(traces),
        "by the formula": (1 - alpha ** (k + 1)) / (1 - alpha),
        "acceptance": acceptance(traces),
        "draft forwards per token": draft_forwards_per_token(traces),
    }


def says(rows: list[Row]) -> list[str]:
    """The length that brings most, against the formula."""
    best = highest(rows, "tokens per forward")
    return [
        f"At K = 1 a drafted token is accepted in {rows[0]['acceptance']:.0%} of the cases; with K = "
        f"{best['K']} a target forward yields {best['tokens per forward']:.2f} tokens, where the formula "
        f"gives {best['by the formula']:.2f}.",
        "The formula treats all positions alike; where it predicts less than was measured, easy positions "
        "come in runs.",
    ]


SWEEP = Sweep(
    names=("K",),
    settings=lambda models: [
        Setting((k,), "speculative", {"num_assistant_tokens": k}, cases("stories", PROMPTS, TOKENS))
        for k in LENGTHS
    ],
    measures=measures,
    says=says,
    chart=Curves(
        "Tokens per target forward",
        "drafted tokens K",
        "tokens",
        {"measured": ("K", "tokens per forward"), "by the formula": ("K", "by the formula")},
    ),
    differences=(
        Difference(
            "tokens per target forward, K {0[K]} against {1[K]}",
            tokens_per_forward,
            lambda rows: (rows[-1], rows[0]),
        ),
    ),
    sampled={"prompts": PROMPTS},
)


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
