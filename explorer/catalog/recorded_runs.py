"""The stored run that the page shows before any model is loaded, and the example prompts.

`python -m explorer.catalog.recorded_runs` recorded the traces in assets/examples/ and can record them again;
the page's pictures are computed from them when the app starts.
"""

import argparse
import json

from decoders.models.catalog import DRAFT, TARGET
from decoders.packages import assets
from decoders.trace.trace import Trace, load
from explorer.catalog import method_cards
from explorer.runs.model_pool import Loader

FOLDER = assets() / "examples"
PROMPT = "Once upon a time"
MAX_NEW_TOKENS = 40
OPENING = ("beam", "speculative", "universal", "greedy")  # with which a page may open: see opening_lanes.py
MODELS = {"target": TARGET, "draft": DRAFT}  # of the stored run of the page
LANES = [
    {"strategy": "beam", "parameters": {"num_beams": 4}, "seed": 0},
    {"strategy": "speculative", "parameters": {}, "seed": 0},
]


def setup() -> dict:
    """The run's `{prompt, max_new_tokens, lanes: [{strategy, parameters, seed, view}]}`, and `declarations`
    of all strategies of `OPENING`: to make them takes torch, which is not loaded when the page opens.
    """
    return json.loads((FOLDER / "first.json").read_text("utf-8"))


def traces() -> list[Trace]:
    """The run's traces, lane by lane."""
    return [load(FOLDER / f"first-{number}.json.gz") for number in range(1, len(setup()["lanes"]) + 1)]


def first_rejection(lanes: list[dict]) -> dict | None:
    """The first rejected draft token of a run: `{lane, step, node, rejected, instead}`, the last two as text;
    None if there is none. `lanes`: see `run_state.answer`.
    """
    for at, lane in enumerate(lanes):
        for step, row in enumerate(lane["rows"], 1):
            born = {op["state"]: op for op in reversed(row["chips"]) if "state" in op}
            if "rejected" in born and "resampled" in born:
                rejected, instead = born["rejected"], born["resampled"]["text"]
                place = {"lane": at, "step": step, "node": rejected["node"]}
                return place | {"rejected": rejected["text"], "instead": instead}
    return None


def prompts() -> list[dict]:
    """Example prompts: `[{title, prompt}]`, some also with `max_new_tokens, lanes, message`, or with `task`
    if they ask for what only the shipped models have learned.
    """
    return json.loads((FOLDER / "prompts.json").read_text("utf-8"))


def record(loader: Loader, lanes: list[dict] = LANES, prompt: str = PROMPT) -> None:
    """Decodes the stored run again and writes its files. Raises Refusal with one sentence."""
    from decoders.registry import get
    from explorer.runs.lane_factory import lane_maker
    from explorer.runs.validation import check

    request = {"prompt": prompt, "max_new_tokens": MAX_NEW_TOKENS, "lanes": lanes}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for number, lane in enumerate(lane_maker(loader)(check(request)), 1):
        lane.run().save(FOLDER / f"first-{number}.json.gz")
    views = {lane["strategy"]: get(lane["strategy"]).views[0] for lane in lanes}
    request["lanes"] = [{**lane, "view": views[lane["strategy"]]} for lane in lanes]
    request["declarations"] = [get(name).declaration() for name in OPENING]
    (FOLDER / "first.json").write_text(json.dumps(request, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Records the stored runs: the first one on the page and those of the method cards."
    )
    parser.add_argument("methods", nargs="*", help="only the runs of these cards (default: everything)")
    parser.add_argument("--model", default=TARGET)
    parser.add_argument("--draft", default=DRAFT)
    options = parser.parse_args()
    loader = Loader(options.model, options.draft, "cpu")
    loader.load()
    if not options.methods:
        record(loader)
    method_cards.record(loader, options.methods)
