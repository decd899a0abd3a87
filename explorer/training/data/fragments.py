"""Training data for a model that writes marks at the ends of fragments: small Verilog modules with marks."""

import random

import torch
from transformers import PreTrainedTokenizerFast

from explorer.corpus import END, PAD
from explorer.tasks.verilog import FRAGMENT, make_module, marked
from explorer.training.data import Document, Rows, document, padded

ADDED = (FRAGMENT,)


class Modules:
    """Makes marked modules after their comments. tokenizer: one that knows ADDED."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer
        self.end, self.pad = (tokenizer.convert_tokens_to_ids(token) for token in (END, PAD))

    def made(self, rng: random.Random) -> Document:
        """A module after its comment, which has no loss."""
        asked, module = (self.tokenizer(text)["input_ids"] for text in marked_module(rng))
        return document(asked, [*module, self.end])

    def batch(self, seed: str, count: int) -> Rows:
        """(rows, labels), both [count, T]."""
        rng = random.Random(f"modules {seed}")
        return padded([self.made(rng) for _ in range(count)], self.pad)

    def packed(self, seed: str, count: int, row: int) -> torch.Tensor:
        """Rows [count, row] of consecutive comments and modules, without padding."""
        rng, ids = random.Random(f"packed {seed}"), []
        while len(ids) < count * row:
            ids += self.made(rng)[0]
        return torch.tensor(ids[: count * row]).view(count, row)


def marked_module(rng: random.Random) -> tuple[str, str]:
    """(comment, marked module)."""
    asked, module = make_module(rng)
    return asked, marked(module)
