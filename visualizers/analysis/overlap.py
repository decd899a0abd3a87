"""Schedules: how long the forwards of a lane took, how far they overlapped, and how they would run on two
devices.

Times are measured, except those of `devices` and `in_turn`, which are derived: each forward takes the median
of this run so far.
"""

from dataclasses import dataclass, field, replace
from statistics import median

PAYS = 0.95  # overlapping pays if its rounds take at most this share of those in turn


@dataclass
class Bar:
    """One forward: seconds on the lane's clock, and the drafted nodes that it produced with their states."""

    key: str
    row: str  # "draft" or "target"
    start: float
    seconds: float
    tokens: int
    kind: str
    shared: bool = False  # all that it read was cached from another lane
    others: int = 0  # lanes whose rows ran in it too
    nodes: dict[int, str] = field(default_factory=dict)

    @property
    def end(self) -> float:
        """When it ended."""
        return self.start + self.seconds


class Schedule:
    """Folds rounds; `read` returns the bars of a round as two devices would run them."""

    def __init__(self) -> None:
        self.tokens, self.wall = 0, 0.0
        self.busy = {"draft": 0.0, "target": 0.0}
        self.both = 0.0  # seconds in which both models ran
        self.costs: dict[str, list[float]] = {"draft": [], "target": []}  # of forwards that ran alone
        self.overlapped: dict[str, list[float]] = {"draft": [], "target": []}  # of rounds that overlapped
        self.rounds: dict[bool, list[float]] = {False: [], True: []}  # overlapped? -> seconds of each round
        self.met: set[str] = set()  # rows whose model has read the prompt
        self.devices = self.in_turn = 0.0

    def read(self, bars: list[Bar], seconds: float, committed: int) -> list[Bar]:
        """Takes in a round that ended at `seconds`; the bars of two devices, which begin at 0."""
        rows = {row: [b for b in bars if b.row == row] for row in self.busy}
        shared = sum(overlap(d, t) for d in rows["draft"] for t in rows["target"])
        begin = {row: row not in self.met for row in rows}  # its first forward reads the prompt too
        for bar in bars:
            self.busy[bar.row] += bar.seconds
            if bar.row in self.met:
                (self.overlapped if shared else self.costs)[bar.row].append(bar.seconds)
            self.met.add(bar.row)
        if bars and not any(begin.values()):
            self.rounds[shared > 0].append(seconds - self.wall)
        self.tokens, self.wall, self.both = self.tokens + committed, seconds, self.both + shared
        derived, ends = [], dict.fromkeys(rows, 0.0)
        for bar in bars:
            takes = bar.seconds if begin[bar.row] else self.cost(bar.row)
            begin[bar.row] = False
            derived.append(replace(bar, start=ends[bar.row], seconds=takes))
            ends[bar.row] += takes
            self.in_turn += takes
        self.devices += max(ends.values())
        return derived

    def cost(self, row: str) -> float:
        """The median seconds of a forward so far: of those that ran alone, or of all, whichever is less
        (overlapping makes no forward faster, but a few that ran alone may have been slow by chance).
        """
        alone, all_of_them = self.costs[row], [*self.costs[row], *self.overlapped[row]]
        return min((median(known) for known in (alone, all_of_them) if known), default=0.0)

    # ---- words ---------------------------------------------------------------------------------------------

    def measured(self) -> str:
        """What was measured, in a sentence."""
        draft, target = (milliseconds(self.busy[row]) for row in ("draft", "target"))
        both = f", both at once {milliseconds(self.both)}" if self.both else ""
        took = f"{counted(self.tokens)} in {milliseconds(self.wall)}"
        return f": {took}; draft {draft}, target {target}{both}."

    def brief(self) -> str:
        """The same for a narrow picture."""
        return f": {milliseconds(self.wall)}"

    @property
    def pays(self) -> bool | None:
        """Whether overlapped rounds took less than those in turn, both measured; None if not known."""
        if not all(self.rounds.values()):
            return None
        return median(self.rounds[True]) <= PAYS * median(self.rounds[False])

    def verdict(self) -> str:
        """Whether overlapping paid here, in a sentence."""
        if not self.rounds[True]:
            return " So far, one after the other."
        if self.pays is None:
            return ""
        claim = "pays here" if self.pays else "does not pay on this machine"
        at_once, in_turn = (milliseconds(median(self.rounds[which])) for which in (True, False))
        return f" Overlapping {claim}: a round takes {at_once}, in turn {in_turn}."

    def verdict_brief(self) -> str:
        """The same for a narrow picture."""
        return {None: "", True: ", overlap pays", False: ", overlap costs"}[self.pays]

    def derived(self) -> str:
        """What two devices would do, in a sentence."""
        draft, target = self.cost("draft"), self.cost("target")
        if not draft or not target:
            return "Derived, not measured: what one device per model would do, once the costs are known."
        costs = f"draft {milliseconds(draft)}, target {milliseconds(target)}"
        return (
            f"Derived, not measured: forwards at this run's median costs ({costs}) take "
            f"{milliseconds(self.devices)} with one device per model, "
            f"{milliseconds(self.in_turn)} in turn."
        )

    def derived_brief(self) -> str:
        """The same for a narrow picture."""
        return f"≈ derived: {milliseconds(self.devices)}, two devices"


def counted(tokens: int) -> str:
    """1 token, 2 tokens."""
    return f"{tokens:,} token{'s' if tokens != 1 else ''}"


def overlap(one: Bar, other: Bar) -> float:
    """Seconds in which both ran."""
    return max(0.0, min(one.end, other.end) - max(one.start, other.start))


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with three digits: 1.23 ms, 12.3 ms, 1,234 ms."""
    value = seconds * 1e3
    return f"{value:,.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} ms"
