"""Whether parallel streams agree on a colour that one of them makes up, with their notes and without."""

import random
from pathlib import Path

from decoders.models.catalog import TARGET
from decoders.models.loading import load
from decoders.trace.events import Verdict
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from explorer.training.data.sections import KEYS, LEADER, Record, answer, record
from explorer.training.evaluation.findings import Findings
from explorer.training.evaluation.lanes import Ways, compared

FILE = "streams.json"
RECORDS, NEW_TOKENS = 24, 64
WAYS: Ways = {  # notes with a delay of eight rounds come too late for all
    "as trained": ("pdt", {"temperature": 1.0}),
    "gamma 0.3": ("pdt", {"temperature": 1.0, "gamma": 0.3}),
    "without roll back": ("pdt", {"temperature": 1.0, "gamma": 0.0}),
    "without notes": ("pdt", {"temperature": 1.0, "gamma": 0.0, "delay": 8}),
}


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


def measure(folder: Path, corpus: Path) -> Findings:
    """Way -> the means of `row` over held-out records, at temperature 1."""
    models, rng = {"target": load(TARGET)}, random.Random("held out streams")
    records = [record(rng) for _ in range(RECORDS)]

    def means(lanes: list[Trace]) -> dict[str, float]:
        rows = [row(one, trace) for one, trace in zip(records, lanes, strict=True)]
        return {name: sum(each[name] for each in rows) / len(rows) for name in rows[0]}

    asked = [one.prompt for one in records]
    return Findings({FILE: compared(WAYS, {"": asked}, models, NEW_TOKENS, means)})
