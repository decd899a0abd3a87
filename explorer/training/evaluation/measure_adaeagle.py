"""What the predictor of llama-tiny-adaeagle saves: chains of EAGLE's layer with a predicted length, compared
with chains of fixed lengths.
"""

from pathlib import Path

from decoders.models.model_heads import load_heads
from decoders.trace.trace import Trace
from explorer.experiments.asked import prompts
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import Ways, compared, model_with
from explorer.training.recipes.llama_tiny_adaeagle import EAGLE

NEW_TOKENS, FILE, ASKED = 64, "chains.json", 8
KINDS = ("stories", "word problems")
WAYS: Ways = {
    **{f"{length} tokens": ("eagle", {"tree": "chain", "depth": length}) for length in (1, 2, 3, 4, 6)},
    "predicted": ("adaeagle", {}),
    "predicted, joint stop": ("adaeagle", {"joint_stop": True}),
}


def paid(lanes: list[Trace]) -> dict[str, float]:
    """`tokens per forward` of the target, `drafted` per token of the text, and the share of the drafted
    tokens that is `accepted`.
    """
    totals = [trace.costs.totals() for trace in lanes]
    new, forwards, proposed, accepted = (
        sum(t[name] for t in totals) for name in ("new_tokens", "target_forwards", "proposed", "accepted")
    )
    share = accepted / proposed if proposed else 0.0
    return {"tokens per forward": new / forwards, "drafted": proposed / new, "accepted": share}


def measure(folder: Path, corpus: Path) -> Findings:
    """Kind of text and way of drafting -> numbers of `paid`, greedily."""
    target = model_with(folder)
    target.heads.update(load_heads(str(folder.parent / EAGLE), target))
    asked = {kind: prompts(kind, ASKED) for kind in KINDS}
    return Findings({FILE: compared(WAYS, asked, {"target": target}, NEW_TOKENS, paid, seed=0)})
