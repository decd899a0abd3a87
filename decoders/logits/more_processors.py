"""Processors that other engines have and transformers lacks: DRY, top-n-sigma, XTC, and the penalties of
OpenAI's interface.

Each maps the tokens so far and a row of scores [1, V] to scores [1, V].
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

LONGEST_MATCH = 50  # longer repetitions count as this long, since the penalty grows exponentially
BREAKERS = ("\n", ":", '"', "*")  # repetitions end at these: the default of text-generation-webui

Coin = Callable[[float, tuple], bool]  # (probability, tag) -> True with this probability


@dataclass(frozen=True)
class Dry:
    """Don't repeat yourself: a token that would extend a repetition of at least `allowed` tokens loses
    `multiplier * base ** (length - allowed)`, where the last `length` tokens of the text also precede an
    earlier occurrence of it. `breakers`: tokens at which a repetition ends.

    p-e-w, text-generation-webui, pull request 5677.
    """

    multiplier: float
    base: float
    allowed: int
    breakers: frozenset[int] = frozenset()

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        text, left = ids[0].tolist(), scores.clone()
        for token, length in self.matches(text).items():
            if length >= self.allowed:
                left[0, token] -= self.multiplier * self.base ** (length - self.allowed)
        return left

    def matches(self, text: list[int]) -> dict[int, int]:
        """Token -> length of the longest suffix of the text that also precedes one of its occurrences."""
        lengths: dict[int, int] = {}
        for i in range(len(text) - 1):
            token, length = text[i + 1], 0
            while (
                length < min(LONGEST_MATCH, i + 1)
                and text[i - length] == text[-1 - length]
                and text[-1 - length] not in self.breakers
            ):
                length += 1
            if length and token not in self.breakers:
                lengths[token] = max(length, lengths.get(token, 0))
        return lengths


@dataclass(frozen=True)
class TopNSigma:
    """Keeps the tokens whose score is at most n standard deviations below the highest; those that other
    processors removed do not count. Tang et al. (2024), "Top-nσ: Not All Logits Are You Need".
    """

    n: float

    def __call__(self, ids: torch.Tensor | None, scores: torch.Tensor) -> torch.Tensor:
        left = scores.isfinite()
        count = left.sum(-1, keepdim=True)
        mean = scores.masked_fill(~left, 0.0).sum(-1, keepdim=True) / count
        spread = (scores - mean).masked_fill(~left, 0.0).square().sum(-1, keepdim=True)
        sigma = (spread / (count - 1).clamp(min=1)).sqrt()
        return scores.masked_fill(scores < scores.amax(-1, keepdim=True) - self.n * sigma, -math.inf)


@dataclass(frozen=True)
class Xtc:
    """Exclude top choices: with `probability`, removes all but the least likely of the tokens whose
    probability is at least `threshold`; removes nothing if an end-of-text token would be among them. `coin`
    decides once per text.

    p-e-w, text-generation-webui, pull request 6335, which also spares the line break.
    """

    probability: float
    threshold: float
    eos: tuple[int, ...]
    coin: Coin

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not self.coin(self.probability, ("xtc", *ids[0].tolist())):
            return scores
        order = scores[0].argsort(descending=True, stable=True)
        above = int((scores[0].softmax(-1) >= self.threshold).sum())
        gone = order[: max(0, above - 1)]
        if set(gone.tolist()) & set(self.eos):
            return scores
        return scores.index_fill(-1, gone, -math.inf)


@dataclass(frozen=True)
class CountPenalty:
    """Takes `frequency` times its count in the new text from the score of each token, and `presence` from
    those that occur there at all; the first `prompt` tokens do not count. As in OpenAI's interface and vLLM.
    """

    frequency: float
    presence: float
    prompt: int

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(ids[0, self.prompt :], minlength=scores.shape[-1]).to(scores)[None]
        return scores - self.frequency * counts - self.presence * (counts > 0)
