"""How often llama-tiny-verilog writes the module that a comment asks for, and what its heads save, on
held-out comments.
"""

import random
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import fmean

from decoders.models.loading import load
from decoders.speculative.self_draft.fragments import SAME, TYPICAL
from decoders.trace.events import Commit, Verdict
from decoders.trace.trace import Trace
from explorer.corpus import END
from explorer.tasks.verilog import FRAGMENT, make_module, unmarked
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import Ways, compared, model_with

MODULES, TOKENS = 100, 300
RIGHT, ROUNDS = "modules.json", "rounds.json"
PLAIN: Ways = {"greedy": ("greedy", {}), "temperature 1": ("sample", {})}
WAYS: Ways = {
    "whole fragments": ("fragments", {"whole": True, "acceptance": SAME}),
    "plain heads": ("fragments", {"whole": False, "acceptance": SAME}),
    "whole fragments, typical acceptance": ("fragments", {"whole": True, "acceptance": TYPICAL}),
    "plain heads, typical acceptance": ("fragments", {"whole": False, "acceptance": TYPICAL}),
}


def asked() -> list[tuple[str, str]]:
    """Comments and their modules."""
    rng = random.Random("modules measured")
    return [make_module(rng) for _ in range(MODULES)]


def right(lanes: list[Trace]) -> float:
    """The share of texts that equal the requested module, without marks."""
    texts = [unmarked(trace.text().partition(END)[0]) for trace in lanes]
    return fmean(text == module for text, (_, module) in zip(texts, asked(), strict=True))


def measure(folder: Path, corpus: Path) -> Findings:
    """How many modules are right, greedily and at temperature 1."""
    model = load(str(folder))
    prompts = [prompt for prompt, _ in asked()]
    rows = compared(PLAIN, {"": prompts}, {"target": model}, TOKENS, lambda lanes: {"right": right(lanes)})
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
    prompts = [prompt for prompt, _ in asked()]
    rows = compared(WAYS, {"": prompts}, {"target": model}, TOKENS, partial(row, mark=mark))
    return Findings({ROUNDS: rows})
