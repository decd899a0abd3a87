"""What is kept of rows of scores: the most likely tokens, the mass of the others, entropy and single tokens.

Tensors stay on their device; nothing here waits for it.
"""

import torch

TOP = 20
LOWEST = -1e30  # in place of minus infinity where it is multiplied by a probability of 0
Measured = dict[str, torch.Tensor]


def of_rows(name: str, scores: torch.Tensor, tokens: torch.Tensor, top: int = TOP) -> Measured:
    """Of scores [N, V], logits or log-probabilities: `name.top` [N, top] and `name.logprobs`, `name.rest` and
    `name.entropy` [N] (nats), `name.among` [N], the number of tokens that no processor has removed, and
    `name.of`, the log-probabilities of tokens [N, M].
    """
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
