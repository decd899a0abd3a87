"""How well the summaries of llama-tiny-summaries follow plans and topics, and which clauses
llama-tiny-planner finds, on held-out fact sheets.
"""

from collections import Counter
from pathlib import Path
from statistics import fmean

from decoders.models.loading import load
from decoders.search.planned.content_plans import plan_beams
from decoders.search.planned.discourse_units import f1
from explorer.experiments.plans_and_summaries import adherences, sheets
from explorer.experiments.statistics import lead
from explorer.experiments.topic_plans import Text
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with
from explorer.training.evaluation.measure_forms import PLANS, steered
from explorer.training.recipes.llama_tiny_planner import read_sheets

SHEETS, STEERED = 100, 24
ADHERENCE, CLAUSES = "adherence.json", "clauses.json"
BEAMS = 4  # plans


def measure(folder: Path, corpus: Path) -> Findings:
    """Whether summaries follow plans, and how topics steer."""
    model, asked = load(str(folder)), sheets(SHEETS, "measured")
    kept, others = adherences(model, asked)
    gap, error = lead(kept, others)
    result = {"its plan": fmean(kept), "another plan": fmean(others), "ahead": gap, "2 s.e.": 2 * error}
    print(result, flush=True)
    plans = steered(model, [Text(sheet.prompt, sheet.summary) for sheet in asked[:STEERED]])
    return Findings({ADHERENCE: {"F1": result}, PLANS: plans})


def measure_planner(folder: Path, corpus: Path) -> Findings:
    """Of the plan model: F1 with the clauses that the sheets' own summaries state."""
    target = model_with(folder)
    head = target.heads["planner"]
    scores: dict[str, list[float]] = {"its best plan": [], "best of four": [], "first clauses": []}
    _, (vectors, counts, plans, _) = read_sheets(target, "measured", SHEETS)
    for row, count, plan in zip(vectors, counts.tolist(), plans.tolist(), strict=True):
        units = Counter(unit for unit in plan if unit >= 0)
        *_, (_, whole) = plan_beams(head.opened(row[: count + 1])[0], BEAMS)
        near = [f1(Counter(one.units), units) for one in whole]
        lead = f1(Counter(range(len(units))), units)
        for name, figure in zip(scores, (near[0], max(near), lead), strict=True):
            scores[name].append(figure)
    means = {name: fmean(figures) for name, figures in scores.items()}
    print(means, flush=True)
    return Findings({CLAUSES: {"F1": means}})
