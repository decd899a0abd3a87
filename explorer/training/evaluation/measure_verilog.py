"""How often llama-tiny-verilog writes the module that a comment asks for, and what its heads save, on
held-out comments.
"""

import random
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.speculative.self_draft.fragments import SAME, TYPICAL
from decoders.trace.events import Commit, Verdict
from decoders.trace.trace import Trace
from explorer.corpus import END
from explorer.tasks.verilog import FRAGMENT, make_module, unmarked
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with, traces

MODULES, TOKENS = 100, 300
RIGHT, ROUNDS = "modules.json", "rounds.json"
WAYS = {
    "whole fragments": {"whole": True, "acceptance": SAME},
    "plain heads": {"whole": False, "acceptance": SAME},
    "whole fragments, typical acceptance": {"whole": True, "acceptance": TYPICAL},
    "plain heads, typical acceptance": {"whole": False, "acceptance": TYPICAL},
}


def asked() -> list[tuple[str, str]]:
    """Comments and their modules."""
    rng = random.Random("modules measured")
    return [make_module(rng) for _ in range(MODULES)]


def written(model: LoadedModel, strategy: str, settings: dict) -> list[Trace]:
    """A lane for each comment."""
    return traces(strategy, [prompt for prompt, _ in asked()], {"target": model}, settings, TOKENS)


def right(lanes: list[Trace]) -> float:
    """The share of texts that equal the requested module, without marks."""
    texts = [unmarked(trace.text().partition(END)[0]) for trace in lanes]
    return fmean(text == module for text, (_, module) in zip(texts, asked(), strict=True))


def measure(folder: Path, corpus: Path) -> Findings:
    """How many modules are right, greedily and at temperature 1."""
    model = load(str(folder))
    rows = {
        "greedy": {"right": right(written(model, "greedy", {}))},
        "temperature 1": {"right": right(written(model, "sample", {}))},
    }
    print(rows, flush=True)
    return Findings({RIGHT: rows})


def row(lanes: list[Trace], mark: int) -> dict[str, float]:
    """The results of one way of decoding, over all texts."""
    forwards = sum(trace.costs.target_forwards for trace in lanes)
    status = [e.status for trace in lanes for step in trace.steps for e in step.of(Verdict)]
    passed, cut = status.count("accepted"), status.count("pruned")
    ends = [token == mark for trace in lanes for token in last_of_rounds(trace)]
    return {
        "tokens per forward": sum(len(trace.output()) for trace in lanes) / forwards,
        "end with a fragment": fmean(ends) if ends else 0.0,
        "cut": cut / max(1, passed + cut),
        "right": right(lanes),
    }


def last_of_rounds(trace: Trace) -> list[int]:
    """The last token of each round but the last one: the token before the target's own."""
    sizes = [len(e.nodes) for step in trace.steps for e in step.of(Commit)]
    return [trace.output()[end - 2] for end in accumulate(sizes) if 2 <= end < len(trace.output())]


def measure_heads(folder: Path, corpus: Path) -> Findings:
    """Way of drafting with the heads -> see `row`."""
    model = model_with(folder)
    mark = model.tokenizer.convert_tokens_to_ids(FRAGMENT)
    rows = {name: row(written(model, "fragments", settings), mark) for name, settings in WAYS.items()}
    print(rows, flush=True)
    return Findings({ROUNDS: rows})
