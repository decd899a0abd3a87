"""An encoder whose first state is the vector of a text, and a decoder that rebuilds the text from it, thrown
away after training (RetroMAE, Xiao et al. 2022; DupMAE, Xiao and Liu 2023).

Some words are hidden from the encoder, which learns to fill them in, and many more from the decoder, which
reads the vector and the words that are left. In DupMAE the states of the other tokens have a task, too: the
largest score of each word over all tokens is to give back which words the text has.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

PADDING, HIDDEN = 0, 1  # words are numbers from 2 on
HIDE = 0.15  # share of the words that are hidden from the encoder


def layers_of(count: int, width: int) -> nn.Module:
    """So many layers of a transformer that reads in both directions, without dropout."""
    inner = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True, norm_first=True)
    return nn.TransformerEncoder(inner, count, nn.LayerNorm(width), False)


class TextVectors(nn.Module):
    """`decoder` layers of a decoder that sees a share `seen` of the words; without layers, the encoder alone
    is trained. bag: whether the other tokens give back the words.
    """

    def __init__(
        self, vocabulary: int, length: int, width: int, layers: int, decoder: int, seen: float, bag: bool
    ):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=PADDING)
        nn.init.normal_(self.embed.weight, std=width**-0.5)  # also the output matrix
        self.place = nn.Parameter(torch.randn(length + 1, width) * 0.1)  # the first one: the vector
        self.encoder, self.seen = layers_of(layers, width), seen
        self.decoder = layers_of(decoder, width) if decoder else None
        self.word = nn.Linear(width, vocabulary) if bag else None

    def read(self, by: nn.Module, words: torch.Tensor, vector: torch.Tensor | float = 0.0) -> torch.Tensor:
        """States [B, 1 + T, d] of words [B, T] in an encoder or decoder, behind a vector [B, d]."""
        first = (self.place[0] + vector).expand(len(words), -1)
        states = torch.cat([first[:, None], self.embed(words) + self.place[1 : words.shape[1] + 1]], 1)
        blocked = torch.cat([words.new_zeros(len(words), 1).bool(), words == PADDING], 1)
        return by(states, src_key_padding_mask=blocked)

    def filled(self, states: torch.Tensor, gone: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """Loss of the words [B, T] that are gone [B, T], from states [B, 1 + T, d]."""
        return cross_entropy(states[:, 1:][gone] @ self.embed.weight.T, words[gone])

    def scores(self, states: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        """The largest score [B, V] of each word over the tokens of texts [B, T]."""
        return self.word(states[:, 1:]).masked_fill((words == PADDING)[..., None], -1e9).amax(1)

    def loss(self, words: torch.Tensor) -> torch.Tensor:
        """Loss of texts [B, T]."""
        gone = hidden(words, HIDE)
        states = self.read(self.encoder, words.masked_fill(gone, HIDDEN))
        loss = self.filled(states, gone, words)
        if self.decoder is not None:
            gone = hidden(words, 1 - self.seen)
            rebuilt = self.read(self.decoder, words.masked_fill(gone, HIDDEN), states[:, 0])
            loss = loss + self.filled(rebuilt, gone, words)
        if self.word is not None:
            wanted = which(words, self.embed.num_embeddings)
            likely = self.scores(states, words).log_softmax(-1)
            loss = loss - (likely * wanted).sum(-1).div(wanted.sum(-1)).mean()
        return loss

    @torch.no_grad()
    def vectors(self, words: torch.Tensor) -> torch.Tensor:
        """The vectors [B, d] of texts [B, T], or [B, d + V] with the scores of words beside them; each part
        has length 1.
        """
        states = self.read(self.encoder, words)
        parts = [states[:, 0]]
        if self.word is not None:
            parts.append(self.scores(states, words).softmax(-1).sqrt())
        return torch.cat([nn.functional.normalize(part, dim=-1) for part in parts], -1)


def hidden(words: torch.Tensor, share: float) -> torch.Tensor:
    """A random share of the words [B, T], at least one in the batch."""
    gone = (torch.rand(words.shape) < share) & (words != PADDING)
    gone[0, 0] = True
    return gone


def which(words: torch.Tensor, vocabulary: int) -> torch.Tensor:
    """1 for each word [B, V] that a text [B, T] has, 0 for all others."""
    there = torch.zeros(len(words), vocabulary).scatter_(1, words, 1.0)
    there[:, PADDING] = 0.0
    return there
