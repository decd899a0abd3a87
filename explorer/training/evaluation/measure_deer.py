"""How long the accepted drafts of a masked model are: of the drafter that was aligned with the target, and of
the one from which it was made.
"""

from dataclasses import replace
from pathlib import Path

from decoders.models.catalog import TARGET
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces
from explorer.training.evaluation.measure_acceptance import TEMPERATURES, prompts

FILE = "accepted-lengths.json"
STORIES, PROBLEMS, NEW_TOKENS = 24, 1, 48  # prompts: held-out stories, and problems of each task
DRAFTERS = {"aligned": "deer", "plain": "diffusion"}  # drafter -> kind of model
Lengths = dict[str, dict[str, float]]


def lengths(target: LoadedModel, groups: dict[str, list[list[int]]]) -> Lengths:
    """Group of prompts -> drafter and temperature -> mean number of accepted tokens per round."""
    result = {}
    for group, asked in groups.items():
        row = result[group] = {}
        for drafter, kind in DRAFTERS.items():
            drafts = {"diffusion": target.companion(kind)}
            models = {"target": replace(target, _companions=drafts)}
            for name, temperature in TEMPERATURES.items():
                lanes = traces("deer", asked, models, {"temperature": temperature}, NEW_TOKENS)
                costs = [trace.costs for trace in lanes]
                rounds = sum(len(cost.per_step_accepted) for cost in costs)
                row[f"{drafter}, {name}"] = sum(cost.accepted for cost in costs) / max(1, rounds)
        print(f"{group:10}", "  ".join(f"{k} {v:.2f}" for k, v in row.items()), flush=True)
    return result


def measure(folder: Path, corpus: Path) -> Findings:
    """How many drafted tokens are accepted, for held-out stories and for problems of all tasks."""
    target = load(TARGET)
    groups = prompts(corpus, target)
    stories = groups.pop("stories")[:STORIES]
    tasks = [prompt for group in groups.values() for prompt in group[:PROBLEMS]]
    result = lengths(target, {"stories": stories, "tasks": tasks})
    return Findings({FILE: result})
