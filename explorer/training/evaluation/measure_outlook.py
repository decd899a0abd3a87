"""What the predictor of llama-tiny-outlook saves: how many drafted tokens are discarded by SpecBranch with it
and without, and by PEARL.
"""

from pathlib import Path

from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.speculative.asynchronous.specbranch import HEAD, OWN
from decoders.trace.events import Verdict
from explorer.experiments.asked import prompts
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with, traces
from explorer.training.recipes.llama_tiny_outlook import DRAFT

NEW_TOKENS, FILE = 64, "rollbacks.json"
KINDS = ("stories", "word problems")
WAYS = {
    "pearl": ("pearl", {}),
    "specbranch, draft's confidence": ("specbranch", {"predictor": OWN}),
    "specbranch, trained predictor": ("specbranch", {"predictor": HEAD}),
}


def wasted(pair: dict[str, LoadedModel], strategy: str, settings: dict, asked: list[str]) -> dict[str, float]:
    """Greedily: `thrown away`, the share of what the draft model wrote that is discarded; `rounds` per
    written token; `rolled back`, the share of the rounds in which the target writes its own token after a
    failed test.
    """
    lanes = traces(strategy, asked, pair, {"concurrent": False, **settings}, NEW_TOKENS, seed=0)
    totals = [trace.costs.totals() for trace in lanes]
    rounds = [step for trace in lanes for step in trace.steps]
    failed = sum(any(v.status == "resampled" for v in step.of(Verdict)) for step in rounds)
    written, accepted, new, steps = (
        sum(t[name] for t in totals) for name in ("draft_token_candidates", "accepted", "new_tokens", "steps")
    )
    shares = {"thrown away": 1 - accepted / written, "rounds": steps / new}
    return {**shares, "rolled back": failed / steps}


def measure(folder: Path, corpus: Path) -> Findings:
    """Kind of text and way of drafting -> numbers of `wasted`."""
    pair = {"target": model_with(folder), "draft": load(str(folder.parent / DRAFT))}
    pair["draft"].name = DRAFT  # that of its folder is longer
    result = {}
    for kind in KINDS:
        asked = prompts(kind, 6)
        for way, (strategy, settings) in WAYS.items():
            result[f"{kind}, {way}"] = wasted(pair, strategy, settings, asked)
            print(f"{kind}, {way}", result[f"{kind}, {way}"], flush=True)
    return Findings({FILE: result})
