"""Breakpoints in Python: a lane runs until a condition holds, and goes on when the caller has looked."""

from collections.abc import Iterator, Sequence

from decoders.lane import Lane
from decoders.refusal import Refusal
from decoders.trace.breakpoints import Condition, Kind, Stop, Watch, parse_all


def stops(lane: Lane, stop_when: Sequence[str]) -> Iterator[list[Stop]]:
    """Runs a lane and yields at each step at which conditions hold, such as `["entropy > 4"]`; the forms are
    in docs/library.md. A caller that asks for no further step leaves the lane where it is. Raises Refusal
    with one sentence if a condition cannot be read, or is about several lanes.
    """
    conditions = parse_all(stop_when)
    if Condition(Kind.DIFFER) in conditions:
        raise Refusal("Whether lanes differ can only be asked of several lanes, on the page.")
    watch = Watch(conditions, lane.trace.prompt, lane.trace.vocabulary, lane.eos)
    while lane.trace.ended is None:
        step = lane.advance()
        if step is not None and (found := watch.feed(step)):
            yield found
