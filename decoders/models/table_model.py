"""Models given as small tables of known probabilities, behind the engine's interface: exact answers for tests
and lessons.

A table gives the distribution over the next token as a function of the tokens so far, in float64.
`TableModel` also has the interface of a loaded model: name, end-of-text tokens, bytes of tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.tree import Tree

Table = Callable[[tuple[int, ...]], Sequence[float]]  # tokens so far -> probabilities of the next token


@dataclass(eq=False)
class TableModel:
    """A language model given by `table`, over tokens 0..vocabulary-1."""

    table: Table
    vocabulary: int
    eos: frozenset[int] = frozenset()
    name: str = "table"
    context: int = 1 << 30
    note: str | None = None
    words: Sequence[str] = field(default_factory=list)
    kind, remedy = "a table", "a model built like Llama"
    capabilities = frozenset({Capability.FULL_DISTRIBUTION})
    embedding: torch.Tensor | None = None  # [V, d]
    generation: dict = field(default_factory=dict)  # processors, as in a model's generation config
    companions: dict[str, Any] = field(default_factory=dict)  # kind -> model of that kind
    heads: dict[str, Any] = field(default_factory=dict)  # kind -> head
    model_kind = "causal"
    special: frozenset[int] = frozenset()
    cut = sorted_draft = None  # see model_interface.Model
    chat_template = ""

    @property
    def engine(self) -> "TableModel":
        return self

    def companion(self, wanted: str) -> Any:
        """As `loaded_model.LoadedModel.companion`."""
        return self if wanted == self.model_kind else self.companions.get(wanted)

    def gives(self, capability: Capability) -> bool:
        """Whether it can give this."""
        if capability is Capability.OUTPUT_EMBEDDING:
            return self.embedding is not None
        return capability in self.capabilities

    @property
    def token_key(self) -> str:
        """As `loaded_model.LoadedModel.token_key`."""
        return f"{list(self.words)} {self.vocabulary}"

    def narrower(self, rows: int) -> Any:
        """Itself: each of its columns stands for a token."""
        return self

    def attach(self, tree: Tree) -> "TableScorer":
        """A scorer with the interface of `engine.Scorer`."""
        return TableScorer(self, tree)

    def bytes_of(self, token: int) -> bytes:
        """The bytes as which a token is shown."""
        return (
            self.words[token] if self.words else chr(97 + token) if self.vocabulary <= 26 else f" {token}"
        ).encode()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text: the longest matching token at each place; an arbitrary one if none matches."""
        shown, ids = {self.bytes_of(token).decode(): token for token in range(self.vocabulary)}, []
        while text:
            piece = max((word for word in shown if text.startswith(word)), key=len, default=text[0])
            ids.append(shown[piece] if piece in shown else ord(piece) % self.vocabulary)
            text = text[len(piece) :]
        return ids

    def encode_after(self, before: list[int], text: str) -> list[int]:
        """Token ids of a text after others: those of the text alone."""
        return self.encode(text)


class TableScorer:
    """Looks up rows of the table. Has no KV cache, no attention and no hidden states."""

    def __init__(self, model: TableModel, tree: Tree):
        self.model, self.tree = model, tree
        self.seen: set[int] = set()
        self.work = Work()
        self.used = self.peak = 0

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Log-probabilities [N, V] of the token after each node."""
        self.work = Work(tokens=len([n for n in nodes if n not in self.seen]), rows=len(nodes))
        self.seen.update(nodes)
        rows = [self.model.table(tuple(self.tree.text(n))) for n in nodes]
        return torch.tensor(rows, dtype=torch.float64).log()

    def attention(self, nodes: list[int]) -> None:
        return None

    def forget(self, nodes: list[int]) -> None:
        pass

    def release(self, nodes: list[int]) -> None:
        self.seen.difference_update(nodes)

    def close(self) -> None:
        pass


def exact_distribution(
    model: TableModel,
    prompt: Sequence[int],
    length: int,
    shape: Callable[[torch.Tensor], torch.Tensor] = torch.exp,
) -> dict[tuple[int, ...], float]:
    """The exact distribution over continuations of `length` tokens after `prompt`; those that reach an
    end-of-text token stop there. `shape` maps log-probabilities [1, V] to probabilities [1, V].

    Enumerates all continuations, visiting each prefix once.
    """
    distribution: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for text, probability in distribution.items():
            if text and text[-1] in model.eos:
                longer[text] = probability
                continue
            row = torch.tensor([model.table((*prompt, *text))], dtype=torch.float64).log()
            for token, share in enumerate(shape(row)[0].tolist()):
                if probability * share > 0.0:
                    longer[*text, token] = probability * share
        distribution = longer
    return distribution
