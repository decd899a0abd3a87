"""Two decoders over the same encoder: one writes a text as one sequence of words, the other sentence by
sentence, after a state and a topic for each (Perez-Beltrachini et al. 2019). Words and topics are numbers.

In both the words come from gated convolutions (Gehring et al. 2017), which see a few words back and the
source. Above them the second one has a recurrent decoder with one state a sentence, which says its topic, and
with the topic END that the text is over.
"""

import torch
from torch import nn
from torch.nn import functional as F

KERNEL = 3


class Source(nn.Module):
    """Embeds a text and reads it in both directions."""

    def __init__(self, vocabulary: int, length: int, width: int):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        nn.init.normal_(self.embed.weight, std=width**-0.5)  # also the output matrix
        self.place = nn.Parameter(torch.randn(length, width) * 0.1)
        inner = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(inner, 2, nn.LayerNorm(width), False)

    def forward(self, source: torch.Tensor) -> torch.Tensor:
        """States [B, S, d] of sources [B, S]; 0 is padding."""
        states = self.embed(source) + self.place[: source.shape[1]]
        return self.encoder(states, src_key_padding_mask=source == 0)


def attention(query: torch.Tensor, states: torch.Tensor, blocked: torch.Tensor) -> torch.Tensor:
    """What queries [B, T, d] read from states [B, S, d], of which some [B, S] are blocked."""
    scores = query @ states.transpose(1, 2) / query.shape[-1] ** 0.5
    return scores.masked_fill(blocked[:, None], float("-inf")).softmax(-1) @ states


class Convolutions(nn.Module):
    """Words from left to right, by gated convolutions that attend to the source in every layer."""

    def __init__(self, width: int, layers: int, length: int):
        super().__init__()
        self.place = nn.Parameter(torch.randn(length, width) * 0.1)
        self.convolve = nn.ModuleList(nn.Conv1d(width, 2 * width, KERNEL) for _ in range(layers))
        self.ask = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(
        self, words: torch.Tensor, context: torch.Tensor, states: torch.Tensor, blocked: torch.Tensor
    ) -> torch.Tensor:
        """States [B, T, d] of embedded words [B, T, d], with a context [B, 1, d] in every query."""
        hidden = words + self.place[: words.shape[1]]
        for convolve, ask in zip(self.convolve, self.ask, strict=True):
            back = F.pad(hidden.transpose(1, 2), (KERNEL - 1, 0))
            seen = F.glu(convolve(back), dim=1).transpose(1, 2)
            query = (ask(seen) + context) * 0.5**0.5
            hidden = (hidden + seen + attention(query, states, blocked)) * 0.5**0.5
        return hidden


