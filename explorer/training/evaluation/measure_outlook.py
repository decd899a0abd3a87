"""What the predictor of llama-tiny-outlook saves: how many drafted tokens are discarded by SpecBranch with it
and without, and by PEARL.
"""

import json
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.models.model_heads import load_heads
from decoders.speculative.asynchronous.specbranch import HEAD, OWN
from decoders.trace.events import Verdict
from explorer.experiments.asked import prompts
from explorer.training.recipes.llama_tiny_outlook import DRAFT, TARGET

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
    totals, failed = [], 0
    for prompt in asked:
        ids = pair["target"].encode(prompt)
        lane = Lane(strategy, ids, pair, {"concurrent": False, **settings}, limits=Limits(NEW_TOKENS))
        trace = lane.run()
        totals.append(trace.costs.totals())
        failed += sum(any(v.status == "resampled" for v in step.of(Verdict)) for step in trace.steps)
    written, accepted, new, steps = (
        sum(t[name] for t in totals) for name in ("draft_token_candidates", "accepted", "new_tokens", "steps")
    )
    shares = {"thrown away": 1 - accepted / written, "rounds": steps / new}
    return {**shares, "rolled back": failed / steps}


def measure(folder: Path) -> None:
    """Writes rollbacks.json beside the head: kind of text and way of drafting -> numbers of `wasted`."""
    pair = {role: load(str(folder.parent / name)) for role, name in (("target", TARGET), ("draft", DRAFT))}
    pair["target"].heads["outlook"] = load_heads(str(folder), pair["target"])["outlook"]
    pair["draft"].name = DRAFT  # that of its folder is longer
    result = {}
    for kind in KINDS:
        asked = prompts(kind, 6)
        for way, (strategy, settings) in WAYS.items():
            result[f"{kind}, {way}"] = wasted(pair, strategy, settings, asked)
            print(f"{kind}, {way}", result[f"{kind}, {way}"], flush=True)
    (folder / FILE).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
