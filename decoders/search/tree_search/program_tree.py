"""The tree of partial programs that several decoders share: rows, nodes, finished texts, and how it ends."""

from collections.abc import Iterator

import torch

from decoders.chooser import Tag
from decoders.lane import Lane
from decoders.sampling.greedy import greedy
from decoders.sampling.next_token import pick
from decoders.search.tree_search.constraints import Gate
from decoders.trace.scores import ScoreName

TRIES = 16  # tokens tried after a prefix before it counts as a dead end


class Programs:
    """All texts of a lane. `finished`: last node of each complete text that no constraint rejected -> Phi, in
    the order in which they ended.
    """

    def __init__(self, lane: Lane, gate: Gate):
        self.lane, self.gate, self.root = lane, gate, lane.tip
        self.logprob: dict[int, float] = {}
        self.unjudged: set[int] = set()  # proposed nodes without a verdict from a decoder
        self.finished: dict[int, float] = {}

    def rows(self, nodes: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(log-probabilities [V], processed scores [V]) after each node, in one forward."""
        unique = list(dict.fromkeys(nodes))
        logits = self.lane.score(unique)
        offers = self.lane.distribution(unique, logits), self.lane.process(logits, unique)
        by_node = dict(zip(unique, zip(*offers, strict=True), strict=True))
        return [by_node[node] for node in nodes]

    def tag(self, node: int, number: int = 0, tried: int = 0) -> Tag:
        """The stream of a draw after a node: for the first text and its first try, that of plain sampling."""
        more = (number, tried) if tried else (number,) if number else ()
        return ("sample", self.lane.tree.depths[node] + 1, *more)

    def draw(
        self, node: int, row: tuple[torch.Tensor, torch.Tensor], number: int = 0, tries: int = TRIES
    ) -> int | None:
        """The node of a token drawn after `node`; a token that a constraint rejects is recorded, and another
        is drawn. None after `tries` failures, or if no token is left.
        """
        logprobs, scores = row
        for tried in range(tries):
            if not scores.isfinite().any():
                break
            token = pick(self.lane, scores, self.tag(node, number, tried))
            if self.gate.phi(node, token) > 0.0:
                return self.add(node, token, float(logprobs[token]), number)
            self.gate.reject(node, token, float(logprobs[token]), number)
            scores = scores.clone()
            scores[token] = -torch.inf
        return None

    def add(self, parent: int, token: int, logprob: float, slot: int = 0) -> int:
        """Proposes a child that no constraint rejects; where the text ends with it, that is recorded."""
        node = self.lane.propose(parent, token, logprob, slot=slot)
        self.logprob[node] = logprob
        self.unjudged.add(node)
        if self.gate.ends(parent, token):
            self.finish(node)
        return node

    def finish(self, node: int) -> None:
        """Records a complete text and its worth."""
        self.finished[node] = phi = self.gate.worth(node)
        self.lane.verdict(node, "finished", reason=f"complete, Phi {phi:.2f}")
        self.lane.record_rank(node, ScoreName.PHI, phi)

    def conclude(self, winner: int | None) -> Iterator[None]:
        """Outputs the winner; if there is none, notes that and greedy decoding writes the text. All other
        leaves get verdicts.
        """
        lane = self.lane
        path = lane.tree.path(winner, above=lane.tip) if winner is not None else []
        open_ends = sorted(self.unjudged | self.finished.keys())
        inner = {lane.tree.parents[node] for node in open_ends}
        for node in open_ends:
            if node not in inner and node not in path:
                why = "another text was taken" if path else "no text could be completed from it"
                lane.verdict(node, "pruned", reason=why)
        if path:
            lane.record_rank(winner, ScoreName.PHI, self.finished[winner], rank=1)
            lane.commit(path, [self.logprob[node] for node in path])
        else:
            lane.note("No complete text passes the constraints: greedy decoding writes one without them.")
            yield from greedy(lane)
