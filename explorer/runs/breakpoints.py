"""The breakpoints of a run: asked after each step of its lanes, they say why it stops there.

Everything here is called on the worker, or for a run that has ended.
"""

from collections.abc import Sequence
from typing import Protocol

from decoders.trace.breakpoints import Condition, Kind, Stop, Watch, differ, stops
from decoders.trace.trace import Trace


class Watched(Protocol):
    """A lane's record: its trace, and the tokens that end its text, as far as they are known."""

    trace: Trace
    ends: Sequence[int]


class Breakpoints:
    """`after(records, record)` says why the run stops after the newest step of `record`; None if it does
    not. Lanes differ once in a run.
    """

    def __init__(self, conditions: Sequence[Condition]):
        self.conditions = conditions
        self.watches: dict[int, Watch] = {}  # by the record's id
        self.fed: dict[int, int] = {}  # steps that a watch has seen
        self.apart = False

    def after(self, records: Sequence[Watched], record: Watched) -> str | None:
        """The sentence, with lane, step and numbers."""
        if not self.conditions:
            return None
        found = self._feed(record)
        place = None if self.apart else differ([self._watch(one).tokens() for one in records])
        self.apart = self.apart or place is not None
        said = [stop.sentence for stop in found]
        if place is not None and Condition(Kind.DIFFER) in self.conditions:
            said.append(f"lanes differ, at token {place + 1}")
        if not said:
            return None
        lane = next(number for number, one in enumerate(records, 1) if one is record)
        return f"Stopped after step {len(record.trace.steps)} of lane {lane}: {'; '.join(said)}."

    def _watch(self, record: Watched) -> Watch:
        key = id(record)
        if key not in self.watches:
            trace = record.trace
            self.watches[key] = Watch(self.conditions, trace.prompt, trace.vocabulary, record.ends)
            self.fed[key] = 0
        return self.watches[key]

    def _feed(self, record: Watched) -> list[Stop]:
        """What holds at the newest step; steps before it are only remembered."""
        watch, found = self._watch(record), []
        for step in record.trace.steps[self.fed[id(record)] :]:
            found = watch.feed(step)
        self.fed[id(record)] = len(record.trace.steps)
        return found


def stops_of(records: Sequence[Watched], conditions: Sequence[Condition]) -> list[list[dict]]:
    """Lane by lane the steps at which conditions hold, for the page: `{step, node, position, text}`."""
    ends = {token for record in records for token in record.ends}
    return [
        [
            {"step": stop.step, "node": stop.node, "position": stop.position, "text": stop.sentence}
            for stop in sorted(lane, key=lambda stop: stop.step)
        ]
        for lane in stops([record.trace for record in records], conditions, ends)
    ]
