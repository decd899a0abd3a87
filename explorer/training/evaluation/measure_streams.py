"""Whether parallel streams agree on a colour that one of them makes up, with their notes and without.

Knows the strategy and its traces; writes no cards.
"""

import json
import random
from pathlib import Path

from decoders.lane import Lane, Limits
from decoders.models.catalog import TARGET
from decoders.models.loaded_model import LoadedModel
from decoders.models.loading import load
from decoders.trace.events import Verdict
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.training.data.sections import KEYS, LEADER, Record, answer, record

FILE = "streams.json"
RECORDS, NEW_TOKENS = 24, 64
WAYS = {  # row -> parameters; notes with a delay of eight rounds come too late for all
    "as trained": {},
    "gamma 0.3": {"gamma": 0.3},
    "without roll back": {"gamma": 0.0},
    "without notes": {"gamma": 0.0, "delay": 8},
}


def run(target: LoadedModel, one: Record, seed: int, parameters: dict) -> Trace:
    """An answer at temperature 1."""
    chosen = {"temperature": 1.0, **parameters}
    lane = Lane("pdt", target.encode(one.prompt), {"target": target}, chosen, seed, Limits(NEW_TOKENS))
    return lane.run()


def row(one: Record, trace: Trace) -> dict[str, float]:
    """For one answer: whether all its lines have one colour, the share of right fields, blocks rolled back,
    and tokens per forward of the trunk.
    """
    lines = answer(trace.text().removesuffix("<|endoftext|>"))
    wanted = {(key, str(value)) for key, value in one.values.items()}
    ends = {e.node for s in trace.steps for e in s.of(Measure) if e.name == ScoreName.READINESS}
    back = {v.node for s in trace.steps for v in s.of(Verdict) if v.status == "rejected"}
    fields = {(key, value) for key, value, _ in lines if key != LEADER}
    return {
        "one colour": float(len({colour for _, _, colour in lines}) == 1),
        "fields right": len(wanted & fields) / len(KEYS),
        "blocks rolled back": float(len(ends & back)),
        "tokens per forward": len(trace.output()) / trace.costs.target_forwards,
    }


def measure(folder: Path) -> None:
    """Writes streams.json beside the weights: way -> the means of `row` over held-out records."""
    target, rng = load(TARGET), random.Random("held out streams")
    records, result = [record(rng) for _ in range(RECORDS)], {}
    for way, parameters in WAYS.items():
        rows = [row(one, run(target, one, seed, parameters)) for seed, one in enumerate(records)]
        result[way] = {name: sum(each[name] for each in rows) / len(rows) for name in rows[0]}
        print(way, result[way], flush=True)
    (folder / FILE).write_text(json.dumps(result, indent=1) + "\n", "utf-8")
