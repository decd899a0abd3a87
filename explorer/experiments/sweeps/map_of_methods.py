"""Where do the guesses come from, and how far do they get?

Who makes the guesses, are they tested as a chain or as a tree, and how many tokens does a target forward
yield? Two surveys classify methods by what they change, the draft or the model that drafts, and by how
guesses are made and refined. Here each strategy is classified by what its own run shows.
"""

from collections import Counter

from decoders.registry import strategies
from decoders.suitability import runs
from decoders.trace.events import Cell, Propose
from decoders.trace.trace import Trace
from explorer.experiments import Models
from explorer.experiments.asked import cases
from explorer.experiments.measures import tokens_per_forward
from explorer.experiments.reading import Row, highest, rows_of, two
from explorer.experiments.sweep import Difference, Setting, Sweep

PAPERS = ("closer-look-at-efficient-inference-methods", "speculative-decoding-and-beyond")
PROMPTS, TOKENS = 4, 48
SOURCES = {  # source of drafted nodes -> (how guesses are made, which side of decoding is improved)
    "draft": ("a second model", "draft"),
    "prompt": ("retrieval from the text", "draft"),
    "store": ("retrieval from a store", "draft"),
    "window": ("n-grams of the target's own", "draft"),
    "pool": ("n-grams of the target's own", "draft"),
    "recycled": ("n-grams of the target's own", "draft"),
    "trigrams": ("counted n-grams", "draft"),
}


def settings(models: Models) -> list[Setting]:
    """Every strategy that speculates and can run with these models, with its defaults."""
    names = [
        name
        for name, strategy in strategies().items()
        if strategy.family in ("speculative", "parallel") and runs(strategy, models)
    ]
    return [Setting((name,), name, {}, cases("stories", PROMPTS, TOKENS)) for name in names]


def place(traces: list[Trace]) -> tuple[str, str, str]:
    """(how guesses are made, how they are refined, side) of one strategy, from its traces."""
    drafted = [
        proposed
        for trace in traces
        for step in trace.steps
        for proposed in step.of(Propose)
        if proposed.node in trace.costs.drafted_nodes
    ]
    drafts = any(trace.costs.draft_forwards for trace in traces)
    if not drafts and any(step.of(Cell) for trace in traces for step in trace.steps):
        return "the last iteration", "iteration", "model"
    if not drafted:
        return "none", "none", "none"
    [(source, _)] = Counter(proposed.source for proposed in drafted).most_common(1)
    made, side = SOURCES.get(source, (source, "draft"))
    if source == "draft" and not drafts:
        made, side = "the target itself, in part", "model"
    return made, "tree" if any(proposed.slot for proposed in drafted) else "chain", side


def measures(traces: list[Trace], _: list[Trace]) -> Row:
    """The place on the map, and how far the strategy gets."""
    places = dict(zip(("guesses are made by", "tested as", "works on"), place(traces), strict=True))
    return places | {"tokens per forward": tokens_per_forward(traces)}


def says(rows: list[Row]) -> list[str]:
    """The strategy that gets furthest."""
    best = highest(rows, "tokens per forward")
    return [
        f"With default settings {best['strategy']} has the longest effective decoding length on stories: "
        f"{best['tokens per forward']:.2f} tokens per target forward.",
        "Change the draft side alone, or the verifier alone, in the strategy speculation, and see which "
        "moves it.",
    ]


def ranked(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The strategies that guess with a second model and those without one, the furthest first."""
    with_draft, alone = [], []
    for row in sorted(rows, key=lambda row: -row["tokens per forward"]):
        if row["tested as"] != "none":
            (with_draft if row["guesses are made by"] == "a second model" else alone).append(row)
    return with_draft, alone


def ahead(with_draft: bool) -> Difference:
    """The lead of the best strategy over the second, with a second model or without one."""
    return Difference(
        "tokens per target forward, {0[strategy]} against {1[strategy]}",
        tokens_per_forward,
        lambda rows: tuple(ranked(rows)[not with_draft][:2]),
    )


SWEEP = Sweep(
    names=("strategy",),
    settings=settings,
    measures=measures,
    says=says,
    differences=(ahead(with_draft=True), ahead(with_draft=False)),
    order=lambda row: (row["guesses are made by"], row["tested as"], -row["tokens per forward"]),
    sampled={"prompts": PROMPTS},
)


def finding(answer: dict) -> str:
    """The longest step, with a second model and without one."""
    best, other = (rows[0] for rows in ranked(rows_of(answer)))
    return (
        f"With a second model, {best['strategy']} gets furthest, with {two(best['tokens per forward'])} "
        f"tokens per target forward; without one it is {other['strategy']}, with "
        f"{two(other['tokens per forward'])}."
    )
