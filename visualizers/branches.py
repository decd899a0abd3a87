"""Branches: what was seen ahead of each candidate where a method stopped to look, and which one it took.

A fold over Propose (source "lookahead"), Score and Commit: a table for each step that looked ahead, a row for
each ranked candidate. Knows no strategy.
"""

import math

from visualizers.scene import Header, Nodes, Op, scroll_row, view

HEADING, GAP, CELL = 0.8, 0.3, 0.9  # heights in rows
TOKEN, SEEN, MEAN = (0.5, 4), (4.5, 10), (14.5, 3)  # columns of a table: where one begins, how many it takes


@view("branches", "Branches")
class Branches:
    """x: candidate, what follows it, its value; y: pauses, and in each its candidates."""

    def __init__(self, header: Header):
        self.nodes = Nodes(header)
        self.y = 0.0
        self.tokens = self.pauses = self.rescued = 0

    def head(self) -> dict:
        """Title, question, layout and legend."""
        return {
            "title": self.title,
            "question": "Where did it stop to look ahead, what did it see, and what did it take?",
            "first": 1, "row": 26, "column": 20, "column_narrow": 18, "wide": 26, "columns": 17, "clip": True,
            "left": 8, "right": 8, "axis": None, "overview": "piled",
            "ops": [
                {"id": "said", "panel": "said", "kind": "panel", "y0": 0, "y1": 1, "px": 20, "px_narrow": 36,
                 "lead": "No pause", "heading": " so far.", "short": " so far."},
                {"id": "tables", "kind": "panel", "y0": -0.1, "y1": 8, "share": 1, "grow": True},
            ],
            "legend": [
                ["cell:chosen", "■", "chosen", "taken"],
                ["cell:pruned", "▢", "pruned", "not taken, or only looked at"],
                ["cell:amount", "▪", "soft", "e to the mean log p of the token and what follows"],
            ],
        }  # fmt: skip

    def feed(self, step) -> list[Op]:
        """One table, if this step looked ahead."""
        born, _, commits = self.nodes.read(step)
        self.tokens += len(commits)
        ahead: dict[int, tuple[int, str]] = {}  # node -> (candidate, the words seen ahead of it so far)
        for event in born:
            if event.source == "lookahead":
                home, words = ahead.get(event.parent, (event.parent, ""))
                ahead[event.node] = (home, words + self.nodes.text(event.node))
        scores = {e.node: e for e in step.events if type(e).__name__ == "Score" and e.rank is not None}
        candidates = [event.node for event in born if event.node in scores]
        if not ahead or not candidates:
            return []
        self.pauses += 1
        self.rescued += candidates[0] not in commits
        words = dict(ahead.values())  # candidate -> the longest, which comes last
        top = self.y + HEADING
        ops = self._heading(candidates[0], top)
        for row, node in enumerate(candidates):
            ops += self._row(scores[node], words.get(node, ""), node in commits, row, top + row + 0.5)
        self.y = top + len(candidates) + GAP
        lead, rest = f"{self.pauses} of {self.tokens} tokens", "not the likeliest token was taken"
        times = f"{self.rescued} time" + ("" if self.rescued == 1 else "s")
        said = {
            "lead": lead,
            "heading": f" after a look ahead; {times} {rest}.",
            "short": f" after a look; {times} not the likeliest.",
        }
        return [
            *ops,
            {"id": "said", "set": said},
            {"front": [1, self.y]},
            {"say": f"{lead}{said['heading']}"},
        ]

    def _heading(self, first: int, top: float) -> list[Op]:
        """The names of the columns, and where a window that scrolls may begin."""
        ops: list[Op] = [scroll_row(self.pauses, "tables", self.y, top)]
        names = (f"token {self.nodes.column[first]}", TOKEN), ("seen ahead", SEEN), ("mean", MEAN)
        for text, (x, wide) in names:
            place = {"x": x + 0.08, "y": round(self.y + HEADING / 2, 3), "align": "left", "w": wide}
            look = {"text": text, "role": "ink" if x == TOKEN[0] else "soft", "priority": 0}
            ops.append({"id": f"h{self.pauses}.{x}", "kind": "label", "panel": "tables", **place, **look})
        return ops

    def _row(self, score, seen: str, taken: bool, row: int, y: float) -> list[Op]:
        """A candidate: the token, what follows it, and its value."""
        node, said = score.node, self.nodes.text(score.node)
        value = math.exp(min(0.0, score.total))
        numbers = f"mean log p {score.total:.2f}, rank {score.rank}".replace("-", "−")
        hover = [f"{said}: {numbers}" + (", the likeliest" if row == 0 else ""), seen or "nothing ahead"]
        look = {"state": "chosen" if taken else "pruned", "fill": "filled" if taken else "tint"}
        return [
            self._cell(f"n{node}", TOKEN, y, said, hover) | look | {"node": node},
            self._cell(f"a{node}", SEEN, y, seen or "(ends here)", hover)
            | {"state": "pruned", "fill": "tint"},
            self._cell(f"m{node}", MEAN, y, f"{value:.2f}".removeprefix("0"), hover)
            | {"state": "prompt", "fill": "amount", "weight": round(value / 2, 4)},  # words stay readable
        ]

    def _cell(self, name: str, place: tuple[float, int], y: float, text: str, hover: list[str]) -> Op:
        x, wide = place
        where = {"panel": "tables", "x": x + wide / 2, "y": round(y, 3), "w": wide - 0.08, "h": CELL}
        return {"id": name, "kind": "cell", **where, "text": text, "hover": hover}
