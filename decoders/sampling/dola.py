"""DoLa: the last layer's row against that of the earlier layer which differs from it the most.

Chuang et al. (2023), Decoding by Contrasting Layers. The layer is chosen anew for each token; candidates are
named as `dola_layers` in transformers. An early row is the model's own last norm and head on the state there.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from decoders.distributions import log_softmax
from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.sampling.contrast import ratio
from decoders.sampling.shaping import GREEDY as SHAPING
from decoders.sampling.weighed import MIX, PLAUSIBLE, VIEWS, badge, take

GREEDY = tuple(replace(p, default=1.2) if p.name == "repetition_penalty" else p for p in SHAPING)
BUCKETS = ("low", "high", "all")


def candidates(bucket: str, layers: int, tied: bool) -> list[int]:
    """After how many of `layers` layers the text may be read early: every second of a half, or of all. 0 is
    the embeddings, which say the last token again where the head is tied to them: then it begins at 2.
    """
    first = min(2, layers - 1) if tied else 0
    start, stop = {"low": (first, layers // 2), "high": (layers // 2, layers), "all": (first, layers)}[bucket]
    return list(range(start, stop, 2)) or [start]


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats between log-probabilities p [V] and each row of q [N, V]: [N]."""
    middle = torch.logaddexp(p, q) - math.log(2)  # [N, V]
    halves = [(a.exp() * (a - middle)).nansum(-1) for a in (p.expand_as(q), q)]
    return (halves[0] + halves[1]) / 2


def suits(parameters: dict, target) -> str | None:
    """A sentence if the target's early layers cannot be read."""
    return target.engine.parts_problem


@strategy(
    name="dola",
    title="DoLa",
    family="sampling",
    parameters=(
        Parameter(
            "dola_layers", "choice", "low",
            "Which early layers may be subtracted: every second of the lower half, of the upper, or of all.",
            choices=BUCKETS,
        ),
        Parameter(
            "alpha", "float", 0.1,
            "Tokens with less than this share of the last layer's likeliest are left out; 0 keeps all.",
            low=0.0, high=1.0,
        ),
        *GREEDY,
    ),
    views=VIEWS,
    badge=badge,
    parts=lambda parameters: [MIX, PLAUSIBLE],
    suits=suits,
)  # fmt: skip
def dola(lane: Lane) -> Iterator[None]:
    """What the later layers add to the earlier ones: the last layer's row against an early one.

    1. One forward leaves the states after every layer. The head makes a row of each candidate's, `q_j`.
    2. The candidate farthest from the last layer's row p is taken, by the Jensen-Shannon divergence.
    3. Only tokens with `p >= alpha max p` stay, and are scored `log p - log q_j`.
    4. Processors and the draw, or the argmax, work on these scores.

    The scores favour tokens that occurred before, so these are penalised as in the paper (1.2). A head reads
    best what it was trained to read: where a model was trained with early exits, their rows are close to the
    last one, and there is less to subtract. It takes no forward more than greedy decoding.
    """
    scorer, engine = lane.scorers["target"], lane.models["target"].engine
    scorer.taps = True
    tied = bool(engine.model.config.get_text_config().tie_word_embeddings)
    layers = candidates(lane.parameters["dola_layers"], engine.layer_count, tied)
    contrast = ratio(lane.parameters["alpha"])
    while lane.more:
        # hidden, since a row that another lane left has no taps
        wanted = lane.score([lane.tip], hidden=True)  # [1, V]
        early = engine.blocks.exit_logits(scorer.streams(lane.tip)[layers])  # [N, V]
        apart = divergence(log_softmax(wanted)[0], log_softmax(early))
        farthest = int(apart.argmax())
        title = f"after {layers[farthest]} of {engine.layer_count} layers"
        node = take(lane, contrast, wanted, [(title, early[farthest : farthest + 1])])
        if node is None:
            return
        said = {f"after {layer}": float(x) for layer, x in zip(layers, apart, strict=True)}
        lane.rank(node, "divergence", float(apart[farthest]), **said)
        yield
