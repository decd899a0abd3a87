"""Scores tree nodes on a server: one request per call, with one list of token ids per node or per path.

It has the interface of `engine.Engine` and `engine.Scorer`. Keys and values stay on the server; if it caches
prefixes, trees are cheap. If it returns only the most likely tokens, all others get probability 0 here, and
`unseen` holds their total probability.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Protocol

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.pieces import ROWS
from decoders.engine.tree import Tree
from decoders.refusal import Refusal

Row = dict[int, float]  # token -> log-probability
LOGPROBS = 1 << 20  # at most in one answer: 35 MB from vLLM
FOLLOWED = (
    "The server names tokens by their texts. Its log-probabilities may be those before or after its "
    "temperature and truncation, and tokens with the same text cannot be told apart."
)


class ServerProblem(RuntimeError):
    """A server does not answer as it should; the message is what the user reads."""

    status: int | None = None  # HTTP status of a refusal


class Client(Protocol):
    """The connection to a server; see `models.completions_client.CompletionsClient`."""

    vocabulary: int
    top: int | None
    scores: bool  # whether it gives log-probabilities after any text, or only along texts that it writes
    continues: bool  # whether it can continue any text; a chat can only answer a message
    at_once: int  # how many requests may be under way at the same time

    def next_tokens(self, texts: Sequence[list[int]]) -> list[Row]: ...

    def along(self, text: list[int], lengths: Sequence[int]) -> list[Row] | None: ...

    def stream(
        self, text: list[int], max_tokens: int, top: int, settings: Mapping[str, float]
    ) -> Iterator[list[tuple[int, Row]]]: ...


class ServedEngine:
    """A causal LM on a server. `top`: how many tokens an answer names, None if all."""

    remedy = "the same model loaded here"
    device, dtype = torch.device("cpu"), torch.float64

    def __init__(self, client: Client, context: int):
        self.client, self.context = client, context
        self.vocabulary, self.top = client.vocabulary, client.top
        self.streams = hasattr(client, "stream")  # whether a lane can follow what it decodes by itself
        self.scores = client.scores
        self.threads = ThreadPoolExecutor(client.at_once, thread_name_prefix="served")
        self.kind = "a served model" if self.scores else "a server that names tokens by their texts"
        self.max_nodes = max(1, min(ROWS, LOGPROBS // (self.top or self.vocabulary)))  # per request
        self.note: str | None = None if self.scores else FOLLOWED
        if self.scores and self.top is not None:
            self.note = (
                f"The server names only the {self.top} most likely tokens at each position. All others "
                "count as impossible here, and what is exact is exact among these."
            )

    def gives(self, capability: Capability) -> bool:
        """Whether it has this capability: at most the probabilities of all tokens."""
        return capability is Capability.FULL_DISTRIBUTION and self.top is None

    def attach(self, tree: Tree) -> "ServedScorer":
        """A scorer for `tree`."""
        return ServedScorer(self, tree)


def here(threads: Executor, call: Callable[[], Any]) -> Any:
    """The result of `call()`, for a scorer that belongs to no lane; see `Lane.elsewhere`."""
    return call()


class ServedScorer:
    """One lane's view of a `ServedEngine`; see `engine.Scorer` for the contract. It holds no KV slots
    here.
    """

    def __init__(self, engine: ServedEngine, tree: Tree):
        self.engine, self.tree = engine, tree
        self.kept: dict[int, torch.Tensor] = {}  # node -> log-probabilities [V]
        self.read: set[int] = set()  # nodes that the server has read
        self.max_nodes = engine.max_nodes
        self.unseen: dict[int, float] = {}  # node -> total probability of the tokens that its row leaves out
        self.work = Work()
        self.used = self.peak = 0
        self.elsewhere = here  # lets other lanes compute during a request

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Log-probabilities [N, V] of the token after each node, float64. Raises Refusal with one sentence
        if hidden states are wanted, or the server does not answer as it should.
        """
        if hidden:
            raise Refusal("A served model gives probabilities alone, no hidden states; load the model here.")
        missing = list(dict.fromkeys(n for n in nodes if n not in self.kept))
        new = {place for node in missing for place in self.tree.path(node)} - self.read
        self.work = Work(tokens=len(new | set(missing)), rows=len(nodes))
        if missing:
            for node, row in self.elsewhere(self.engine.threads, lambda: self._ask(missing)).items():
                self.keep(node, row)
            self.read |= new
        return torch.stack([self.kept[n] for n in nodes])

    def keep(self, node: int, row: Row) -> torch.Tensor:
        """Stores a row as the log-probabilities [V] after a node, and returns them."""
        self.kept[node] = filled(row, self.engine.vocabulary)
        if len(row) < self.engine.vocabulary:
            self.unseen[node] = max(0.0, 1.0 - math.fsum(map(math.exp, row.values())))
        return self.kept[node]

    def _ask(self, nodes: list[int]) -> dict[int, Row]:
        """The server's rows after nodes: from one text if most of its places are wanted, since the server
        reads such a text once but scores all its places; else from one text per node.
        """
        depths = self.tree.depths
        path = self.tree.path(max(nodes, key=depths.__getitem__))
        if len(nodes) > 1 and 2 * len(nodes) >= len(path) and set(nodes) <= set(path):
            text, lengths = self.tree.text(path[-1]), [depths[n] + 1 for n in nodes]
            if (rows := self.engine.client.along(text, lengths)) is not None:
                return dict(zip(nodes, rows, strict=True))
        rows = self.engine.client.next_tokens([self.tree.text(n) for n in nodes])
        return dict(zip(nodes, rows, strict=True))

    def attention(self, nodes: list[int]) -> None:
        """None: servers give no attention."""
        return None

    def forget(self, nodes: list[int]) -> None:
        """Drops the rows of these nodes."""
        for node in nodes:
            self.kept.pop(node, None)

    def release(self, nodes: list[int]) -> None:
        """As `forget`: the slots are the server's."""
        self.forget(nodes)
        self.read.difference_update(nodes)

    def close(self) -> None:
        """Drops everything."""
        self.kept.clear()


class Stream:
    """What the server itself decodes after a node, event by event, with the `top` most likely tokens at each
    place. Closing it ends the connection. `work` is the work for the newest event.
    """

    def __init__(
        self, scorer: ServedScorer, node: int, max_tokens: int, top: int, settings: Mapping[str, float]
    ):
        text = scorer.tree.text(node)
        self.events = scorer.engine.client.stream(text, max_tokens, top, settings)
        self.newest: list[tuple[int, Row]] = []  # tokens and rows of the newest event
        self.unread, self.work = len(text), Work()

    def next(self) -> torch.Tensor:
        """The tokens [T] of the next event; empty if the server has ended its text."""
        self.newest = next(self.events, [])
        tokens = [token for token, _ in self.newest]
        # the prompt is read for the first token, and each token for the one after it
        self.work = Work(tokens=self.unread + len(tokens) - 1 if tokens else 0, rows=len(tokens))
        self.unread = 1
        return torch.tensor(tokens, dtype=torch.long)

    def close(self) -> None:
        """Ends the connection."""
        self.events.close()


def filled(row: Row, vocabulary: int) -> torch.Tensor:
    """A row as log-probabilities [V], -inf for tokens that it does not name."""
    logprobs = torch.full((vocabulary,), -math.inf, dtype=torch.float64)
    logprobs[list(row)] = torch.tensor(list(row.values()), dtype=torch.float64)
    return logprobs
