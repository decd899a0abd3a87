"""What some models read besides the corpus: forms, fact sheets and labelled programs, and rows of them."""

import torch

from explorer.corpus import IGNORED

Rows = tuple[torch.Tensor, torch.Tensor]  # token ids and labels, both [batch, row]
Document = tuple[list[int], list[int]]  # token ids and labels of one


def document(asked: list[int], answer: list[int]) -> Document:
    """A prompt, which has no loss, and the text to write after it."""
    return asked + answer, [IGNORED] * len(asked) + answer


def padded(documents: list[Document], pad: int) -> Rows:
    """Documents as rows [N, T] and labels [N, T]; T is a multiple of 16."""
    longest = -(-max(len(ids) for ids, _ in documents) // 16) * 16
    rows = [ids + [pad] * (longest - len(ids)) for ids, _ in documents]
    labels = [tokens + [IGNORED] * (longest - len(tokens)) for _, tokens in documents]
    return torch.tensor(rows), torch.tensor(labels)
