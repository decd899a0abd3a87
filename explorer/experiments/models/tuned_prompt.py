"""A tuned prompt before a frozen model, with a linear head on the last state or a trie search after it.

Buchner et al. (2024), Prompt Tuned Embedding Classification.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from decoders.constraints.constraint import Constraint

LENGTH = 8  # vectors of the prompt; 100 in the paper
IGNORED = -100  # label of tokens without loss


@dataclass(frozen=True)
class Answer:
    """Labels by number with the confidence in each, and the cost: forwards, and rows that were read."""

    confidence: dict[int, float]
    forwards: int
    read: int


class TunedPrompt(nn.Module):
    """Vectors [P, d] that a causal model reads before a text. The model itself stays frozen."""

    def __init__(self, model: nn.Module, seed: int = 0, length: int = LENGTH):
        """Begins with the embeddings of random tokens. length 0: no prompt."""
        super().__init__()
        self.__dict__["model"] = model  # kept out of the trained parameters
        table = model.get_input_embeddings().weight.detach()
        draw = torch.Generator().manual_seed(seed)
        self.vectors = nn.Parameter(table[torch.randint(len(table), (length,), generator=draw)].clone())

    def before(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens [B, T] -> embeddings [B, P + T, d] with the prompt before them."""
        read = self.model.get_input_embeddings()(tokens)
        return torch.cat([self.vectors.expand(len(tokens), -1, -1), read], 1)

    def last_state(self, tokens: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        """The last hidden state [B, d] of the token at position `last` [B] of each text of tokens [B, T]."""
        states = self.model.model(inputs_embeds=self.before(tokens)).last_hidden_state
        return states[torch.arange(len(tokens)), last + len(self.vectors)]


class LabelHead(nn.Module):
    """A number per label, from the state of a text's last token: sigmoid(W h + b). Labels are not
    exclusive.
    """

    def __init__(self, prompt: TunedPrompt, labels: int, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.prompt = prompt
        self.scores = nn.Linear(prompt.model.config.hidden_size, labels)

    def forward(self, tokens: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        """Tokens [B, T], and the place [B] of the last one of each text -> logits [B, C]."""
        return self.scores(self.prompt.last_state(tokens, last))

    @torch.no_grad()
    def answer(self, text: list[int]) -> Answer:
        """All labels with the confidence in each, in one forward."""
        logits = self(torch.tensor([text]), torch.tensor([len(text) - 1]))[0]
        read = len(self.prompt.vectors) + len(text)
        return Answer(dict(enumerate(logits.sigmoid().tolist())), 1, read)


def positive_weights(wanted: torch.Tensor) -> torch.Tensor:
    """For labels in wanted [N, C] (0 or 1): the number of texts without a label per text with it [C]."""
    positive = wanted.sum(0).clamp(min=1)
    return (len(wanted) - positive) / positive


def label_loss(logits: torch.Tensor, wanted: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Mean binary cross entropy over all labels; positive labels are weighted by `weights` [C]."""
    return nn.functional.binary_cross_entropy_with_logits(logits, wanted, pos_weight=weights)


def padded(texts: list[list[int]], answers: list[list[int]] | None = None) -> tuple[torch.Tensor, ...]:
    """Texts as zero-padded tokens [B, T], the position of the last token of each [B], and what the model
    should write after each (with answers), as targets [B, T] of the row before.
    """
    whole = [text + answer for text, answer in zip(texts, answers or [[]] * len(texts), strict=True)]
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(one) for one in whole], batch_first=True)
    targets = torch.full_like(tokens, IGNORED)
    for row, (text, one) in enumerate(zip(texts, whole, strict=True)):
        targets[row, len(text) - 1 : len(one) - 1] = torch.tensor(one[len(text) :])
    return tokens, torch.tensor([len(text) - 1 for text in texts]), targets


def answer_loss(prompt: TunedPrompt, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross entropy of the answers' tokens after a tuned prompt."""
    logits = prompt.model(inputs_embeds=prompt.before(tokens)).logits[:, len(prompt.vectors) :]
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)


@torch.no_grad()
def trie_search(
    prompt: TunedPrompt,
    text: list[int],
    constraint: Constraint,
    ends: frozenset[int],
    named: Callable[[list[int]], list[int]],
    max_tokens: int = 40,
) -> Answer:
    """Writes labels after a text, token by token the most likely that the constraint allows. `named` gives
    the labels, by number, that are complete in the tokens written so far. The confidence in a label is the
    product of the probabilities under the mask of its tokens and of the separator or end after it.
    """
    state, written, logs, done, cache = constraint.start(), [], [], 0, None
    confidence: dict[int, float] = {}
    embeddings, read = prompt.before(torch.tensor([text])), 0
    while len(written) < max_tokens:
        seen = prompt.model(inputs_embeds=embeddings, past_key_values=cache, use_cache=True)
        cache, read = seen.past_key_values, read + embeddings.shape[1]
        row, allowed = seen.logits[0, -1].double(), constraint.allowed(state)
        allowed[list(ends)] = constraint.may_end(state)
        logprobs = row.masked_fill(~allowed, -math.inf).log_softmax(0)
        token = int(logprobs.argmax())
        written.append(token)
        logs.append(float(logprobs[token]))
        labels = named(written)
        if len(labels) > len(confidence):
            confidence[labels[-1]] = math.exp(sum(logs[done:]))
            done = len(logs)
        if token in ends:
            break
        state = constraint.advance(state, token)
        embeddings = prompt.model.get_input_embeddings()(torch.tensor([[token]]))
    return Answer(confidence, len(written), read)
