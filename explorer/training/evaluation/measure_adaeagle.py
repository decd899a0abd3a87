"""What the predictor of llama-tiny-adaeagle saves: chains of EAGLE's layer with a predicted length, compared
with chains of fixed lengths.
"""

import json
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from explorer.experiments.asked import prompts
from explorer.training.recipes.llama_tiny_adaeagle import TARGET

NEW_TOKENS, FILE, ASKED = 64, "chains.json", 8
KINDS = ("stories", "word problems")
LENGTHS = (1, 2, 3, 4, 6)


def paid(target: LoadedModel, strategy: str, settings: dict, asked: list[str]) -> dict[str, float]:
    """Greedily: `tokens per forward` of the target, `drafted` per token of the text, and the share of the
    drafted tokens that is `accepted`.
    """
    traces = [
        Lane(strategy, target.encode(text), {"target": target}, settings, limits=Limits(NEW_TOKENS)).run()
        for text in asked
    ]
    totals = [trace.costs.totals() for trace in traces]
    new, forwards, proposed, accepted = (
        sum(t[name] for t in totals) for name in ("new_tokens", "target_forwards", "proposed", "accepted")
    )
    share = accepted / proposed if proposed else 0.0
    return {"tokens per forward": new / forwards, "drafted": proposed / new, "accepted": share}


def measure(folder: Path, corpus: Path) -> None:
    """Writes chains.json beside the head: kind of text and way of drafting -> numbers of `paid`."""
    target = load(str(folder.parent / TARGET))
    target.heads = load_heads(str(folder.parent / "llama-tiny-heads"), target)
    target.heads["adaeagle"] = load_heads(str(folder), target)["adaeagle"]
    ways = {f"{length} tokens": ("eagle", {"tree": "chain", "depth": length}) for length in LENGTHS}
    ways["predicted"] = ("adaeagle", {})
    ways["predicted, joint stop"] = ("adaeagle", {"joint_stop": True})
    result = {}
    for kind in KINDS:
        asked = prompts(kind, ASKED)
        for way, (strategy, settings) in ways.items():
            result[f"{kind}, {way}"] = paid(target, strategy, settings, asked)
            print(f"{kind}, {way}", result[f"{kind}, {way}"], flush=True)
    (folder / FILE).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
