"""What is kept of rows of scores: the most likely tokens, the mass of the others, entropy and single tokens.

Tensors stay on their device; nothing here waits for it.
"""

from collections.abc import Sequence

import numpy as np
import torch

TOP = 20
LOWEST = -1e30  # in place of minus infinity where it is multiplied by a probability of 0
PART = 1 << 25  # numbers that are worked on at once, so that little memory is taken from vLLM
Measured = dict[str, torch.Tensor]


def of_rows(name: str, scores: torch.Tensor, tokens: torch.Tensor, top: int = TOP) -> Measured:
    """Of scores [N, V], logits or log-probabilities: `name.top` [N, top] and `name.logprobs`, `name.rest` and
    `name.entropy` [N] (nats), `name.among` [N], the number of tokens that no processor has removed, and
    `name.of`, the log-probabilities of tokens [N, M].
    """
    if len(scores) > 1 and scores.numel() > PART:
        half = len(scores) // 2
        first = of_rows(name, scores[:half], tokens[:half], top)
        second = of_rows(name, scores[half:], tokens[half:], top)
        return {key: torch.cat([first[key], second[key]]) for key in first}
    scores = scores.float()
    total = scores.logsumexp(-1, keepdim=True)
    values, ids = scores.topk(min(top, scores.shape[-1]), -1)
    logprobs = values - total
    mean = torch.linalg.vecdot(scores.softmax(-1), scores.clamp(min=LOWEST))
    return {
        f"{name}.top": ids.to(torch.int32),
        f"{name}.logprobs": logprobs,
        f"{name}.rest": (1.0 - logprobs.exp().sum(-1)).clamp(min=0.0),
        f"{name}.entropy": total[:, 0] - mean,
        f"{name}.among": (scores > LOWEST).sum(-1, dtype=torch.int32),
        f"{name}.of": scores.gather(-1, tokens.clamp(min=0).long()) - total,
    }


def residual_of(
    p_scores: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor, drawn: torch.Tensor
) -> torch.Tensor:
    """The probability [N] of the tokens `drawn` [N] under norm(max(p - q, 0)); without q, under p without the
    drafted tokens [N]. p_scores [N, V]: processed logits.
    """
    p = p_scores.float().softmax(-1)
    q = torch.zeros_like(p).scatter_(-1, drafted.clamp(min=0).long()[:, None], 1.0) if q is None else q
    left = (p - q).clamp(min=0.0)
    return left.gather(-1, drawn.long()[:, None])[:, 0] / left.sum(-1)


class Rows:
    """The rows of a step's logits: those of each request, one for each of its drafted tokens and one more.

    `targets` [N] are the rows that test a drafted token, `ends` [B] the last ones of the requests.
    """

    def __init__(self, drafted: Sequence[int], device: torch.device):
        """drafted: how many tokens of each request."""
        counts = np.asarray(drafted)
        self._request = np.repeat(np.arange(len(counts)), counts + 1)  # of each row
        first = np.cumsum(counts + 1) - counts - 1
        self._place = np.arange(len(self._request)) - first[self._request]
        targets = np.nonzero(self._place < counts[self._request])[0]
        self._starts, self._stops = np.cumsum(counts) - counts, np.maximum(np.cumsum(counts) - 1, 0)
        self.device = device
        self.targets, self.ends = self._there(targets), self._there(first + counts)
        self.named = torch.empty(0)

    def _there(self, numbers: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)

    def tokens(self, sampled: torch.Tensor, drafts: torch.Tensor | None) -> Measured:
        """What is written of a step's tokens: sampled [B, K + 1], drafts [N]. Afterwards `named` [R, 2] are
        the drafted token and the written one of each row.
        """
        written = sampled[self._there(self._request), self._there(self._place)]
        drafted = torch.zeros_like(written)
        kept = {"sampled": sampled.to(torch.int32)}
        if drafts is not None:
            drafted[self.targets] = drafts.to(drafted.dtype)
            kept["drafted"] = drafts.to(torch.int32)
        self.named = torch.stack([drafted, written], 1)
        return kept

    def last_tested(self, sampled: torch.Tensor) -> torch.Tensor:
        """Of each request, which of all N drafted tokens was rejected, else its last one [B]."""
        written = (sampled >= 0).sum(1)
        return torch.minimum(self._there(self._starts) + written - 1, self._there(self._stops)).clamp(min=0)
