"""How long a draft should be.

With a chance alpha that a drafted token is accepted, a draft of K tokens commits
(1 - alpha^(K+1)) / (1 - alpha) tokens a round, if all places were alike (Leviathan et al. 2023, equation 1).
What do the models do?
"""

from explorer.experiments import Chart, Line, Models, Result
from explorer.experiments.asked import acceptance, decoded, prompts, tokens_a_round

PAPERS = ()
LENGTHS, TOKENS = (1, 2, 3, 4, 6, 8, 12), 64


def run(models: Models) -> Result:
    """Tokens a round for several K, greedily, with the formula's value for the acceptance at K = 1."""
    rows, alpha = [], 0.0
    for length in LENGTHS:
        traces = [
            decoded(models, "speculative", p, TOKENS, num_assistant_tokens=length)
            for p in prompts("stories", 6)
        ]
        share = acceptance(traces)
        alpha = alpha or share
        formula = (1 - alpha ** (length + 1)) / (1 - alpha)
        drafts = sum(t.costs.totals()["draft_forwards"] for t in traces)
        new = sum(t.costs.totals()["new_tokens"] for t in traces)
        rows.append([length, tokens_a_round(traces), formula, share, drafts / new])
    best = max(rows, key=lambda row: row[1])
    says = [
        f"At K = 1 a drafted token is accepted in {alpha:.0%} of the cases; with K = {best[0]} a target "
        f"forward brings {best[1]:.2f} tokens, where the formula says {best[2]:.2f}.",
        "The formula takes all places as alike; where it says less than was measured, easy places follow "
        "each other.",
    ]
    lines = [
        Line("measured", [[row[0], row[1]] for row in rows]),
        Line("by the formula", [[row[0], row[2]] for row in rows]),
    ]
    columns = ["K", "tokens per forward", "by the formula", "acceptance", "draft forwards per token"]
    return Result(columns, rows, says, Chart("Tokens a target forward", "drafted tokens K", "tokens", lines))
