"""How often the programs of llama-tiny-flaws are flawed with its label allowed and forbidden, and how many
flaws it announces, on held-out tasks.
"""

import random
from pathlib import Path
from statistics import fmean

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.corpus import END
from explorer.tasks.file_programs import LABEL, does, flaws, make_task, prompt_of
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces

PROGRAMS, TOKENS = 100, 96
FLAWS = "flaws.json"
THRESHOLD = 0.5


def program_of(trace: Trace) -> str:
    """The text of a lane without its end."""
    return trace.text().partition(END)[0]


def announced(trace: Trace) -> list[float]:
    """P(label) at the start of each line that a lane wrote."""
    probs = {e.node: e.total for step in trace.steps for e in step.of(Measure) if e.name == ScoreName.P_LABEL}
    starts, text = [], "\n"
    for token, p in zip(trace.output(), probs.values(), strict=True):
        if text.endswith("\n"):
            starts.append(p)
        text += trace.vocabulary[token].decode("utf-8", "replace")
    return starts


def written(model: LoadedModel, tasks: list[list[str]], ban: bool, temperature: float) -> list[Trace]:
    """A lane for each task."""
    asked = {"label": f'"{LABEL}"', "ban": ban, "temperature": temperature, "threshold": 1.0}
    return traces("label_ban", map(prompt_of, tasks), {"target": model}, asked, TOKENS)


def row(model: LoadedModel, tasks: list[list[str]], temperature: float) -> dict[str, float]:
    """Shares of the programs, with the label allowed and forbidden."""
    allowed, banned = (written(model, tasks, ban, temperature) for ban in (False, True))
    wrong = [(trace, lines) for trace in allowed if (lines := flaws(program_of(trace)))]
    hits = [any(announced(trace)[at] > THRESHOLD for at in lines) for trace, lines in wrong]
    left = fmean(bool(flaws(program_of(trace))) for trace in banned)
    before = len(wrong) / len(tasks)
    done = [
        fmean(does(program_of(trace), task) for trace, task in zip(lanes, tasks, strict=True))
        for lanes in (allowed, banned)
    ]
    return {
        "flawed": before,
        "announced": fmean(hits) if hits else 0.0,
        "flawed without the label": left,
        "avoided": max(0.0, 1 - left / before) if before else 0.0,
        "task done": done[0],
        "task done without the label": done[1],
    }


def measure(folder: Path, corpus: Path) -> Findings:
    """Greedily and at temperature 1: see `row`."""
    model, rng = load(str(folder)), random.Random("flaws measured")
    tasks = [make_task(rng) for _ in range(PROGRAMS)]
    rows = {name: row(model, tasks, t) for name, t in (("greedy", 0.0), ("temperature 1", 1.0))}
    print(rows, flush=True)
    return Findings({FLAWS: rows})
