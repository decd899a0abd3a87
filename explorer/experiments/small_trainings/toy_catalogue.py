"""A catalogue of 512 toy items, what its customers take next, and how a ranking is judged. A stand-in for the
data of recommenders: customers are a Markov chain over the words of the names.
"""

import math
from itertools import product

import torch

from explorer.experiments import Models, progress

WORDS = (
    ("small", "big", "old", "new", "soft", "shiny", "funny", "happy"),
    ("red", "blue", "green", "yellow", "white", "black", "brown", "pink"),
    ("ball", "hat", "car", "dog", "cup", "book", "boat", "bear"),
)
NAMES = [" ".join(words) for words in product(*WORDS)]
EACH = len(WORDS[0])
FAITHFUL = 0.7  # probability that a word of the next name follows from the same word of this one
AT_A_TIME = 64


def words_of(items: torch.Tensor) -> torch.Tensor:
    """The adjective, colour and object [..., 3] of items [...]."""
    return torch.stack([items // EACH**2, items // EACH % EACH, items % EACH], -1)


def follows(words: torch.Tensor) -> torch.Tensor:
    """The words that a faithful customer takes next: three, one and one entries further on in their lists."""
    return (words + torch.tensor([3, 1, 1])) % EACH


def histories(count: int, length: int, seed: int) -> torch.Tensor:
    """The items that customers took, [count, length]: each word follows from the last item's, or is
    random.
    """
    generator = torch.Generator().manual_seed(seed)
    words = [torch.randint(EACH, (count, 3), generator=generator)]
    for _ in range(length - 1):
        free = torch.randint(EACH, (count, 3), generator=generator)
        faithful = torch.rand((count, 3), generator=generator) < FAITHFUL
        words.append(torch.where(faithful, follows(words[-1]), free))
    return (torch.stack(words, 1) * torch.tensor([EACH**2, EACH, 1])).sum(-1)


def next_probs(item: int) -> torch.Tensor:
    """The true probabilities [512] of the item that is taken after this one."""
    each = torch.full((3, EACH), (1 - FAITHFUL) / EACH)
    each[range(3), follows(words_of(torch.tensor(item)))] += FAITHFUL
    return torch.einsum("a,c,o->aco", *each).flatten()


def true_ranking(last: int) -> list[int]:
    """The items ranked by their true probabilities after the last one; ties in the order of the list."""
    return next_probs(last).argsort(descending=True, stable=True).tolist()


def name_tokens(models: Models) -> list[list[int]]:
    """The target's tokens of each name, after a space."""
    cut = models["target"].cut
    return [cut(" " + name) for name in NAMES]


@torch.no_grad()
def name_vectors(models: Models) -> torch.Tensor:
    """The mean [512, d] of the target's last hidden states over the tokens of each name."""
    target, names, vectors = models["target"], name_tokens(models), []
    for first in progress.each(range(0, len(names), AT_A_TIME)):
        some = names[first : first + AT_A_TIME]
        longest = max(map(len, some))
        rows = torch.tensor([name + [0] * (longest - len(name)) for name in some])
        real = torch.tensor([[1.0] * len(name) + [0.0] * (longest - len(name)) for name in some])
        states = target.model(rows.to(target.model.device), output_hidden_states=True).hidden_states[-1]
        states = states.float().cpu()
        vectors.append((states * real[..., None]).sum(1) / real.sum(1, keepdim=True))
    return torch.cat(vectors)


def recall(ranks: list[int | None], k: int) -> float:
    """Share of questions whose right item is among the first k; None: it is not in the list."""
    return sum(rank is not None and rank <= k for rank in ranks) / len(ranks)


def ndcg(ranks: list[int | None], k: int) -> float:
    """Mean of 1 / log2(1 + rank) of the right item, 0 beyond the first k."""
    return sum(1 / math.log2(1 + rank) for rank in ranks if rank is not None and rank <= k) / len(ranks)
