"""Where do the guesses come from, and how far do they get?

Who makes the guesses, are they tested as a chain or as a tree, and how many tokens does a target forward
yield? Two surveys classify methods by what they change, the draft or the model that drafts, and by how
guesses are made and refined. Here each strategy is classified by what its own run shows.
"""

from collections import Counter
from itertools import islice, product

from decoders.registry import strategies
from decoders.suitability import runs
from decoders.trace.events import Cell, Propose
from explorer.experiments import Models, Result
from explorer.experiments.asked import decoded, prompts, tokens_per_forward
from explorer.experiments.reading import rows_of, two
from explorer.experiments.spread import over

PAPERS = ("closer-look-at-efficient-inference-methods", "speculative-decoding-and-beyond")
TOKENS = 48
SOURCES = {  # source of drafted nodes -> (how guesses are made, which side of decoding is improved)
    "draft": ("a second model", "draft"),
    "prompt": ("retrieval from the text", "draft"),
    "store": ("retrieval from a store", "draft"),
    "window": ("n-grams of the target's own", "draft"),
    "pool": ("n-grams of the target's own", "draft"),
    "recycled": ("n-grams of the target's own", "draft"),
    "trigrams": ("counted n-grams", "draft"),
}


def cell(traces: list) -> tuple[str, str, str]:
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


def run(models: Models) -> Result:
    """One row per strategy, sorted by how its guesses are made."""
    rows = []
    names = [
        name
        for name, strategy in strategies().items()
        if strategy.family in ("speculative", "parallel") and runs(strategy, models)
    ]
    asked = prompts("stories", 4)
    made_by_all = iter(over(models, decoded, product(names, asked, [TOKENS])))
    for name in names:
        traces = list(islice(made_by_all, len(asked)))
        made, refined, side = cell(traces)
        rows.append([name, made, refined, side, tokens_per_forward(traces)])
    rows.sort(key=lambda row: (row[1], row[2], -row[4]))
    best = max(rows, key=lambda row: row[4])
    says = [
        f"With default settings {best[0]} has the longest effective decoding length on stories: "
        f"{best[4]:.2f} tokens per target forward.",
        "Change the draft side alone, or the verifier alone, in the strategy speculation, and see which "
        "moves it.",
    ]
    return Result(
        ["strategy", "guesses are made by", "tested as", "works on", "tokens per forward"], rows, says
    )


def finding(answer: dict) -> str:
    """The longest step, with a second model and without one."""
    with_draft, alone = [], []
    for row in (row for row in rows_of(answer) if row["tested as"] != "none"):
        (with_draft if row["guesses are made by"] == "a second model" else alone).append(row)
    best, other = (max(rows, key=lambda row: row["tokens per forward"]) for rows in (with_draft, alone))
    return (
        f"With a second model, {best['strategy']} gets furthest, with {two(best['tokens per forward'])} "
        f"tokens per target forward; without one it is {other['strategy']}, with "
        f"{two(other['tokens per forward'])}."
    )
