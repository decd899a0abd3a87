"""Which of the draft's guesses is accepted?

At every position the draft proposes eight different tokens. How often does the target accept the first, the
second, and so on? Sequoia builds its tree from these rates.
"""

from collections import Counter
from itertools import product

from decoders.trace.trace import Trace
from explorer.experiments import Chart, Line, Models, Result, progress
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.basis import Basis, by_pairs
from explorer.experiments.reading import percent
from explorer.experiments.spread import over
from visualizers.analysis.lane_stats import LaneFacts

PAPERS = ("sequoia",)
WIDTH, TOKENS, PROMPTS, SEEDS = 8, 64, 6, 4
TEMPERATURES = {"greedy": 0.0, "temperature 1": 1.0}


def traces(models: Models, temperature: float) -> list[Trace]:
    """A trace per prompt and seed."""
    seeds = range(SEEDS if temperature else 1)
    asked = product(["speculative_tree"], prompts("stories", PROMPTS), [TOKENS], seeds)
    return list(over(models, decoded, asked, widths=[WIDTH], temperature=temperature))


def shares(traces: list[Trace]) -> list[float]:
    """P_k, k = 1 to WIDTH: share of rounds in which the k-th child was the accepted one."""
    rounds = [made for trace in traces for made in LaneFacts(trace).rounds]
    accepted = Counter(test.rank for made in rounds for test in made.tests if test.accepted)
    return [accepted[rank] / len(rounds) for rank in range(1, WIDTH + 1)]


def run(models: Models) -> Result:
    """Shares by rank, greedily and at temperature 1."""
    ways = progress.each(TEMPERATURES.items(), weight=lambda way: SEEDS if way[1] else 1)
    wrote = {name: traces(models, temperature) for name, temperature in ways}
    by_way = {name: shares(some) for name, some in wrote.items()}
    ahead = [first - second for first, second, *_ in (shares([trace]) for trace in wrote["greedy"])]
    rows = [[rank + 1, *(by_way[name][rank] for name in by_way)] for rank in range(WIDTH)]
    says = []
    for name, values in by_way.items():
        kept = ",".join(f"{value:.3f}" for value in values[:4])
        says.append(
            f"{name[0].upper()}{name[1:]}: the first guess is accepted in {values[0]:.0%} of the rounds, one "
            f"of the {WIDTH} in {sum(values):.0%}; set Sequoia's acceptance to {kept}."
        )
    lines = [Line(name, [[rank + 1, value] for rank, value in enumerate(by_way[name])]) for name in by_way]
    chart = Chart("Accepted guesses", "rank of the guess", "share", lines)
    compared = [by_pairs("share of the first guess against the second", ahead)]
    return Result(["rank", *by_way], rows, says, chart, compared=compared)


def finding(answer: dict) -> str:
    """The distribution of accepted guesses over the ranks."""
    first, *others = (row[1] for row in answer["rows"])  # the greedy column
    return (
        f"The draft's first guess is accepted in {percent(first)} of the rounds, its second in "
        f"{percent(others[0])}, and all later ones together in {percent(sum(others[1:]))}."
    )


STANDS = Basis({"prompts": PROMPTS, "seeds at temperature 1": SEEDS})
