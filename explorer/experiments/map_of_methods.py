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
from explorer.experiments.basis import Basis, as_measured, by_pairs
from explorer.experiments.reading import Row, rows_of, two
from explorer.experiments.spread import over

PAPERS = ("closer-look-at-efficient-inference-methods", "speculative-decoding-and-beyond")
PROMPTS, TOKENS = 4, 48
COLUMNS = ["strategy", "guesses are made by", "tested as", "works on", "tokens per forward"]
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
    rows, each = [], {}
    names = [
        name
        for name, strategy in strategies().items()
        if strategy.family in ("speculative", "parallel") and runs(strategy, models)
    ]
    asked = prompts("stories", PROMPTS)
    made_by_all = iter(over(models, decoded, product(names, asked, [TOKENS])))
    for name in names:
        traces = list(islice(made_by_all, len(asked)))
        made, refined, side = cell(traces)
        rows.append([name, made, refined, side, tokens_per_forward(traces)])
        each[name] = [tokens_per_forward([trace]) for trace in traces]
    rows.sort(key=lambda row: (row[1], row[2], -row[4]))
    best = max(rows, key=lambda row: row[4])
    says = [
        f"With default settings {best[0]} has the longest effective decoding length on stories: "
        f"{best[4]:.2f} tokens per target forward.",
        "Change the draft side alone, or the verifier alone, in the strategy speculation, and see which "
        "moves it.",
    ]
    compared = []
    for best, second in (some[:2] for some in ranked([dict(zip(COLUMNS, row, strict=True)) for row in rows])):
        names = best["strategy"], second["strategy"]
        gaps = [a - b for a, b in zip(*(each[name] for name in names), strict=True)]
        compared.append(by_pairs(f"tokens per target forward, {names[0]} against {names[1]}", gaps))
    return Result(COLUMNS, rows, says, compared=compared)


def ranked(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The strategies that guess with a second model and those without one, the furthest first."""
    with_draft, alone = [], []
    for row in sorted(rows, key=lambda row: -row["tokens per forward"]):
        if row["tested as"] != "none":
            (with_draft if row["guesses are made by"] == "a second model" else alone).append(row)
    return with_draft, alone


def finding(answer: dict) -> str:
    """The longest step, with a second model and without one."""
    best, other = (rows[0] for rows in ranked(rows_of(answer)))
    return (
        f"With a second model, {best['strategy']} gets furthest, with {two(best['tokens per forward'])} "
        f"tokens per target forward; without one it is {other['strategy']}, with "
        f"{two(other['tokens per forward'])}."
    )


def stands(answer: dict) -> Basis:
    """Prompts, each continued once by every strategy."""
    return Basis({"prompts": PROMPTS}, compared=as_measured(answer))
