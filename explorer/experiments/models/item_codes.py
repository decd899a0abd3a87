"""Items as four codes each, a model that predicts all four codes of the next item at once, and a beam over
them: RecGPT (Jiang et al. 2025) in miniature.
"""

from dataclasses import dataclass

import torch
from torch import nn

from decoders.constraints.trie import TrieNode

PARTS = 4  # codes per item
LEVELS = (8, 8, 8, 6, 5)
BASIS = (1, 8, 64, 512, 3072)
TEMPERATURE = 0.1
Widths = tuple[int, int, int]  # beam widths: at the first code, at later codes, and of the final list


def index_of(levels: torch.Tensor) -> torch.Tensor:
    """The index [...] of a code, 0 to 15359, from its levels [..., 5]."""
    return (levels * torch.tensor(BASIS)).sum(-1)


def latents_of(vectors: torch.Tensor) -> torch.Tensor:
    """Vectors [I, d] as four parts of five numbers each, [I, 4, 5]: the principal components of each quarter,
    with variance 1. (The paper trains an auto-encoder for this.)
    """
    size = vectors.shape[1] // PARTS
    parts = []
    for quarter in vectors[:, : size * PARTS].double().split(size, 1):
        centred = quarter - quarter.mean(0)
        _, _, directions = torch.linalg.svd(centred, full_matrices=False)
        some = centred @ directions[: len(LEVELS)].T
        some = nn.functional.pad(some, (0, len(LEVELS) - some.shape[1]))
        parts.append(some / some.std(0).clamp_min(1e-9))
    return torch.stack(parts, 1).float()


def quantised(latents: torch.Tensor) -> torch.Tensor:
    """Finite scalar quantisation: each number is bounded and rounded to the nearest of its levels. [I, 4]."""
    top = torch.tensor([level - 1.0 for level in LEVELS])
    levels = ((latents.tanh() + 1) / 2 * top).round().long()
    return index_of(levels)


class CodeModel(nn.Module):
    """Reads four codes and the latents of each item; attention sees all codes of an item and of those before.
    Row i of an item predicts code i of the next.
    """

    def __init__(self, vocabulary: int, width: int, layers: int, heads: int, longest: int, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.code = nn.Embedding(vocabulary, width)
        self.latent = nn.Linear(PARTS * len(LEVELS), width)
        self.part, self.place = nn.Embedding(PARTS, width), nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, codes: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        """codes [B, N, 4], latents [B, N, 4, 5] -> logits [B, N, 4, V] of the codes of the next item."""
        count = codes.shape[1]
        places = self.place(torch.arange(count))[:, None] + self.part.weight
        x = self.code(codes) + self.latent(latents.flatten(2))[:, :, None] + places
        item = torch.arange(count).repeat_interleave(PARTS)
        states = self.blocks(x.flatten(1, 2), mask=item[None, :] > item[:, None])
        return self.head(states).unflatten(1, (count, PARTS))


@dataclass(frozen=True)
class Ranked:
    """Items by score, best first, and how many codes were evaluated for it."""

    items: list[int]
    scores: list[float]
    num_evaluated: int


def beam(logits: torch.Tensor, root: TrieNode, widths: Widths) -> Ranked:
    """A beam over the codes of one question, logits [4, V], that is restricted to the paths of a trie of
    items. A code's score is `log_softmax(logits / 0.1)`, without renormalising over the allowed codes. Of two
    items with the same codes the later one counts as the item meant.
    """
    first, each, kept = widths
    logprobs = (logits / TEMPERATURE).log_softmax(-1).tolist()
    live, num_evaluated = [(0.0, root)], 0
    for at, row in enumerate(logprobs):
        grown = []
        for total, node in live:
            below = sorted(((total + row[code], code) for code in node.children), reverse=True)
            num_evaluated += len(below)
            grown += [(score, node.children[code]) for score, code in below[: each if at else first]]
        live = sorted(grown, key=lambda pair: -pair[0])[: kept if at else first]
    return Ranked([node.ends[-1] for _, node in live], [score for score, _ in live], num_evaluated)


def exact(logits: torch.Tensor, codes: torch.Tensor) -> Ranked:
    """All items, by the sum of the log-probabilities of their codes [I, 4]: four numbers per item."""
    logprobs = (logits / TEMPERATURE).log_softmax(-1)
    scores = logprobs.gather(1, codes.T).sum(0)
    later = {tuple(code): item for item, code in enumerate(codes.tolist())}
    distinct = torch.tensor(sorted(later.values()))
    order = distinct[scores[distinct].argsort(descending=True, stable=True)]
    return Ranked(order.tolist(), scores[order].tolist(), codes.numel())
