"""A discrete key-value bottleneck after a frozen model, as a processor of its logits: the last hidden state
is cut into C parts, each part finds its nearest key in its own codebook, and the mean of the C values found
there is added to the logits of a few words. Keys are fitted to the data once and then frozen; only values are
trained, so that learning changes nothing but the values of the keys that were hit.

Träuble et al. (2022), "Discrete Key-Value Bottleneck", which classifies images; this port adds to logits.
"""

from dataclasses import dataclass

import torch

from decoders.refusal import Refusal

DECAY = 0.95  # of the moving averages by which keys are placed


@dataclass
class Bottleneck:
    """keys [C, K, d / C], frozen; values [C, K, W], trained; words [W]: the tokens to whose logits they are
    added.
    """

    keys: torch.Tensor
    values: torch.Tensor
    words: torch.Tensor

    def hit(self, states: torch.Tensor) -> torch.Tensor:
        """The nearest key of each part [..., C] of states [..., d]."""
        parts = states.unflatten(-1, (len(self.keys), -1)).flatten(0, -3)  # [N, C, d / C]
        near = torch.cdist(parts.transpose(0, 1), self.keys).argmin(-1)  # [C, N]
        return near.t().unflatten(0, states.shape[:-1])

    def added(self, states: torch.Tensor) -> torch.Tensor:
        """The contribution [..., W] to the logits of `words`."""
        books = torch.arange(len(self.keys))
        return self.values[books, self.hit(states)].mean(-2)

    def process(self, logits: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """Logits [..., V] with the contribution of the values."""
        return logits.index_add(-1, self.words, self.added(states))


def placed_keys(
    states: torch.Tensor, books: int, keys: int, passes: int, draw: torch.Generator
) -> torch.Tensor:
    """Keys [C, K, d / C]: they start as states of the data [N, d] and move to the mean of the states nearest
    to them, by moving averages over `passes` through the data in batches. Raises Refusal with one sentence
    if there are fewer states than keys, or if the states cannot be cut.
    """
    if len(states) < keys or states.shape[-1] % books:
        raise Refusal(
            f"{len(states)} states of {states.shape[-1]} numbers cannot make {books} codebooks of {keys} "
            "keys; take fewer."
        )
    parts = states.unflatten(-1, (books, -1)).transpose(0, 1)  # [C, N, d / C]
    centres = parts[:, torch.randperm(len(states), generator=draw)[:keys]].clone()
    counts, sums = torch.ones(books, keys), centres.clone()
    for _ in range(passes):
        for pick in torch.randperm(len(states), generator=draw).split(4 * keys):
            some = parts[:, pick]
            near = torch.nn.functional.one_hot(torch.cdist(some, centres).argmin(-1), keys).float()
            counts = DECAY * counts + (1 - DECAY) * near.sum(1)
            sums = DECAY * sums + (1 - DECAY) * near.transpose(1, 2) @ some
            centres = sums / counts.clamp(min=1e-6)[..., None]
    return centres


def bottleneck(
    states: torch.Tensor, words: torch.Tensor, books: int, keys: int, passes: int = 5, seed: int = 0
) -> Bottleneck:
    """A bottleneck that adds nothing yet."""
    placed = placed_keys(states, books, keys, passes, torch.Generator().manual_seed(seed))
    return Bottleneck(placed, torch.zeros(books, keys, len(words)), words)


@torch.no_grad()
def learn(
    model: Bottleneck,
    logits: torch.Tensor,
    states: torch.Tensor,
    wanted: torch.Tensor,
    steps: int,
    rate: float,
) -> list[float]:
    """Gradient descent on the values of the keys that states [T, d] hit; returns the loss, nats per token, of
    `wanted` [T] before each step. A step moves a position's logits by `rate` times their gradient.
    """
    places, losses = model.hit(states), []
    books = torch.arange(len(model.keys))
    for _ in range(steps):
        logprobs = model.process(logits, states).log_softmax(-1)
        losses.append(float(-logprobs.gather(-1, wanted[:, None]).mean()))
        gradient = logprobs.exp()
        gradient[torch.arange(len(wanted)), wanted] -= 1
        for place, moved in zip(places, gradient[:, model.words], strict=True):
            model.values[books, place] -= rate * moved
    return losses
