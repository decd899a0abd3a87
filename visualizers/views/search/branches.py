"""Branches: the look-ahead from each candidate where a method looked ahead, and which one it took.

A fold over Propose (source "lookahead"), Rank and Commit: one table per step that looked ahead, one row per
ranked candidate. If a score has the parts `logprob` and `value`, both stand before their total; otherwise the
mean of the log-probabilities does.
"""

import math

from decoders.trace.events import Propose, Step
from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers.scene import sizes
from visualizers.scene.layout import Table, heading
from visualizers.scene.step_table import Column, Contents, Entry, StepTable
from visualizers.scene.view import Header, has, view

SEEN = 6  # rows of a long table that are visible at once in a low lane
TOKEN = Column(0.5, 4, strong=True)
MEANS = [Column(4.5, 10, "seen ahead"), Column(14.5, 3, "mean")]
VALUES = [
    Column(4.5, 5.2, "seen ahead"),
    Column(9.7, 2.6, "log p"),
    Column(12.3, 2.6, "value"),
    Column(14.9, 2.6, "total"),
]


@view("branches", "Branches", reads=has(Rank, name={ScoreName.LOOKAHEAD, ScoreName.TOTAL}))
class Branches(StepTable):
    """Columns: candidate, what follows it, its value; tables: pauses, and in each its candidates."""

    layout = Table(
        question="Where did the method look ahead? What did it see? What did it choose?",
        widest=90,
        column=sizes.LETTER,
        column_narrow=18,
        wide=26,
        columns=17,
        ops=[heading(lead="No pause", heading=" so far.", short=" so far.")],
        legend=[
            ["cell:chosen", "■", "chosen", "taken"],
            ["cell:pruned", "▢", "pruned", "not chosen, or only explored"],
            ["cell:amount", "▪", "soft", "stronger grey: more likely or better"],
        ],
    )

    def __init__(self, header: Header):
        super().__init__(header)
        self.tokens = self.rescued = 0
        self.looked = False  # whether anything was looked ahead so far

    def table(self, step: Step) -> Contents | None:
        """The candidates, if this step looked ahead."""
        born, _, commits = self.nodes.read(step)
        self.tokens += len(commits)
        ahead = self._ahead(born)
        scores = {e.node: e for e in step.of(Rank) if e.rank is not None}
        candidates = [event.node for event in born if event.node in scores]
        valued = any("value" in scores[node].parts for node in candidates)
        if not candidates or not (ahead or valued):
            return None
        self.rescued += candidates[0] not in commits
        self.looked |= bool(ahead)
        nothing = "(ends here)" if ahead else "(not continued)"
        columns, best = VALUES if valued else MEANS, max(scores[node].total for node in candidates)
        rows = []
        for at, node in enumerate(candidates):
            seen, taken, word = ahead.get(node, nothing), node in commits, self.nodes.text(node)
            hover = [f"{word}: {hovered(scores[node])}" + ("" if at else ", the most likely"), seen]
            look = {"state": "chosen" if taken else "pruned", "fill": "filled" if taken else "tint"}
            cells = numbers(scores[node], best) if valued else mean_of(scores[node])
            rows.append(
                [
                    Entry(f"n{node}", TOKEN, word, hover, **look, node=node),
                    Entry(f"a{node}", columns[0], seen, hover, state="pruned", fill="tint"),
                    *(
                        Entry(f"{column.name[0]}{node}", column, text, hover, amount)
                        for column, (text, amount) in zip(columns[1:], cells, strict=True)
                    ),
                ]
            )
        first = Column(TOKEN.x, TOKEN.w, f"token {self.nodes.position[candidates[0]]}", strong=True)
        taken = next((row + 1 for row, node in enumerate(candidates) if node in commits), 0)
        words = self._words()
        return Contents([first, *columns], rows, words[0] + words[1], words, front=max(SEEN, taken))

    def _ahead(self, born: list[Propose]) -> dict[int, str]:
        """Candidate -> the longest words that were seen ahead of it, which come last."""
        seen: dict[int, tuple[int, str]] = {}  # node -> (candidate, the words up to it)
        for event in born:
            if event.source == "lookahead":
                home, words = seen.get(event.parent, (event.parent, ""))
                seen[event.node] = (home, words + self.nodes.text(event.node))
        return dict(seen.values())

    def _words(self) -> tuple[str, str, str]:
        """How often the method looked, and how often that changed its choice."""
        times = many(self.rescued, "time")
        how, brief = (
            ("after looking ahead", "after looking") if self.looked else ("by their values", "by value")
        )
        return (
            f"{self.tables + 1} of {many(self.tokens, 'token')}",
            f" {how}; {times} a token other than the most likely was chosen.",
            f" {brief}; {times} not the most likely.",
        )


def hovered(score: Rank) -> str:
    """The numbers of a candidate in words."""
    if "value" not in score.parts:
        return f"mean log p {score.total:.2f}, rank {score.rank}".replace("-", "−")
    parts = f"log p {score.parts['logprob']:.2f}, value {score.parts['value']:.3f}"
    return f"{parts}, total {score.total:.2f}, rank {score.rank}".replace("-", "−")


def mean_of(score: Rank) -> list[tuple[str, float]]:
    """The mean log-probability of a candidate and what follows it, as a probability."""
    value = math.exp(min(0.0, score.total))
    return [(f"{value:.2f}".removeprefix("0"), value)]


def numbers(score: Rank, best: float) -> list[tuple[str, float]]:
    """log p, value and total of a candidate with their greys; `best`: the largest total of all."""
    logprob, value = score.parts["logprob"], score.parts["value"]
    return [
        (f"{logprob:.2f}".replace("-", "−"), math.exp(min(0.0, logprob))),
        (f"{value:.2f}", min(1.0, max(0.0, value))),
        (f"{score.total:.2f}".replace("-", "−"), math.exp(score.total - best)),
    ]
