"""The notes of parallel streams: which stream wrote which note, and with what weight later blocks read it."""

from dataclasses import dataclass, field

import networkx as nx

from decoders.trace.events import Cell, Depend, Step
from decoders.trace.scores import Measure, ScoreName
from decoders.trace.trace import Trace
from visualizers.scene.view import Header

KIND = "note"  # of the links that are read
PLANNER, UNNAMED = "planner", "stream ?"


@dataclass(frozen=True)
class Sent:
    """A note on the bus. `node`: the end of what its writer had written, or the prompt's."""

    stream: str
    round: int
    node: int


@dataclass(frozen=True)
class Block:
    """What a stream wrote in a round. `sent`: the number of its note on the bus, None if it was taken back;
    `read`: note -> how strongly its last token read it; `visible`: notes that it could read.
    """

    stream: str
    round: int
    node: int
    tokens: tuple[int, ...]
    readiness: float
    visible: int
    sent: int | None = None
    read: dict[int, float] = field(default_factory=dict)


class Bus:
    """All notes since the newest plan, step by step; note 0 is the planner's."""

    def __init__(self) -> None:
        self.notes: list[Sent] = []

    def take(self, step: Step) -> list[Block]:
        """Reads the events of one step; returns the blocks that were written in it, in the streams' order."""
        planned = [score for score in step.of(Measure) if score.name == ScoreName.PLAN_ITEM]
        if planned:
            self.notes = [Sent(PLANNER, 0, planned[0].node)]
        written: dict[str, list[int]] = {}
        for cell in step.of(Cell):
            written.setdefault(cell.level, []).append(cell.token)
        at = {note.node: number for number, note in enumerate(self.notes)}
        links = [link for link in step.of(Depend) if link.kind == KIND]
        blocks = []
        for score in (score for score in step.of(Measure) if score.name == ScoreName.READINESS):
            read = {at[link.source]: link.weight for link in links if link.target == score.node}
            sent, stream = score.parts.get("note"), score.level or UNNAMED
            block = Block(
                stream,
                int(score.parts["round"]),
                score.node,
                tuple(written.get(stream, ())),
                score.total,
                int(score.parts["notes"]),
                None if sent is None else int(sent),
                read,
            )
            blocks.append(block)
        self.notes += [Sent(b.stream, b.round, b.node) for b in blocks if b.sent is not None]
        return blocks


def notes(trace: Trace, steps: int | None = None) -> nx.DiGraph:
    """Blocks of parallel streams, named by the node of their last token, and the planner, named by the
    prompt's; an edge from each to every block that read its note, with `weight` (how strongly) and `delay`
    (rounds in between). Nodes have `stream`, `round`, `text`, and where a stream wrote them `readiness`, and
    `note`: the number of the note that it sent, none if the block was taken back.
    """
    graph, bus = nx.DiGraph(kind="notes"), Bus()
    for step in trace.steps[:steps]:
        blocks = bus.take(step)
        if bus.notes and bus.notes[0].node not in graph:
            first = bus.notes[0]
            graph.add_node(first.node, stream=first.stream, round=first.round, text="", note=0)
        for block in blocks:
            sent = {} if block.sent is None else {"note": block.sent}
            known = {"text": text_of(trace, block.tokens), "readiness": block.readiness, **sent}
            graph.add_node(block.node, stream=block.stream, round=block.round, **known)
            for number, weight in block.read.items():
                note = bus.notes[number]
                graph.add_edge(note.node, block.node, weight=weight, delay=block.round - note.round)
    if graph:
        graph.graph.update(strategy=trace.strategy, title=trace.title, seed=trace.seed)
    return graph


def text_of(trace: Trace | Header, tokens: tuple[int, ...]) -> str:
    """The text of tokens."""
    return b"".join(trace.vocabulary.get(token, b"?") for token in tokens).decode("utf-8", "replace")
