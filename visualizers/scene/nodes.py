"""The trace's nodes as a view knows them."""

from decoders.explain.verdicts import reason_of
from decoders.trace.events import Commit, Propose, Step, Verdict
from decoders.trace.node_index import NodeIndex
from decoders.trace.token_text import visible
from visualizers.scene.view import Header


class Nodes(NodeIndex):
    """The trace's nodes as a view knows them: step by step, with their log-probabilities and their texts."""

    def __init__(self, header: Header):
        super().__init__(header.prompt)
        self.header = header
        # sum of log-probabilities from the prompt, where all are known
        self.total: dict[int, float] = {self.root: 0.0}

    def read(self, step: Step) -> tuple[list[Propose], dict[int, Verdict], list[int]]:
        """Adds a step's nodes; returns (its Propose events, node -> its last Verdict, committed nodes)."""
        born: list[Propose] = []
        verdicts: dict[int, Verdict] = {}
        commits: list[int] = []
        for event in step.events:
            match event:
                case Propose():
                    self.add(event)
                    born.append(event)
                case Verdict():
                    verdicts[event.node] = event
                case Commit():
                    commits += event.nodes
        return born, verdicts, commits

    def add(self, propose: Propose) -> None:
        """Adds the node of a Propose event."""
        super().add(propose)
        node, parent = propose.node, propose.parent
        if propose.logprob is not None and parent in self.total:
            self.total[node] = self.total[parent] + propose.logprob
        elif propose.given:  # sums begin where the lane's own work begins
            self.total[node] = 0.0

    def reason(self, verdict: Verdict | None) -> str | None:
        """Why a verdict is what it is, as a sentence; None if nothing says so."""
        return reason_of(verdict, self.header.vocabulary) if verdict else None

    def text(self, node: int) -> str:
        """The node's token as text."""
        token = self.token.get(node)
        return self.word(token) if token is not None else "?"

    def word(self, token: int) -> str:
        """A token as text."""
        return visible(self.header.vocabulary.get(token, b"?"))
