"""Visit tree: how often each prefix was tried, the best result that was seen after it, and the best texts.

A fold over Propose, Rank ("visits": how many results came back through a node, with the best of them or their
mean and its prior; "text_value": what a finished text is worth), Verdict and Commit. Drawn like the search
graph, with other words.
"""

from dataclasses import replace

from decoders.trace.number_format import many
from decoders.trace.scores import Rank, ScoreName
from visualizers import scene
from visualizers.scene.layout import Layout
from visualizers.scene.marks import Op
from visualizers.scene.view import Header, has, view
from visualizers.scene.words import probability
from visualizers.views.search.search_graph import LISTED, ROWS, SearchGraph


@view("visit_tree", "Visit tree", reads=has(Rank, name=ScoreName.VISITS))
class VisitTree(SearchGraph):
    """x counts generated tokens from 1 (0: the end of the prompt), y is one of a few rows."""

    def __init__(self, header: Header):
        super().__init__(header)
        # node -> number of results, their best or mean, prior
        self.visits: dict[int, tuple[int, float, float]] = {}
        self.word = "the best"  # "the best" of the results, or their mean
        self.value: dict[int, float] = {}  # newest node of a finished text -> its value, earliest first
        self.rollout: dict[int, int] = {}  # newest node of a finished text -> the rollout that completed it
        self.newest: int | None = None  # the text of this step

    def head(self) -> Layout:
        """As the search graph's, with a question and a legend of its own."""
        return replace(
            super().head(),
            column=92,
            wide=128,
            clip=True,
            question="Which prefixes were tried, how often, and with what result?",
            legend=[
                ["node:chosen", "●", "chosen", "path to the best text"],
                ["node:prompt", "●", "prompt", "tried (×n: how often, then the best or mean result)"],
                ["node:live", "○", "live", "never tried, or part of a completion"],
                ["node:finished", "■", "finished", "finished text, with its value"],
                ["node:forced", "⚑", "forced", "inserted by hand"],
            ],
        )

    def feed(self, step) -> list[Op]:
        """Reads visits and values, then draws as the search graph does; the front is where the planned text
        is, not the completions.
        """
        for event in step.events:
            if not isinstance(event, Rank):
                continue
            if event.name == ScoreName.VISITS:
                if "mean" in event.parts:
                    self.word = "their mean"
                value = event.parts.get("mean", event.parts.get("value", 0.0))
                self.visits[event.node] = (round(event.total), value, event.parts.get("prior", 0.0))
            if event.name == ScoreName.TEXT_VALUE:
                self.newest = event.node
                self.value.setdefault(event.node, event.total)
                self.rollout.setdefault(event.node, step.index + 1)
        ops = super().feed(step)
        tried = [self.nodes.position[n] for n, (count, _, _) in self.visits.items() if count]
        front = scene.Front(max(tried, default=0) + 1, ROWS - 1)
        return [front if isinstance(op, scene.Front) else op for op in ops]

    def _leader(self) -> int | None:
        """The newest output, else the best text so far."""
        if self.committed:
            return self.committed[-1]
        return max(self.value, key=self.value.__getitem__, default=None)

    def _first(self, count: int) -> list[int]:
        """What is drawn if there is room: the newest text, then the most visited nodes."""
        tried = sorted((n for n in self.visits if self.visits[n][0]), key=lambda n: (-self.visits[n][0], n))
        newest = [self.newest] if self.newest is not None else []
        return [*newest, *tried][:count]

    def _draw(self, node: int) -> list[Op]:
        """A node and its edge; its numbers are the point of this view, so they are dropped last."""
        edge, mark = super()._draw(node)
        return [edge, replace(mark, note_priority=1)]

    def _state(self, node: int) -> str:
        if node in self.spine or node == self.nodes.root or self.status.get(node) == "forced":
            return super()._state(node)
        if node in self.value:
            return "finished"
        return "prompt" if self.visits.get(node, (0,))[0] else "live"

    def _note(self, node: int) -> str | None:
        count, value, _ = self.visits.get(node, (0, 0.0, 0.0))
        words = [f"×{count} {value:.2f}"] if count else []
        words += [f"{self.value[node]:.2f}"] if node in self.value and not count else []
        return " ".join(words) or self._left(node)

    def _queue(self) -> list[Op]:
        """The lines at the right: the best texts so far; the earliest first on ties."""
        best = sorted(self.value, key=lambda n: -self.value[n])
        lines = ["best texts so far" if best else ""]
        lines += [f"{self.value[n]:.2f} rollout {self.rollout[n]}" for n in best[:LISTED]]
        lines += [""] * (LISTED + 1 - len(lines))
        more = len(best) - LISTED
        lines.append(f"and {more:,} more" if more > 0 else "")
        before, self.listed = self.listed, lines
        return [scene.Change(f"q{i}", text=line) for i, line in enumerate(lines) if line != before[i]]

    def _hover(self, node: int) -> list[str]:
        if node == self.nodes.root:
            return ["end of the prompt"]
        lines = [f"{self.nodes.text(node)}  p {probability(self._p(node))}"]
        if node in self.visits:
            count, value, prior = self.visits[node]
            lines.append(f"prior {probability(prior)}, {many(count, 'result')}, {self.word} {value:.2f}")
        if node in self.value:
            lines.append(f"the text has {self.value[node]:.2f}")
        return [lines[0], *([", ".join(lines[1:])] if lines[1:] else [])]

    def _caption(self, step, leader: int | None) -> str:
        if not self.value:
            tried = sum(1 for count, _, _ in self.visits.values() if count)
            return f"Step {step.index + 1}: {many(tried, 'prefix', 'prefixes')} tried."
        caption = f"Step {step.index + 1}: {many(len(self.value), 'text')} completed"
        return caption + (f", the best has {self.value[leader]:.2f}." if leader in self.value else ".")
