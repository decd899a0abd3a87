"""Candidate matrix: the texts to choose from, their pairwise distances, and the one that is nearest to all.

A fold over Propose, Rank ("word_error_rate", whose parts are the rates against each candidate) and Commit.
"""

from decoders.trace.events import Step
from decoders.trace.scores import Rank, ScoreName
from visualizers.scene import sizes
from visualizers.scene.layout import Table, heading
from visualizers.scene.step_table import Column, Contents, Entry, StepTable, Words
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability

NUMBER, MEAN = Column(0.5, 1.0), Column(1.5, 1.5, "mean")
RATES, RATE = 3.0, 1.3  # where the rates begin, and the width of one
SINGLE = ("One candidate", ": nothing to choose between. Raise num_candidates.", ": raise num_candidates.")


@view("candidate_matrix", "Candidate matrix", reads=has(Rank, name=ScoreName.WORD_ERROR_RATE))
class CandidateMatrix(StepTable):
    """A row per candidate: its mean word error rate, those against each text, and its own text."""

    layout = Table(
        question="How much do the candidates agree? Which one is nearest to all?",
        column=sizes.LETTER,
        column_narrow=16,
        wide=36,
        widest=60,
        columns=28,
        ops=[heading()],
        legend=[
            ["cell:chosen", "■", "chosen", "chosen: the lowest mean"],
            ["cell:amount", "▪", "soft", "word error rate, if the candidate of that column were right"],
        ],
    )

    def __init__(self, header: Header):
        super().__init__(header)
        self.single = header.number("num_candidates", 1) == 1

    def table(self, step: Step) -> Contents | None:
        """All of it, in the step that scores the candidates."""
        _, _, commits = self.nodes.read(step)
        scores = [e for e in step.of(Rank) if e.name == ScoreName.WORD_ERROR_RATE]
        if commits and self.single:
            return Contents([], [], "".join(SINGLE[:2]), SINGLE)
        if not scores:
            return None
        order = sorted(scores, key=lambda event: event.node)  # candidates in the order of their numbers
        chosen = next(at for at, event in enumerate(order) if event.rank == 1)
        against = [Column(RATES + at * RATE, RATE, str(at + 1)) for at in range(len(order))]
        rows = [self._row(at, event, at == chosen, against) for at, event in enumerate(order)]
        rest = f": mean word error rate {probability(order[chosen].total)} against all."
        lead = f"Candidate {chosen + 1} is chosen"
        return Contents([NUMBER, MEAN, *against], rows, lead + rest, (lead, rest, rest), front=0)

    def _row(self, at: int, event: Rank, chosen: bool, against: list[Column]) -> list[Entry | Words]:
        """A candidate: its number, its mean rate, the rates against all, and its text."""
        name = f"candidate {at + 1}"
        text = "".join(map(self.nodes.text, self.nodes.path(event.node))).replace("␣", " ").strip()
        hover = [text, f"{name}: mean word error rate {probability(event.total)}"]
        look = {"state": "chosen", "fill": "filled"} if chosen else {}
        rates = [
            Entry(
                f"w{at}.{other}",
                column,
                short(rate),
                [f"{name} against {other + 1}: word error rate {probability(rate)}"],
                rate,
            )
            for other, (column, rate) in enumerate(zip(against, event.parts.values(), strict=True))
        ]
        return [
            Entry(f"n{at}", NUMBER, str(at + 1), hover, **look, node=event.node),
            Entry(f"a{at}", MEAN, short(event.total), hover, event.total, **look),
            *rates,
            Words(f"t{at}", round(RATES + len(against) * RATE + 0.3, 3), text, chosen, event.node),
        ]


def short(rate: float) -> str:
    """Two places: `.28`, `0`, `1.33`."""
    return "0" if not rate else f"{rate:.2f}".removeprefix("0")
