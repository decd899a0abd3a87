"""How far does a model drift when it keeps less of its past?

Every memory policy of the app at several budgets is compared with the full cache after the same stories: the
bytes that are left of the full cache at the end, drift (KL of the next-token distribution from that of the
full cache, mean over the written text), and the first token that differs from greedy's. Each policy's last
budget keeps everything, where nothing may change. Few bits alone is GEAR without outliers and without the
low-rank part of the error. FlowCut and MustDrop drop tokens of the prompt alone.
"""

from dataclasses import dataclass
from typing import Any

from decoders.lane import Lane, Limits
from decoders.memory_options import memories
from decoders.trace.scores import Measure, ScoreName
from explorer.experiments import Models
from explorer.experiments.asked import decoded, prompts
from explorer.experiments.curves import CurvesBy
from explorer.experiments.reading import Row, count, highest, lowest, percent, rows_of
from explorer.experiments.sweep import Difference, Setting, Sweep

PAPERS = tuple(slug for one in memories().values() for slug in one.papers)
PROMPTS, READ, TOKENS = 3, 128, 48  # stories, tokens of each that are read, tokens that are written
FEW = 0.4  # share of the full cache's bytes at which memories are compared
BITS = {"memory": "gear", "memory_rank": 0, "memory_outliers": 0.0}
# Memory -> (its settings, the parameter that varies, its values from the smallest budget to everything).
BUDGETS = {
    "LM-Infinite": ({"memory": "lm-infinite"}, "local", (16, 32, 64, 128, 512)),
    "GEAR": ({"memory": "gear"}, "bits", (2, 4, 8, 16)),
    "few bits alone": (BITS, "bits", (2, 4, 8, 16)),
    "SubGen": ({"memory": "subgen"}, "budget", (16, 32, 64, 128, 512)),
    "LeanK": ({"memory": "leank"}, "prune", (0.75, 0.5, 0.25, 0.0)),
    "KV-head SVD": ({"memory": "kv-svd"}, "heads", (1, 2, 3, 6)),
    "FlowCut": ({"memory": "flowcut"}, "keep", (0.25, 0.5, 0.75, 1.0)),
    "MustDrop": ({"memory": "mustdrop"}, "single", (0.04, 0.02, 0.01, 0.0)),
}


@dataclass(frozen=True)
class Drift:
    """For one text: the share of the full cache's bytes that is left, KL at each token, and the index of the
    first token that differs from the full cache's, None if none does.
    """

    kept: float
    nats: list[float]
    changed: int | None


def drift(models: Models, strategy: str, prompt: list[int], plain: list[int], **parameters: Any) -> Drift:
    """Decodes one text with one memory policy. `plain`: greedy's text with the full cache."""
    trace = Lane(strategy, prompt, models, parameters, limits=Limits(TOKENS)).run()
    scores = [score for step in trace.steps for score in step.of(Measure)]
    last = [score for score in scores if score.name == ScoreName.MEMORY_BYTES][-1]
    written = trace.output()
    same = next((at for at, pair in enumerate(zip(written, plain, strict=False)) if pair[0] != pair[1]), None)
    if same is None and len(written) != len(plain):
        same = min(len(written), len(plain))
    nats = [score.total for score in scores if score.name == ScoreName.KL_FROM_FULL_CACHE]
    return Drift(last.total / last.parts["full"], nats, None if same is None else same + 1)


def texts(models: Models) -> list[tuple[list[int], list[int]]]:
    """Stories that greedy itself wrote: the part of each that is read, and what greedy writes after it."""
    made = []
    for story in prompts("stories", PROMPTS):
        trace = decoded(models, "greedy", story, READ)
        read = [*trace.prompt, *trace.output()][:READ]
        made.append((read, Lane("greedy", read, models, {}, limits=Limits(TOKENS)).run().output()))
    return made


def settings(models: Models) -> list[Setting]:
    """Every memory with each of its budgets."""
    asked = texts(models)
    return [
        Setting((name, f"{of} {budget:g}"), "greedy", given | {f"memory_{of}": budget}, asked)
        for name, (given, of, budgets) in BUDGETS.items()
        for budget in budgets
    ]


def nats(drifts: list[Drift]) -> float:
    """The mean KL over the written tokens."""
    each = [one for text in drifts for one in text.nats]
    return sum(each) / len(each)


def measures(drifts: list[Drift], _: list[Drift]) -> Row:
    """What is kept, and how far the texts drift."""
    changed = [text.changed for text in drifts if text.changed is not None]
    return {
        "of the full cache": sum(text.kept for text in drifts) / len(drifts),
        "KL in nats": nats(drifts),
        "first changed token": min(changed, default=None),
        "texts unchanged": len(drifts) - len(changed),
    }


def says(rows: list[Row]) -> list[str]:
    """What was read, and the best memory of two sizes."""
    return [
        f"Of each text {READ} tokens are read and up to {TOKENS} written; {count(PROMPTS, 'text')}.",
        *(best_within(rows, share) for share in (0.2, FEW)),
    ]


def best_within(rows: list[Row], share: float) -> str:
    """The memory that drifts least with at most this share of the bytes."""
    fitting = [row for row in rows if row["of the full cache"] <= share]
    if not fitting:
        return f"No memory fits into {percent(share)} of the full cache here."
    best = lowest(fitting, "KL in nats")
    return (
        f"With at most {percent(share)} of the full cache, {best['memory']} ({best['budget']}) drifts least: "
        f"{best['KL in nats']:.4f} nats with {percent(best['of the full cache'])} of the bytes."
    )


def extremes(table: list[Row]) -> tuple[Row, Row]:
    """The memories that drift least and most with a small share of the bytes, each at its best budget."""
    rows = [row for row in table if row["of the full cache"] <= FEW] or table
    nearest = {}
    for row in rows:
        if row["memory"] not in nearest or row["KL in nats"] < nearest[row["memory"]]["KL in nats"]:
            nearest[row["memory"]] = row
    low, high = (pick(nearest.values(), "KL in nats") for pick in (lowest, highest))
    return low, high


SWEEP = Sweep(
    names=("memory", "budget"),
    settings=settings,
    decode=drift,
    measures=measures,
    says=says,
    chart=CurvesBy(
        "Drift against what is kept",
        "share of the full cache's bytes",
        "nats from the full cache",
        "memory",
        ("of the full cache", "KL in nats"),
    ),
    differences=(
        Difference("nats from the full cache, most against least", nats, lambda rows: extremes(rows)[::-1]),
    ),
    sampled={"texts": PROMPTS},
)


def finding(answer: dict) -> str:
    """The memories that drift least and most with a small share of the bytes."""
    low, high = extremes(rows_of(answer))
    return (
        f"With {percent(low['of the full cache'])} of the cache's bytes, {low['memory']} drifts "
        f"{low['KL in nats']:.3f} nats from the full cache; {high['memory']} drifts {high['KL in nats']:.3f} "
        f"with {percent(high['of the full cache'])}."
    )
