"""How the accuracy of models that fill masks after a causal past falls when they fill more per forward,
compared with ordinary next-token decoding with the same weights.
"""

from pathlib import Path

from decoders.models.loading import load
from decoders.trace.events import Forward
from explorer.tasks import HELD_OUT_SEED, problems
from explorer.training.answers import ACCURACIES, accuracy, answers
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import traces

TASKS = ("copy", "translate", "upper", "opposite", "json", "sort")
PROBLEMS, NEW_TOKENS = 40, 64
SETTINGS = {  # strategy -> name of a column -> parameters
    "set_block": {
        "gamma 0": {"gamma": 0.0},
        "gamma 0.1": {"gamma": 0.1},
        "whole blocks": {"gamma": 1000.0},
    },
    "lud": {"beta 1": {"beta": 1.0}, "beta 0.9": {"beta": 0.9}, "beta 0.5": {"beta": 0.5}},
    "wedlm": {"one": {"tau": 0.0}, "tau 0.1": {"tau": 0.1}, "tau 0.4": {"tau": 0.4}},
}


def measure(folder: Path, corpus: Path, strategy: str) -> Findings:
    """Task -> accuracy with each setting of a strategy; as a fact the tokens per forward of each."""
    target, result = load(str(folder), "cpu", "float32"), {}
    tokenizer = target.tokenizer
    pace: dict[str, list[float]] = {}
    for name in TASKS:
        asked = problems(name, PROBLEMS, HELD_OUT_SEED)
        written = answers(target.model, tokenizer, [p.prompt for p in asked], limit=NEW_TOKENS)
        result[name] = {"next token": accuracy(asked, written)}
        for column, parameters in SETTINGS[strategy].items():
            prompts, models = [p.prompt for p in asked], {"target": target}
            lanes = traces(strategy, prompts, models, parameters, NEW_TOKENS, seed=0)
            texts = [tokenizer.decode(t.output(), skip_special_tokens=True) for t in lanes]
            result[name][column] = accuracy(asked, texts)
            forwards = sum(len(step.of(Forward)) for t in lanes for step in t.steps)
            pace.setdefault(column, []).append(sum(len(t.output()) for t in lanes) / forwards)
        print(f"{name:12}", result[name], flush=True)
    mean = {column: round(sum(x) / len(x), 2) for column, x in pace.items()}
    return Findings({ACCURACIES: result}, {"tokens_per_forward": mean})
