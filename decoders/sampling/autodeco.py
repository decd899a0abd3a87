"""AutoDeco: two small trained heads set, before every token, the temperature and top-p that it is drawn with.

The heads and their loss are in heads/scorers/autodeco.py. The End of Manual Decoding: Towards Truly
End-to-End Language Models (2025).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from transformers.generation.logits_process import TopPLogitsWarper

from decoders.heads.scorers.autodeco import HIGHEST, AutoDeco
from decoders.lane import Lane
from decoders.logits.distributions import entropies, probabilities
from decoders.parameters import choice, real
from decoders.registry import strategy
from decoders.sampling.next_token import propose_drawn
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

BOTH, TEMPERATURE, TOP_P, NEITHER = "both", "temperature", "top_p", "neither"
NO_HEADS = (
    "No temperature and top-p heads come with the project for the target {!r}: every token is drawn with "
    "temperature {:g} and top_p {:g}."
)


@dataclass(frozen=True)
class Settings:
    """The settings with which the next token is drawn."""

    temperature: float
    top_p: float


def predicted(lane: Lane, heads: AutoDeco | None, logits: torch.Tensor) -> Settings:
    """The settings that the heads predict after the lane's tip, from its row `logits` [1, V]; the parameters
    give those that the heads do not predict.
    """
    given = lane.parameters
    if heads is None or given["predict"] == NEITHER:
        return Settings(given["temperature"], given["top_p"])
    t, p = heads.scores(lane.scorers["target"].hidden(lane.tip), logits[0])
    return Settings(
        given["temperature"] if given["predict"] == TOP_P or t is None else t,
        given["top_p"] if given["predict"] == TEMPERATURE or p is None else p,
    )


def shaped(lane: Lane, logits: torch.Tensor, settings: Settings) -> torch.Tensor:
    """The row [1, V] at that temperature and top-p; records the distribution."""
    t, p = settings.temperature, settings.top_p
    heated = logits if t == 1.0 else logits / t
    lane.distribution([lane.tip], heated, "processed", f"temperature {t:.2f}")
    left = heated if p == 1.0 else TopPLogitsWarper(p)(None, heated)
    lane.distribution([lane.tip], left, "processed", f"top_p {p:.2f}")
    return left


def taken(lane: Lane, logits: torch.Tensor, target: torch.Tensor, settings: Settings) -> int:
    """Draws the next token, or takes the most likely one at temperature 0; returns its node. target [V]: the
    model's own log-probabilities.
    """
    if settings.temperature == 0.0:
        token = int(logits[0].argmax())
        return lane.propose(lane.tip, token, float(target[token]))
    left = shaped(lane, logits, settings)
    probs = probabilities(left)[0]
    node = propose_drawn(lane, probs, left[0].log_softmax(-1))
    numbers = {"entropy": float(entropies(target)), "kept": float((probs > 0).sum())}
    lane.record_measure(node, ScoreName.TEMPERATURE, settings.temperature, scale=HIGHEST, **numbers)
    lane.record_measure(node, ScoreName.TOP_P, settings.top_p, scale=1.0, **numbers)
    return node


@strategy(
    name="autodeco",
    title="AutoDeco",
    family="sampling",
    papers=("the-end-of-manual-decoding",),
    parameters=(
        choice(
            "predict",
            BOTH,
            "Which settings the heads choose; the others are used as entered.",
            (BOTH, TEMPERATURE, TOP_P, NEITHER),
        ),
        real("temperature", 1.0, "Used where the heads do not choose it; 0 is greedy.", low=0.0, high=100.0),
        real("top_p", 1.0, "Used where the heads do not choose it; 1 keeps all tokens.", low=0.0, high=1.0),
    ),
    view="values_per_token",
    badge=lambda parameters: (
        "equal to generate"
        if parameters["temperature"] == 0.0 and parameters["predict"] in (TOP_P, NEITHER)
        else "sampled"
    ),
    parts=lambda parameters: [
        Part("heads", "temperature and top-p", "Two trained networks read the state before each token."),
        Part(
            "truncation",
            "top-p",
            "Draws from the smallest set of most likely tokens with the predicted mass.",
        ),
    ],
)
def autodeco(lane: Lane) -> Iterator[None]:
    """Trained heads choose the temperature and the top-p of every token.

    Two networks with one hidden layer each read the model's last hidden state h, from which the next logits z
    are computed.

    1. `T = 2 σ(f(h))`, between 0 and 2.
    2. `P = σ(g(h, T, largest p, entropy, variance, mass of the top 5))`; the last four are statistics of
       `softmax(z / T)`.
    3. The token is drawn from `softmax(z / T)`, truncated to the smallest set of most likely tokens with mass
       P.

    The heads were trained only on the cross-entropy of the next token, at temperature T and through a soft
    top-p; each token is weighted by the probability that the model gives it. The soft top-p also fades the
    token at which the cumulative probability crosses P, while the hard top-p keeps it: P was learned as a
    mass that the kept tokens stay below. If the model has no heads, temperature and top_p are used as
    entered. The same holds for a head that its authors did not train.
    """
    heads = lane.models["target"].heads.get("autodeco")
    if heads is None and lane.parameters["predict"] != NEITHER:
        given = lane.parameters
        lane.note(NO_HEADS.format(lane.models["target"].name, given["temperature"], given["top_p"]))
    while lane.more:
        logits = lane.score([lane.tip], hidden=heads is not None)  # [1, V]
        target = lane.distribution([lane.tip], logits)[0]
        node = taken(lane, logits, target, predicted(lane, heads, logits))
        lane.commit([node], [float(target[lane.tree.tokens[node]])])
        yield
