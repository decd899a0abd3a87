"""The token tree of one lane: tokens, parents, depths.

Further texts that a lane decodes in the same forwards are separate trees beside the prompt.
"""

from decoders.refusal import Refusal


class Tree:
    """The prompt is the trunk (nodes 0..T-1), and all other nodes are below it. Parents have smaller ids."""

    def __init__(self, prompt: list[int]):
        if not prompt:
            raise Refusal("The prompt has no tokens; type at least one character.")
        self.tokens = list(prompt)
        self.parents = list(range(-1, len(prompt) - 1))
        self.depths = list(range(len(prompt)))
        self.trunk = len(prompt)

    def add(self, parent: int, token: int) -> int:
        """Adds `token` as a child of node `parent` and returns the new node's id; parent -1 starts a text."""
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1 if parent >= 0 else 0)
        return len(self.tokens) - 1

    def path(self, node: int, above: int = -1) -> list[int]:
        """The nodes from just below `above` (default: from the root) down to `node`."""
        nodes = []
        while node != above:
            nodes.append(node)
            node = self.parents[node]
        return nodes[::-1]

    def text(self, node: int) -> list[int]:
        """The token ids from the root to `node`, both included."""
        return [self.tokens[n] for n in self.path(node)]
