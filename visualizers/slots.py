"""Stable slots: every limb of a growing tree gets one of a fixed number of rows at birth and keeps it.

The best child of a limb stays in its parent's row, every other takes the free row nearest to its parent (the
upper one on a tie), and rows of dead limbs are free at once. Needs no future and moves nothing; O(limbs
squared) a step.
"""


class Slots:
    """`row[node]` for every placed node; the root stands in the upper middle."""

    def __init__(self, rows: int, root: int):
        self.rows = rows
        self.row: dict[int, float] = {root: (rows - 1) // 2}

    def place(self, children: list[tuple[int, int]], taken: set[float]) -> dict[int, float]:
        """Rows for `children`, [(node, parent)] best first; `taken`: rows of limbs that live on without a
        child.
        """
        found: dict[int, float] = {}
        used = {y for y in taken if y == int(y)}
        used -= {self.row.get(parent) for _, parent in children}
        heirs: set[int] = set()
        for node, parent in children:
            home = self.row.get(parent, 0)
            if parent not in heirs and home not in used and home == int(home):
                heirs.add(parent)
                found[node] = home
                used.add(home)
        for node, parent in children:
            if node not in found:
                found[node] = self._nearest(self.row.get(parent, 0), used)
                used.add(found[node])
        return found

    def _nearest(self, home: float, used: set[float]) -> int:
        free = [y for y in range(self.rows) if y not in used]
        if free:
            return min(free, key=lambda y: (abs(y - home), y))
        below = (
            self.rows
        )  # more limbs than rows were promised: the picture grows downwards rather than hide one
        while below in used:
            below += 1
        return below
