"""Stable rows: every branch of a growing tree gets one of a fixed number of rows at birth and keeps it.

The best child of a branch stays in its parent's row, every other takes the free row nearest to its parent
(the upper one on a tie), and rows of dead branches are free at once. Never looks ahead and moves nothing;
O(branches squared) per step. Groups of branches divide the rows among them, with half a row between two
groups.
"""

GAP = 0.5  # rows between two groups


class Slots:
    """`row[node]` for every placed node; the root stands in the upper middle."""

    apart = 1.0  # between two neighbours

    def __init__(self, rows: int, root: int, groups: int = 1):
        share = max(1, rows // groups)
        self.groups = [[g * (share + GAP) + i for i in range(share)] for g in range(groups)]
        # the rows of branches; finished texts stand between them
        self.own = {y for group in self.groups for y in group}
        self.height = max(self.own) + 1
        every = sorted(self.own)
        self.row: dict[int, float] = {root: every[(len(every) - 1) // 2]}

    def place(self, children: list[tuple[int, int]], taken: set[float], group: int = 0) -> dict[int, float]:
        """Rows for `children` of one group, [(node, parent)] best first.

        `taken`: rows of branches that stay live without a child.
        """
        allowed = self.groups[min(group, len(self.groups) - 1)]
        slots: dict[int, float] = {}
        used = taken & self.own
        used -= {self.row.get(parent) for _, parent in children}
        heirs: set[int] = set()
        for node, parent in children:
            home = self.row.get(parent, 0)
            if parent not in heirs and home not in used and home in allowed:
                heirs.add(parent)
                slots[node] = home
                used.add(home)
        below = self.height
        for node, parent in children:
            if node not in slots:
                slots[node] = self._nearest(self.row.get(parent, 0), used, allowed, below)
                below = max(below, slots[node])  # whole rows from here on are looked at once
                used.add(slots[node])
        return slots

    def _nearest(self, home: float, used: set[float], allowed: list[float], below: float) -> float:
        """The free row nearest to `home`; else the first free one from `below` on."""
        free = [y for y in allowed if y not in used]
        if free:
            return min(free, key=lambda y: (abs(y - home), y))
        while below in used:  # more branches than rows: the picture grows rather than hide one
            below += 1
        self.own.add(below)
        return below
