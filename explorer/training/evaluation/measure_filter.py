"""How many forwards the filter of Learn2PD saves, and how often the text equals that of one token per
forward.

Knows strategies of diffusion and their traces; writes no cards.
"""

import json
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.catalog import TARGET
from decoders.models.loading import load
from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from explorer.corpus import END
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.training.measure_tasks import accuracy

FILE = "filtered.json"
TASKS = ("copy", "reverse", "upper", "json", "sort")
PROBLEMS, STORIES, NEW_TOKENS = 4, 4, 40
BEGIN = (
    "Once upon a time",
    "One day Tom",
    "Lily had a red",
    "The old fox",
    "Mia and Ben",
    "It was a sunny day",
)
WAYS = {  # column -> strategy and parameters
    "one a forward": ("masked_diffusion", {}),
    "threshold 0.9": ("masked_diffusion", {"policy": "threshold", "tau": 0.9}),
    "filter": ("learn2pd", {"eotp": False}),
    "filter and EoTP": ("learn2pd", {}),
    "oracle": ("learn2pd", {"filter": "oracle", "eotp": False}),
}


def forwards(trace: Trace) -> int:
    """Forwards of a lane that count."""
    return sum(f.kind != "lens" for step in trace.steps for f in step.of(Forward))


def measure(folder: Path) -> None:
    """Writes filtered.json beside the weights: way -> `forwards` per text, `solved` and `same text`."""
    models = {"target": load(TARGET)}
    made = [p for name in TASKS for p in problems(name, PROBLEMS, HELD_OUT_SEED)]
    prompts = [p.prompt for p in made] + list(BEGIN[:STORIES])
    result, texts = {}, []
    for name, (strategy, parameters) in WAYS.items():
        traces = [
            Lane(strategy, models["target"].encode(p), models, parameters, 0, Limits(NEW_TOKENS)).run()
            for p in prompts
        ]
        texts = texts or [trace.output() for trace in traces]
        same = sum(trace.output() == text for trace, text in zip(traces, texts, strict=True))
        answers = [trace.text().removesuffix(END) for trace in traces[: len(made)]]
        result[name] = {
            "forwards": sum(map(forwards, traces)) / len(traces),
            "solved": accuracy(made, answers),
            "same text": same / len(traces),
        }
        print(f"{name:16}", result[name], flush=True)
    (folder / FILE).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    facts = json.loads((folder / "facts.json").read_text("utf-8")) | {"canvas": NEW_TOKENS}
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
