"""Mirostat: sampling that keeps the surprise of its tokens near a target by feedback control.

Basu et al. (2020), as in "A Thorough Examination of Decoding Methods in the Era of LLMs" (2024), item 9;
version 2 is the authors' simpler form, which estimates nothing. transformers implements neither version.
"""

import math
from collections.abc import Iterator

import torch

from decoders.lane import Lane
from decoders.logits.distributions import log_softmax, probabilities
from decoders.parameters import choice, real
from decoders.registry import strategy
from decoders.sampling.next_token import NOTHING_LEFT, propose_drawn
from decoders.sampling.sampling_parameters import PENALTIES
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

RANKS = 100  # the exponent is estimated from this many of the most likely tokens


def exponent(p: torch.Tensor) -> float:
    """Zipf's exponent s of probabilities [V], most likely first, by least squares over the top ranks."""
    top = p[: min(RANKS, len(p))].clamp(min=1e-300).log()
    drops = (top[:-1] - top[1:]).clamp(min=0.0)  # b_i
    ranks = torch.arange(1, len(top), dtype=torch.float64, device=p.device)
    gaps = ((ranks + 1) / ranks).log()  # t_i
    return float((drops * gaps).sum() / (gaps * gaps).sum())


def cutoff(s: float, mu: float, vocabulary: int) -> float:
    """The number k of most likely tokens to keep of a Zipf distribution with exponent s so that the surprise
    stays below `mu` bits; all but one where the formula fails.
    """
    try:
        k = ((s - 1) * 2.0**mu / (1 - vocabulary ** (1 - s))) ** (1 / s)
    except (ZeroDivisionError, OverflowError):
        return float(vocabulary - 1)
    usable = isinstance(k, float) and math.isfinite(k)
    return k if usable else float(vocabulary - 1)


def kept(p: torch.Tensor, mu: float, version: str) -> int:
    """How many tokens to keep, given probabilities [V] sorted most likely first; at least one."""
    if version == "2":
        return max(1, int((-p.log2() <= mu).sum()))
    k = cutoff(exponent(p), mu, len(p))
    return max(1, min(len(p), round(min(k, len(p))) + 1))


@strategy(
    name="mirostat",
    title="Mirostat",
    family="sampling",
    parameters=(
        real("tau", 3.0, "The target surprise in bits.", low=0.1, high=20.0),
        real("rate", 1.0, "How fast the limit adapts; the authors use 0.1 for version 2.", low=0.0, high=2.0),
        choice("version", "1", "1 estimates the exponent of Zipf's law, 2 does not.", ("1", "2")),
        *PENALTIES,
    ),
    view="sampler",
    badge=lambda parameters: "sampled",
    parts=lambda parameters: [
        Part("truncation", "surprise limit", "Rises after expected tokens, falls after surprising ones.")
    ],
)
def mirostat(lane: Lane) -> Iterator[None]:
    """Adapts the truncation so that the mean surprise of the text stays near tau bits.

    The limit mu begins at 2 tau. At every position:

    1. Version 1 assumes a Zipf distribution `p_(i) ~ i^-s`, estimates s from the 100 most likely tokens,
       and keeps as many as leave the distribution's surprise below mu. Version 2 keeps the tokens
       with a surprise of at most mu.
    2. One of them is drawn. Its surprise `S = -log2 p(x)` is that under the model itself.
    3. `mu <- mu - rate (S - tau)`: after a surprising token fewer tokens are kept, after an expected one
       more.

    Penalties and forbidden words apply first; the distribution and the surprise are those after them.
    """
    tau, rate = lane.parameters["tau"], lane.parameters["rate"]
    mu = 2 * tau
    while lane.more:
        logits = lane.score([lane.tip])  # [1, V]
        target = lane.distribution([lane.tip], logits)[0]
        processed = lane.process(logits, [lane.tip], record=True)
        if not processed.isfinite().any():
            lane.ended_by = NOTHING_LEFT
            return
        p, order = probabilities(processed)[0].sort(descending=True, stable=True)  # [V]
        keep = kept(p[p > 0], mu, lane.parameters["version"])
        left = torch.full_like(logits, -math.inf)
        left[0, order[:keep]] = processed[0, order[:keep]]
        offered = lane.distribution([lane.tip], left, "processed", f"mu {mu:.2f} bits: {keep} kept")[0]
        node = propose_drawn(lane, probabilities(left)[0], offered)
        token = lane.tree.tokens[node]
        logprob, surprise = float(target[token]), -float(log_softmax(processed)[0, token]) / math.log(2)
        lane.record_measure(node, ScoreName.MIROSTAT, mu, kept=keep, surprise=surprise)
        mu -= rate * (surprise - tau)
        lane.commit([node], [logprob])
        yield
