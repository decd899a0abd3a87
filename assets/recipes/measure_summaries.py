"""How what llama-tiny-summaries writes keeps to plans and to topics, on fact sheets that were never fed."""

import json
from pathlib import Path
from statistics import fmean

from measure_forms import PLANS, steered

from decoders.models import load
from explorer.experiments.figures import paired
from explorer.experiments.plans_and_summaries import adherences, sheets
from explorer.experiments.topic_plans import Text

SHEETS, STEERED = 100, 24
ADHERENCE = "adherence.json"


def measure(folder: Path) -> None:
    """Leaves adherence.json and plans.json (how topics steer) beside the adapter."""
    model, found = load(str(folder)), sheets(SHEETS, "measured")
    kept, others = adherences(model, found)
    gap, error = paired([a - b for a, b in zip(kept, others, strict=True)])
    told = {"its plan": fmean(kept), "another plan": fmean(others), "ahead": gap, "2 s.e.": 2 * error}
    print(told, flush=True)
    (folder / ADHERENCE).write_text(json.dumps({"F1": told}, indent=1) + "\n")
    plans = steered(model, [Text(sheet.prompt, sheet.summary) for sheet in found[:STEERED]])
    (folder / PLANS).write_text(json.dumps(plans, indent=1) + "\n")
