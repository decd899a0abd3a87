"""From logits to distributions: processors, probabilities, entropies, residuals. Knows tensors, no models and
no tree.

Log-probabilities are in nats. Processors are transformers' own classes in the order in which `generate`
builds them.
"""

from collections.abc import Callable, Iterable

import torch
from transformers.generation import logits_process

from decoders.stages import WITH_HISTORY, stages

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


Processors = Callable[..., torch.Tensor]
# How a stage's processor is made of its parameter's value and the vocabulary.
MAKERS: dict[str, Callable] = {
    "repetition_penalty": lambda value, v: logits_process.RepetitionPenaltyLogitsProcessor(value),
    "no_repeat_ngram_size": lambda value, v: logits_process.NoRepeatNGramLogitsProcessor(value),
    "temperature": lambda value, v: logits_process.TemperatureLogitsWarper(float(value)),
    "top_k": lambda value, v: logits_process.TopKLogitsWarper(min(value, v)),
    "top_p": lambda value, v: logits_process.TopPLogitsWarper(float(value)),
    "min_p": lambda value, v: logits_process.MinPLogitsWarper(float(value)),
    "typical_p": lambda value, v: logits_process.TypicalLogitsWarper(float(value)),
    "epsilon_cutoff": lambda value, v: logits_process.EpsilonLogitsWarper(float(value)),
    "eta_cutoff": lambda value, v: logits_process.EtaLogitsWarper(float(value), device="cpu"),
}


def processors(parameters: dict, vocabulary: int) -> Processors | None:
    """The processor stack that `parameters` (GenerationConfig names) ask for, or None if it would change
    nothing.

    The returned function maps logits [N, V] and the N token paths to processed logits [N, V]; removed tokens
    are -inf. `hear(name, scores)`, if given, is told of every stage but the last. See stages.py for the
    order.
    """
    names = stages(parameters)
    if not names:
        return None
    made = {name: MAKERS[name](parameters[name], vocabulary) for name in names}

    def process(
        logits: torch.Tensor,
        paths: Iterable[list[int]],
        hear: Callable[[str, torch.Tensor], None] | None = None,
    ) -> torch.Tensor:
        scores, texts = logits.clone(), None
        for name, processor in made.items():
            if name in WITH_HISTORY:  # paths are read only where it matters
                texts = list(paths) if texts is None else texts
                for row, path in enumerate(texts):
                    ids = torch.tensor([path], device=logits.device)
                    scores[row : row + 1] = processor(ids, scores[row : row + 1])
            else:
                scores = processor(None, scores)
            if hear is not None and name != names[-1]:
                hear(name, scores)
        return scores

    return process
