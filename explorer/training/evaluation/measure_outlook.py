"""What the predictor of llama-tiny-outlook saves: how many drafted tokens are discarded by SpecBranch with it
and without, and by PEARL.
"""

from pathlib import Path

from decoders.models.loading import load
from decoders.speculative.asynchronous.specbranch import HEAD, OWN
from decoders.trace.events import Verdict
from decoders.trace.trace import Trace
from explorer.experiments.asked import prompts
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import Ways, compared, model_with
from explorer.training.recipes.llama_tiny_outlook import DRAFT

NEW_TOKENS, FILE, ASKED = 64, "rollbacks.json", 6
KINDS = ("stories", "word problems")
WAYS: Ways = {
    "pearl": ("pearl", {"concurrent": False}),
    "specbranch, draft's confidence": ("specbranch", {"concurrent": False, "predictor": OWN}),
    "specbranch, trained predictor": ("specbranch", {"concurrent": False, "predictor": HEAD}),
}


def wasted(lanes: list[Trace]) -> dict[str, float]:
    """`thrown away`, the share of what the draft model wrote that is discarded; `rounds` per
    written token; `rolled back`, the share of the rounds in which the target writes its own token after a
    failed test.
    """
    totals = [trace.costs.totals() for trace in lanes]
    rounds = [step for trace in lanes for step in trace.steps]
    failed = sum(any(v.status == "resampled" for v in step.of(Verdict)) for step in rounds)
    written, accepted, new, steps = (
        sum(t[name] for t in totals) for name in ("draft_token_candidates", "accepted", "new_tokens", "steps")
    )
    shares = {"thrown away": 1 - accepted / written, "rounds": steps / new}
    return {**shares, "rolled back": failed / steps}


def measure(folder: Path, corpus: Path) -> Findings:
    """Kind of text and way of drafting -> numbers of `wasted`, greedily."""
    pair = {"target": model_with(folder), "draft": load(str(folder.parent / DRAFT))}
    pair["draft"].name = DRAFT  # that of its folder is longer
    asked = {kind: prompts(kind, ASKED) for kind in KINDS}
    return Findings({FILE: compared(WAYS, asked, pair, NEW_TOKENS, wasted, seed=0)})
