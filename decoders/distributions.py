"""From logits to distributions: processors, probabilities, entropies, residuals. Knows tensors, no models and
no tree.

Log-probabilities are in nats. Processors are transformers' own classes in the order in which `generate`
builds them.
"""

from collections.abc import Callable, Iterable

import torch
from transformers.generation import logits_process

TOP_K = 8  # tokens that a Distribution event names; the rest is one number


def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities [N, V] of logits [N, V]: float32, or float64 if the logits are."""
    return torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """Probabilities [N, V] in float64, the precision in which verifiers compare and subtract them."""
    return torch.softmax(logits.double(), dim=-1)


def one_hot(logits: torch.Tensor) -> torch.Tensor:
    """Probabilities [N, V] in float64 at temperature 0: all on the argmax, ties to the smaller token id."""
    likeliest = logits.argmax(dim=-1, keepdim=True)
    return torch.zeros(logits.shape, dtype=torch.float64, device=logits.device).scatter_(-1, likeliest, 1.0)


def summarise(logprobs: torch.Tensor, top_k: int = TOP_K) -> list[tuple[list[list[float]], float, float]]:
    """For each row of logprobs [N, V]: (top [token, logprob] pairs, mass left out, entropy in nats)."""
    top = logprobs.topk(min(top_k, logprobs.shape[-1]), dim=-1)
    # not torch.special.entr, which takes the logarithms again; removed tokens (-inf) count as 0
    entropy = (0.0 - (logprobs.exp() * logprobs.clamp(min=-1e4)).sum(-1)).tolist()
    rest = (1.0 - top.values.exp().sum(-1)).clamp(min=0.0).tolist()
    rows = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    pairs = [[[i, v] for i, v in zip(ids, vals, strict=True) if v > -1e30] for ids, vals in rows]
    return list(zip(pairs, rest, entropy, strict=True))


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor | None:
    """norm(max(p - q, 0)) over [V] in float64, or None if nothing is left (p = q up to rounding)."""
    left = (p.double() - q.double()).clamp(min=0.0)
    total = left.sum()
    return left / total if total > 0 else None


def acceptance(p: float, q: float) -> float:
    """min(1, p / q) without a division by zero: accept iff u * q < p (Leviathan et al. 2023, algorithm 1)."""
    if p <= 0.0:
        return 0.0
    return 1.0 if p >= q else p / q


Processors = Callable[[torch.Tensor, Iterable[list[int]]], torch.Tensor]


def processors(parameters: dict, vocabulary: int) -> Processors | None:
    """The processor stack that `parameters` (GenerationConfig names) ask for, or None if it would change
    nothing.

    The returned function maps logits [N, V] and the N token paths to processed logits [N, V]. Removed tokens
    are -inf. Order as in transformers' `_get_logits_processor`: repetition penalty, n-grams, temperature,
    top-k, top-p, min-p, typical, epsilon, eta. Temperature 0 stands for greedy and is not a division: it
    leaves the logits alone here.
    """
    get = parameters.get
    with_history, plain = [], []
    if get("repetition_penalty", 1.0) != 1.0:
        with_history.append(logits_process.RepetitionPenaltyLogitsProcessor(get("repetition_penalty")))
    if get("no_repeat_ngram_size", 0) > 0:
        with_history.append(logits_process.NoRepeatNGramLogitsProcessor(get("no_repeat_ngram_size")))
    if get("temperature", 1.0) not in (0.0, 1.0):
        plain.append(logits_process.TemperatureLogitsWarper(float(get("temperature"))))
    if get("temperature", 1.0) != 0.0:
        if get("top_k", 0) > 0:
            plain.append(logits_process.TopKLogitsWarper(min(get("top_k"), vocabulary)))
        if get("top_p", 1.0) < 1.0:
            plain.append(logits_process.TopPLogitsWarper(float(get("top_p"))))
        if get("min_p", 0.0) > 0.0:
            plain.append(logits_process.MinPLogitsWarper(float(get("min_p"))))
        if get("typical_p", 1.0) < 1.0:
            plain.append(logits_process.TypicalLogitsWarper(float(get("typical_p"))))
        if get("epsilon_cutoff", 0.0) > 0.0:
            plain.append(logits_process.EpsilonLogitsWarper(float(get("epsilon_cutoff"))))
        if get("eta_cutoff", 0.0) > 0.0:
            plain.append(logits_process.EtaLogitsWarper(float(get("eta_cutoff")), device="cpu"))
    if not with_history and not plain:
        return None

    def process(logits: torch.Tensor, paths: Iterable[list[int]]) -> torch.Tensor:
        scores = logits.clone()
        for row, path in enumerate(paths if with_history else []):  # read only where it matters
            ids = torch.tensor([path], device=logits.device)
            for processor in with_history:
                scores[row : row + 1] = processor(ids, scores[row : row + 1])
        for processor in plain:
            scores = processor(None, scores)
        return scores

    return process
