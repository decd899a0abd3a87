"""Three ways to rank a list of items after a history: a beam over the tokens of their names, the exact
probabilities of the names, and a head with a row per item (Lite-LLM4Rec, Wang et al. 2024).
"""

from dataclasses import dataclass

import torch
from torch import nn

from decoders.constraints.trie import TrieNode
from decoders.engine.engine import Engine
from decoders.engine.tree import Tree
from explorer.experiments.models.small_llama import small_llama


@dataclass(frozen=True)
class Ranking:
    """Items, best first, and the cost: forwards, and tokens (or items) that the model has read."""

    items: list[int]
    forwards: int
    read: int


def by_beam(engine: Engine, history: list[int], names: TrieNode, width: int) -> Ranking:
    """The `width` most probable prefixes of names are kept at each token; one forward per token. No name may
    be the prefix of another.
    """
    tree = Tree(history)
    scorer, forwards, read = engine.attach(tree), 0, 0
    live, done = [(0.0, tree.trunk - 1, names)], []
    while live:
        logprobs = scorer.score([node for _, node, _ in live]).log_softmax(-1).tolist()
        forwards, read = forwards + 1, read + scorer.work.tokens
        grown = list(done)
        for (total, node, state), row in zip(live, logprobs, strict=True):
            grown += [(total + row[token], node, token, below) for token, below in state.children.items()]
        best = sorted(grown, key=lambda entry: -entry[0])[:width]
        done = [entry for entry in best if entry[3].ends]
        live = [(total, tree.add(node, token), below) for total, node, token, below in best if not below.ends]
    scorer.close()
    return Ranking([below.ends[0] for _, _, _, below in done], forwards, read)


def by_names(engine: Engine, history: list[int], names: TrieNode) -> Ranking:
    """All names by their log-probability, in one forward over the tree of all of them."""
    tree = Tree(history)
    states = {tree.trunk - 1: names}
    for node, state in walk(tree, tree.trunk - 1, names):
        states[node] = state
    scorer = engine.attach(tree)
    logprobs = scorer.score(list(states)).log_softmax(-1).tolist()
    read = scorer.work.tokens
    scorer.close()
    totals, ended = {tree.trunk - 1: 0.0}, []
    rows = dict(zip(states, logprobs, strict=True))
    for node, state in states.items():
        if node >= tree.trunk:
            totals[node] = totals[tree.parents[node]] + rows[tree.parents[node]][tree.tokens[node]]
        for token, below in state.children.items():
            ended += [(totals[node] + rows[node][token], item) for item in below.ends]
    ended.sort(key=lambda pair: -pair[0])
    return Ranking([item for _, item in ended], 1, read)


def walk(tree: Tree, node: int, state: TrieNode) -> list[tuple[int, TrieNode]]:
    """Adds all prefixes below a state to a tree: (node, state), parents first."""
    nodes = []
    for token, below in state.children.items():
        if not below.ends:
            child = tree.add(node, token)
            nodes += [(child, below), *walk(tree, child, below)]
    return nodes


class ItemHead(nn.Module):
    """Reads a history as one vector per item, and scores every item of the list in one forward."""

    def __init__(self, vectors: torch.Tensor, width: int, layers: int, heads: int, seed: int = 0):
        super().__init__()
        self.inner = small_llama(1, width, layers, heads, seed).model
        self.register_buffer("vectors", (vectors - vectors.mean(0)) / vectors.std(0).clamp_min(1e-6))
        self.reads = nn.Linear(vectors.shape[1], width)
        self.scores = nn.Linear(width, len(vectors))

    def forward(self, items: torch.Tensor) -> torch.Tensor:
        """items [B, N] -> scores [B, N, I] of the next item after each."""
        states = self.inner(inputs_embeds=self.reads(self.vectors[items])).last_hidden_state
        return self.scores(states)

    @torch.no_grad()
    def rank(self, history: list[int]) -> Ranking:
        """All items after a history."""
        scores = self(torch.tensor([history]))[0, -1]
        return Ranking(scores.argsort(descending=True, stable=True).tolist(), 1, len(history))
