"""From logits to distributions: processors, probabilities, entropies, residuals.

Log-probabilities are in nats. Processors are transformers' own classes in the order in which `generate`
builds them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from transformers.generation import logits_process

from decoders.logits import token_constraints, watermark
from decoders.logits.more_processors import BREAKERS, Coin, CountPenalty, Dry, TopNSigma, Xtc
from decoders.logits.processor_order import OF_ENTROPY, WITH_HISTORY, stages
from decoders.refusal import Refusal

TOP_K = 8  # tokens that a Distribution event lists; the others are one mass


MIN_LOGPROB = -1e4  # stands for log 0, since JSON has no infinity


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


def entropies(logprobs: torch.Tensor) -> torch.Tensor:
    """Nats [...] of rows of logprobs [..., V]; removed tokens (-inf) count as 0."""
    # not torch.special.entr, which takes the logarithms again
    return 0.0 - (logprobs.exp() * logprobs.clamp(min=-1e4)).sum(-1)


def summarise(logprobs: torch.Tensor, top_k: int = TOP_K) -> list[tuple[list[list[float]], float, float]]:
    """For each row of logprobs [N, V]: (top [token, logprob] pairs, mass left out, entropy in nats)."""
    count = min(top_k, logprobs.shape[-1])
    top = logprobs.topk(count, dim=-1)
    rest = (1.0 - top.values.exp().sum(-1, keepdim=True)).clamp(min=0.0)
    parts = (top.indices, top.values, rest, entropies(logprobs)[:, None])
    made = []
    for row in fetched(*parts):
        pairs = zip(map(int, row[:count]), row[count : 2 * count], strict=True)
        made.append(([[i, v] for i, v in pairs if v > -1e30], *row[2 * count :]))
    return made


def fetched(*parts: torch.Tensor) -> list:
    """The tensors' rows concatenated as Python lists of numbers, with a single device synchronization.
    Integers must be below 2**24.
    """
    exact = [part if part.dtype == torch.float64 else part.float() for part in parts]
    return torch.cat(exact, -1).tolist()


def of_token(token: torch.Tensor, *rows: torch.Tensor) -> tuple[int, list[float]]:
    """(a token [1] as an int, its entry in each of `rows` [V]), with a single device synchronization."""
    chosen, *values = fetched(token, *(row[token] for row in rows))
    return int(chosen), values


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor | None:
    """norm(max(p - q, 0)) over [V] in float64, or None if nothing is left (p = q up to rounding)."""
    left = (p.double() - q.double()).clamp(min=0.0)
    total = left.sum()
    return left / total if total > 0 else None


def without(weights: torch.Tensor, token: int) -> torch.Tensor:
    """A distribution [V] with `token` struck out, normalised again; all zero if nothing else had mass."""
    rest = weights.clone()
    rest[token] = 0.0
    total = rest.sum()
    return rest / total if total > 0 else rest


Processors = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class ProcessorContext:
    """What a processor may need besides logits and texts."""

    vocabulary: int
    eos: tuple[int, ...] = ()
    prompt: int = 0  # tokens of the prompt
    cut: token_constraints.Cut | None = None  # tokenizes typed text; None if the model cannot
    device: torch.device | str = "cpu"  # of the logits
    length: int = 0  # maximum of prompt and text in tokens, 0 for no limit
    keep: int = 1  # minimum number of tokens that truncations keep
    coin: Coin | None = None  # random decisions
    bytes_of: Callable[[int], bytes] | None = None  # of a token; None where texts are only numbers

    @property
    def ends(self) -> torch.Tensor:
        return torch.tensor(self.eos, dtype=torch.long, device=self.device)


# Values are words that a user types, or token ids from a model's own settings.
def _bias(value: str | list, context: ProcessorContext) -> logits_process.LogitsProcessor:
    pairs = value
    if isinstance(value, str):
        pairs = token_constraints.biases("sequence_bias", value, context.cut, context.vocabulary)
    if isinstance(pairs, list) and all(isinstance(ids, list) for ids, *_ in pairs):
        pairs = {tuple(ids): bias for ids, bias in pairs}  # older versions refuse token 0 in a list
    return logits_process.SequenceBiasLogitsProcessor(pairs)


def _bad_words(value: str | list, context: ProcessorContext) -> logits_process.LogitsProcessor:
    words = value
    if isinstance(value, str):
        words = token_constraints.sequences("bad_words_ids", value, context.cut, context.vocabulary)
    if all(len(word) == 1 and word[0] in context.eos for word in words):
        raise Refusal("bad_words_ids cannot forbid the end of the text; min_new_tokens delays it.")
    return logits_process.NoBadWordsLogitsProcessor(words, context.ends)


def _decay(value: list[float], context: ProcessorContext) -> logits_process.LogitsProcessor:
    if len(value) != 2 or value[0] != int(value[0]) or value[1] <= 0.0:
        raise Refusal(
            "exponential_decay_length_penalty must be a whole number and a factor above 0, such as 20, 1.1."
        )
    start, factor = value
    return logits_process.ExponentialDecayLengthPenalty((int(start), factor), context.ends, context.prompt)


def _tokens(name: str, value: str | list, context: ProcessorContext) -> list[int]:
    return (
        value
        if isinstance(value, list)
        else token_constraints.tokens(name, value, context.cut, context.vocabulary)
    )


def _suppress(value: str | list, context: ProcessorContext) -> logits_process.LogitsProcessor:
    tokens = _tokens("suppress_tokens", value, context)
    return logits_process.SuppressTokensLogitsProcessor(tokens, context.device)


def _begin_suppress(value: str | list, context: ProcessorContext) -> logits_process.LogitsProcessor:
    tokens = _tokens("begin_suppress_tokens", value, context)
    return logits_process.SuppressTokensAtBeginLogitsProcessor(tokens, context.prompt, context.device)


def _forced_eos(value: str | int | list, context: ProcessorContext) -> logits_process.LogitsProcessor:
    tokens = [value] if isinstance(value, int) else _tokens("forced_eos_token_id", value, context)
    return logits_process.ForcedEOSTokenLogitsProcessor(context.length, tokens, context.device)


def _forced_bos(value: str | int, context: ProcessorContext) -> logits_process.LogitsProcessor:
    tokens = [value] if isinstance(value, int) else _tokens("forced_bos_token_id", value, context)
    return logits_process.ForcedBOSTokenLogitsProcessor(tokens[0])


def _dry(parameters: dict, context: ProcessorContext) -> Dry:
    cut = context.cut
    breakers = frozenset(cut("a" + breaker)[-1] for breaker in BREAKERS) if cut else frozenset()
    allowed = parameters.get("dry_allowed_length", 2)
    return Dry(parameters["dry_multiplier"], parameters.get("dry_base", 1.75), allowed, breakers)


def _xtc(parameters: dict, context: ProcessorContext) -> Xtc:
    if context.coin is None:
        raise Refusal(
            "XTC decides at random whether it cuts, so there is no single distribution; set it to 0."
        )
    return Xtc(parameters["xtc_probability"], parameters.get("xtc_threshold", 0.1), context.eos, context.coin)


def _thinking_budget(parameters: dict, context: ProcessorContext) -> Callable:
    from decoders.logits.thinking_budget import made  # few lanes have one

    return made(parameters, context.cut, context.bytes_of)


# Stage -> builds its processor from the parameter's value.
MAKERS: dict[str, Callable] = {
    "sequence_bias": _bias,
    "repetition_penalty": lambda value, context: logits_process.RepetitionPenaltyLogitsProcessor(value),
    "frequency_penalty": lambda value, context: CountPenalty(float(value), 0.0, context.prompt),
    "presence_penalty": lambda value, context: CountPenalty(0.0, float(value), context.prompt),
    "no_repeat_ngram_size": lambda value, context: logits_process.NoRepeatNGramLogitsProcessor(value),
    "bad_words_ids": _bad_words,
    "min_length": lambda value, context: logits_process.MinLengthLogitsProcessor(
        value, context.ends, context.device
    ),
    "min_new_tokens": lambda value, context: logits_process.MinNewTokensLengthLogitsProcessor(
        context.prompt, value, context.ends, context.device
    ),
    "prefix_allowed_tokens_fn": lambda value, context: logits_process.PrefixConstrainedLogitsProcessor(
        value, 1
    ),
    "forced_bos_token_id": _forced_bos,
    "forced_eos_token_id": _forced_eos,
    "remove_invalid_values": lambda value, context: logits_process.InfNanRemoveLogitsProcessor(),
    "exponential_decay_length_penalty": _decay,
    "suppress_tokens": _suppress,
    "begin_suppress_tokens": _begin_suppress,
    "logits_processor": lambda value, context: logits_process.LogitsProcessorList(value),
    "temperature": lambda value, context: logits_process.TemperatureLogitsWarper(float(value)),
    "top_n_sigma": lambda value, context: TopNSigma(float(value)),
    "top_h": lambda value, context: logits_process.TopHLogitsWarper(float(value)),
    "top_k": lambda value, context: logits_process.TopKLogitsWarper(
        min(value, context.vocabulary), min_tokens_to_keep=context.keep
    ),
    "top_p": lambda value, context: logits_process.TopPLogitsWarper(
        float(value), min_tokens_to_keep=context.keep
    ),
    "min_p": lambda value, context: logits_process.MinPLogitsWarper(
        float(value), min_tokens_to_keep=context.keep
    ),
    "typical_p": lambda value, context: logits_process.TypicalLogitsWarper(
        float(value), min_tokens_to_keep=context.keep
    ),
    "epsilon_cutoff": lambda value, context: logits_process.EpsilonLogitsWarper(
        float(value), min_tokens_to_keep=context.keep
    ),
    "eta_cutoff": lambda value, context: logits_process.EtaLogitsWarper(
        float(value), min_tokens_to_keep=context.keep, device=context.device
    ),
    "renormalize_logits": lambda value, context: logits_process.LogitNormalization(),
}
# The same for processors with several parameters.
MAKERS_OF_SEVERAL: dict[str, Callable] = {
    "dry_multiplier": _dry,
    "thinking_budget": _thinking_budget,
    "xtc_probability": _xtc,
    "watermark_bias": lambda parameters, context: watermark.processor_of(
        parameters, context.vocabulary, context.device
    ),
}


def processors(
    parameters: dict, vocabulary: int, context: ProcessorContext | None = None
) -> Processors | None:
    """The processor stack for `parameters` (GenerationConfig names), or None if it would change nothing.

    The returned function maps logits [N, V] and the N token paths to processed logits [N, V], with -inf for
    removed tokens. It calls `on_stage(name, scores)`, if given, after every stage but the last. See
    processor_order.py for the order. Raises Refusal with one sentence for typed words that cannot be used.
    """
    names = stages(parameters)
    if not names:
        return None
    context = context or ProcessorContext(vocabulary)

    @cache
    def made(device: torch.device) -> dict[str, Any]:
        here = replace(context, device=device)
        return {
            name: MAKERS_OF_SEVERAL[name](parameters, here)
            if name in MAKERS_OF_SEVERAL
            else MAKERS[name](parameters[name], here)
            for name in names
        }

    made(torch.device("cpu"))  # so that unusable values raise now and not at the first logits

    def process(
        logits: torch.Tensor,
        paths: Iterable[list[int]],
        on_stage: Callable[[str, torch.Tensor], None] | None = None,
    ) -> torch.Tensor:
        scores, texts = logits.clone(), None
        for name, processor in made(logits.device).items():
            if name in WITH_HISTORY:  # paths are consumed only if a processor needs them
                if texts is None:
                    texts = [torch.tensor([path], device=logits.device) for path in paths]
                for row, ids in enumerate(texts):
                    scores[row : row + 1] = processor(ids, scores[row : row + 1])
            elif name in OF_ENTROPY:
                left = (scores > -torch.inf).any(-1)  # transformers raises on rows without a token
                if left.any():
                    scores[left] = processor(None, scores[left])
            else:
                scores = processor(None, scores)
            if on_stage is not None and name != names[-1]:
                on_stage(name, scores)
        return scores

    return process
