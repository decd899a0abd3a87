"""How many forwards the filter of Learn2PD saves, and how often the text equals that of one token per
forward.
"""

from pathlib import Path

from decoders.models.catalog import TARGET
from decoders.models.loading import load
from decoders.trace.events import Forward
from decoders.trace.trace import Trace
from explorer.corpus import END
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.training.answers import accuracy
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces

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


def measure(folder: Path, corpus: Path) -> Findings:
    """Way -> `forwards` per text, `solved` and `same text`; as a fact the size of the canvas."""
    models = {"target": load(TARGET)}
    made = [p for name in TASKS for p in problems(name, PROBLEMS, HELD_OUT_SEED)]
    prompts = [p.prompt for p in made] + list(BEGIN[:STORIES])
    result, texts = {}, []
    for name, (strategy, parameters) in WAYS.items():
        lanes = traces(strategy, prompts, models, parameters, NEW_TOKENS, seed=0)
        texts = texts or [trace.output() for trace in lanes]
        same = sum(trace.output() == text for trace, text in zip(lanes, texts, strict=True))
        answers = [trace.text().removesuffix(END) for trace in lanes[: len(made)]]
        result[name] = {
            "forwards": sum(map(forwards, lanes)) / len(lanes),
            "solved": accuracy(made, answers),
            "same text": same / len(lanes),
        }
        print(f"{name:16}", result[name], flush=True)
    return Findings({FILE: result}, {"canvas": NEW_TOKENS})