class Flat(nn.Module):
    """The text as one sequence of at most `length` words, from 1 (begin) to 1 (end)."""

    def __init__(self, vocabulary: int, source: int, width: int, layers: int, length: int):
        super().__init__()
        self.source = Source(vocabulary, source, width)
        self.write = Convolutions(width, layers, length)

    def logits(self, states: torch.Tensor, blocked: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Logits [B, T, V] after words [B, T]."""
        embed = self.source.embed
        context = states.new_zeros(len(words), 1, states.shape[-1])
        return self.write(embed(words), context, states, blocked) @ embed.weight.T

    def loss(self, source: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Loss of texts [B, T], which begin and end with 1."""
        logits = self.logits(self.source(source), source == 0, words[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten(), ignore_index=0)

    @torch.no_grad()
    def texts(self, source: torch.Tensor) -> list[list[int]]:
        """The greedy text after each source [B, S]."""
        states, blocked = self.source(source), source == 0
        return greedy(lambda words: self.logits(states, blocked, words), len(source), len(self.write.place))


class Planned(nn.Module):
    """The text sentence by sentence. Topics are numbers below `topics`; END is `topics` itself."""

    def __init__(
        self, vocabulary: int, source: int, width: int, layers: int, length: int, topics: int, sentences: int
    ):
        super().__init__()
        self.source = Source(vocabulary, source, width)
        self.write = Convolutions(width, layers, length)
        self.recur = nn.LSTMCell(width, width)
        self.begin = nn.Parameter(torch.randn(width) * 0.1)
        self.which = nn.Parameter(torch.randn(sentences + 1, width) * 0.1)
        self.topic, self.of_topic = nn.Linear(width, topics + 1), nn.Embedding(topics + 1, width)
        self.end = topics

    def first(self, states: torch.Tensor, blocked: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(input, hidden, cell) [B, d] before the first sentence: the recurrent state is the mean of the
        source.
        """
        there = (~blocked)[..., None].float()
        mean = (states * there).sum(1) / there.sum(1)
        return self.begin.expand_as(mean), mean, mean

    def next(
        self, memory: tuple[torch.Tensor, ...], states: torch.Tensor, blocked: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """(state of the next sentence [B, d], hidden, cell)."""
        hidden, cell = self.recur(memory[0], memory[1:])
        return attention(hidden[:, None], states, blocked)[:, 0] + hidden, hidden, cell

    def logits(
        self,
        context: torch.Tensor,
        at: int,
        states: torch.Tensor,
        blocked: torch.Tensor,
        words: torch.Tensor,
    ) -> torch.Tensor:
        """Logits [B, T, V] after the words [B, T] of sentence number `at`; context [B, d]."""
        embed = self.source.embed
        inside = self.write(embed(words) + self.which[at], context[:, None], states, blocked)
        return inside @ embed.weight.T

    def loss(self, source: torch.Tensor, sentences: torch.Tensor, topics: torch.Tensor) -> torch.Tensor:
        """Loss of sentences [B, N, T], each from 1 to 1, and of their topics [B, N + 1], the last one END; -1
        after it.
        """
        states, blocked = self.source(source), source == 0
        memory, logits, plans = self.first(states, blocked), [], []
        for at in range(topics.shape[1]):
            state, *kept = self.next(memory, states, blocked)
            plans.append(self.topic(state))
            under = state + self.of_topic(topics[:, at].clamp(min=0))
            if at < sentences.shape[1]:
                logits.append(self.logits(under, at, states, blocked, sentences[:, at, :-1]))
            memory = (under, *kept)
        words = F.cross_entropy(
            torch.stack(logits, 1).flatten(0, 2), sentences[..., 1:].flatten(), ignore_index=0
        )
        return words + F.cross_entropy(torch.stack(plans, 1).flatten(0, 1), topics.flatten(), ignore_index=-1)

    @torch.no_grad()
    def texts(
        self, source: torch.Tensor, forced: list[list[int]] | None = None
    ) -> tuple[list[list[list[int]]], list[list[int]]]:
        """(the greedy sentences after each source [B, S], their topics), by its own plan or by forced topics,
        which take the place of its own as far as they go; then the text ends.
        """
        states, blocked = self.source(source), source == 0
        memory, over = self.first(states, blocked), torch.zeros(len(source), dtype=torch.bool)
        texts: list[list[list[int]]] = [[] for _ in source]
        plans: list[list[int]] = [[] for _ in source]
        for at in range(len(self.which) - 1):
            state, *kept = self.next(memory, states, blocked)
            topics = self.topic(state).argmax(-1)
            if forced is not None:
                topics = torch.tensor([plan[at] if at < len(plan) else self.end for plan in forced])
            over |= topics == self.end
            under = state + self.of_topic(topics)

            def written(words: torch.Tensor, under: torch.Tensor = under, at: int = at) -> torch.Tensor:
                return self.logits(under, at, states, blocked, words)

            made = greedy(written, len(source), len(self.write.place))
            for row in (~over).nonzero()[:, 0].tolist():
                texts[row].append(made[row])
                plans[row].append(int(topics[row]))
            memory = (under, *kept)
        return texts, plans


def greedy(logits, rows: int, length: int) -> list[list[int]]:
    """The most likely words one after the other, from 1 up to the next 1, at most `length`."""
    words = torch.ones(rows, 1, dtype=torch.long)
    for _ in range(length):
        words = torch.cat([words, logits(words)[:, -1:, 1:].argmax(-1) + 1], 1)
        if (words[:, 1:] == 1).any(1).all():
            break
    return [row[: row.index(1)] if 1 in row else row for row in words[:, 1:].tolist()]
