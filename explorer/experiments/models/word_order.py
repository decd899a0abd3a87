"""Two small models that order shuffled words: one that says for every word at once at which place it stands
(MP3, Zhai et al. 2022), and a pointer that writes them from left to right.

MP3's encoder has no positions; some words may come with theirs. The pointer follows Vinyals et al. (2015).
"""

import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.nn.functional import cross_entropy

HIDDEN = -1  # the place of a word whose place is asked for


def layer(kind: type[nn.Module], width: int, heads: int) -> nn.Module:
    """A layer of a transformer, without dropout."""
    return kind(width, heads, 4 * width, 0.0, batch_first=True, norm_first=True)


class Places(nn.Module):
    """For each word of a bag, logits of its place. `share` of the places are shown in training, a random one
    for every batch between 0 and 1.
    """

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length + 1, width)  # the last one: hidden
        inner = layer(nn.TransformerEncoderLayer, width, heads)
        self.encoder = nn.TransformerEncoder(inner, layers, nn.LayerNorm(width), False)
        self.head = nn.Linear(width, length)

    def states(self, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """States [B, N, d] of words [B, N] whose places [B, N] are known, or HIDDEN."""
        known = torch.where(places == HIDDEN, self.position.num_embeddings - 1, places)
        return self.encoder(self.embed(words) + self.position(known))

    def forward(self, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Logits [B, N, places]."""
        return self.head(self.states(words, places))

    def loss(self, rows: torch.Tensor, known: float) -> torch.Tensor:
        """Loss of the hidden places of rows [B, N] in order; on average this share of places is known.
        Attention without positions does not see in which order the words come, so nothing is shuffled.
        """
        right = torch.arange(rows.shape[1]).expand_as(rows)
        shown = torch.rand(rows.shape) < known
        shown[:, 0] &= ~shown.all(1)
        logits = self(rows, torch.where(shown, right, HIDDEN))
        return cross_entropy(logits[~shown], right[~shown])


class Pointer(nn.Module):
    """An encoder of the bag without positions, and a causal decoder that points to the next word."""

    def __init__(self, vocabulary: int, length: int, width: int, layers: int, heads: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.begin = nn.Parameter(torch.randn(width) * 0.02)
        inner = layer(nn.TransformerEncoderLayer, width, heads)
        self.encoder = nn.TransformerEncoder(inner, layers - 1, nn.LayerNorm(width), False)
        outer = layer(nn.TransformerDecoderLayer, width, heads)
        self.decoder = nn.TransformerDecoder(outer, 1, nn.LayerNorm(width))

    def encode(self, words: torch.Tensor) -> torch.Tensor:
        """States [B, N, d] of the bag."""
        return self.encoder(self.embed(words))

    def point(self, bag: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
        """Logits [B, T + 1, N] of which word of the bag follows each of the written tokens [B, T]."""
        begin = self.begin.expand(len(written), 1, -1)
        states = torch.cat([begin, self.embed(written)], 1)
        states = states + self.position.weight[: states.shape[1]]
        mask = nn.Transformer.generate_square_subsequent_mask(states.shape[1])
        states = self.decoder(states, bag, tgt_mask=mask, tgt_is_causal=True)
        return states @ bag.transpose(1, 2) / bag.shape[-1] ** 0.5

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Loss of rows [B, N] in order; words that are written are no longer to choose from."""
        logits = self.point(self.encode(rows), rows[:, :-1])
        used = torch.ones(logits.shape[1:]).tril(-1).bool()
        right = torch.arange(rows.shape[1]).expand_as(rows)
        return cross_entropy(logits.masked_fill(used, float("-inf")).flatten(0, 1), right.flatten())


def assigned(logprobs: torch.Tensor) -> torch.Tensor:
    """The word at each place [N], if every word of [N, places] gets one place: the likeliest of all orders
    (Kuhn 1955).
    """
    words, places = linear_sum_assignment(-logprobs.numpy())
    order = torch.empty(len(words), dtype=torch.long)
    order[torch.tensor(places)] = torch.tensor(words)
    return order


def alone(logprobs: torch.Tensor) -> torch.Tensor:
    """The likeliest word at each place [N], whether or not it stands elsewhere too."""
    return logprobs.argmax(0)


@torch.no_grad()
def at_once(model: Places, words: torch.Tensor, choose=assigned) -> torch.Tensor:
    """The order [B, N] of words [B, N] by one forward."""
    logprobs = model(words, torch.full_like(words, HIDDEN)).log_softmax(-1)
    return torch.stack([choose(one) for one in logprobs])


@torch.no_grad()
def in_rounds(model: Places, words: torch.Tensor, rounds: int) -> torch.Tensor:
    """The order [B, N] by several forwards: after each, the most certain words of the assignment get their
    places, an equal share in every round.
    """
    count = words.shape[1]
    places = torch.full_like(words, HIDDEN)
    order = torch.empty_like(words)
    for number in range(1, rounds + 1):
        logprobs = model(words, places).log_softmax(-1)
        known = places != HIDDEN
        fixed = nn.functional.one_hot(places.clamp(min=0), count).bool()
        logprobs = torch.where(known[..., None], torch.where(fixed, 0.0, -1e4), logprobs)
        for at, one in enumerate(logprobs):
            order[at] = assigned(one)
            sure = one[order[at], torch.arange(count)]
            keep = sure.topk(count * number // rounds).indices
            places[at, order[at][keep]] = keep
    return order


@torch.no_grad()
def left_to_right(model: Pointer, words: torch.Tensor, beams: int = 1) -> torch.Tensor:
    """The order [B, N] by beam search, or greedily with one beam."""
    batch, count = words.shape
    bag = model.encode(words).repeat_interleave(beams, 0)
    choices = words.repeat_interleave(beams, 0)
    order = torch.empty(batch * beams, 0, dtype=torch.long)
    score = torch.full((batch, beams), float("-inf"))
    score[:, 0] = 0.0
    for _ in range(count):
        logits = model.point(bag, choices.gather(1, order))[:, -1]
        logprobs = logits.scatter(1, order, float("-inf")).log_softmax(-1)
        best = (score[..., None] + logprobs.view(batch, beams, count)).flatten(1).topk(beams)
        score, parent = best.values, best.indices // count
        row = (parent + beams * torch.arange(batch)[:, None]).flatten()
        order = torch.cat([order[row], (best.indices % count).view(-1, 1)], 1)
    return order.view(batch, beams, count)[:, 0]
