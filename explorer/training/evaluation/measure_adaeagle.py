"""What the predictor of llama-tiny-adaeagle saves: chains of EAGLE's layer with a predicted length, compared
with chains of fixed lengths.
"""

from pathlib import Path

from decoders.models.loaded_model import LoadedModel
from decoders.models.model_heads import load_heads
from explorer.experiments.asked import prompts
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import model_with, traces
from explorer.training.recipes.llama_tiny_adaeagle import EAGLE

NEW_TOKENS, FILE, ASKED = 64, "chains.json", 8
KINDS = ("stories", "word problems")
LENGTHS = (1, 2, 3, 4, 6)


def paid(target: LoadedModel, strategy: str, settings: dict, asked: list[str]) -> dict[str, float]:
    """Greedily: `tokens per forward` of the target, `drafted` per token of the text, and the share of the
    drafted tokens that is `accepted`.
    """
    lanes = traces(strategy, asked, {"target": target}, settings, NEW_TOKENS, seed=0)
    totals = [trace.costs.totals() for trace in lanes]
    new, forwards, proposed, accepted = (
        sum(t[name] for t in totals) for name in ("new_tokens", "target_forwards", "proposed", "accepted")
    )
    share = accepted / proposed if proposed else 0.0
    return {"tokens per forward": new / forwards, "drafted": proposed / new, "accepted": share}


def measure(folder: Path, corpus: Path) -> Findings:
    """Kind of text and way of drafting -> numbers of `paid`."""
    target = model_with(folder)
    target.heads.update(load_heads(str(folder.parent / EAGLE), target))
    ways = {f"{length} tokens": ("eagle", {"tree": "chain", "depth": length}) for length in LENGTHS}
    ways["predicted"] = ("adaeagle", {})
    ways["predicted, joint stop"] = ("adaeagle", {"joint_stop": True})
    result = {}
    for kind in KINDS:
        asked = prompts(kind, ASKED)
        for way, (strategy, settings) in ways.items():
            result[f"{kind}, {way}"] = paid(target, strategy, settings, asked)
            print(f"{kind}, {way}", result[f"{kind}, {way}"], flush=True)
    return Findings({FILE: result})
