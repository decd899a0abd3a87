"""DoLa: the last layer's distribution against that of the earlier layer that differs most from it.

Chuang et al. (2023), Decoding by Contrasting Layers. The layer is chosen again for each token; candidates are
named as `dola_layers` in transformers. By default rows and divergence are those of the authors' code, which
transformers adopted; the paper's own definitions are options.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, free_text, real, switch
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import ratio
from decoders.sampling.contrastive.contrast_loop import MIX, PLAUSIBLE, badge, take
from decoders.sampling.sampling_parameters import GREEDY as SHAPING
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

GREEDY = tuple(replace(p, default=1.2) if p.name == "repetition_penalty" else p for p in SHAPING)
BUCKETS = ("low", "high", "all")
DEEP, HALF = 40, 20  # in models of more than DEEP layers a half is the outermost HALF
LISTED = "listed"
DIVERGENCES = {
    "reversed": "Half of KL(m || p) + KL(m || q), with m the mean of both distributions, as in the "
    "authors' code.",
    "Jensen-Shannon": "Half of KL(p || m) + KL(q || m), with m the mean of both distributions, as in the "
    "paper.",
}


def candidates(bucket: str, layers: int, tied: bool) -> list[int]:
    """The candidate layers for a contrast, as counts of layers run: every second one of a half, or of all. 0
    is the embeddings; with a tied head these predict the last token again, so candidates begin at 2. Above 40
    layers the halves are the lowest and the highest 20.
    """
    first = min(2, layers - 1) if tied else 0
    half = layers // 2 if layers <= DEEP else HALF
    above = layers // 2 if layers <= DEEP else layers - HALF
    start, stop = {"low": (first, half), "high": (above, layers), "all": (first, layers)}[bucket]
    return list(range(start, stop, 2)) or [start]


def typed_layers(parameters: dict) -> list[int]:
    """The layers that were listed. Raises ValueError if one is not an integer."""
    return [int(layer) for layer in parameters["layers"].split(",") if layer.strip()]


def divergence(p: torch.Tensor, q: torch.Tensor, kind: str = "Jensen-Shannon") -> torch.Tensor:
    """The divergence [N] in nats of log-probabilities p [V] from each row of q [N, V]; see DIVERGENCES."""
    middle = torch.logaddexp(p, q) - math.log(2)  # [N, V]
    if kind == "reversed":
        mean = middle.exp()
        # tokens of probability 0 in both rows contribute nothing
        halves = [torch.where(mean > 0, mean * (middle - a), 0.0).sum(-1) for a in (p, q)]
    else:
        halves = [(a.exp() * (a - middle)).nansum(-1) for a in (p.expand_as(q), q)]
    return (halves[0] + halves[1]) / 2


def unusable(parameters: dict) -> str | None:
    """The sentence to show if the listed layers cannot be read as numbers."""
    if parameters["dola_layers"] != LISTED:
        return None
    try:
        return None if typed_layers(parameters) else "List the layers to subtract, such as 0, 2, 4."
    except ValueError:
        return "layers must be whole numbers separated by commas, such as 0, 2, 4."


def suits(parameters: dict, target) -> str | None:
    """A sentence if the target has none of the early layers that are listed."""
    last = target.engine.layer_count - 1
    if parameters["dola_layers"] == LISTED and not all(0 <= n <= last for n in typed_layers(parameters)):
        return f"The target can be read early after 0 to {last} layers; list some of these."
    return None


@strategy(
    name="dola",
    title="DoLa",
    family="sampling",
    parameters=(
        choice(
            "dola_layers",
            "low",
            "Which early layers may be subtracted: every second of a half, or of all, or those listed.",
            (*BUCKETS, LISTED),
        ),
        free_text("layers", "", "If listed: after how many layers, such as 0, 2, 4."),
        switch(
            "early_norm",
            False,
            "Early states pass the model's last norm before its head; the authors' code leaves it out.",
        ),
        choice(
            "divergence",
            "reversed",
            "How the distance between a layer's distribution and the last one is measured.",
            DIVERGENCES,
        ),
        real(
            "alpha",
            0.1,
            "Tokens below this share of the last layer's top probability are left out; 0 keeps all.",
            low=0.0,
            high=1.0,
        ),
        *GREEDY,
    ),
    view="contrast",
    badge=badge,
    parts=lambda parameters: [
        MIX,
        PLAUSIBLE,
        Part("divergence", parameters["divergence"], DIVERGENCES[parameters["divergence"]]),
    ],
    together=unusable,
    reads=lambda parameters: {"target": {Capability.LAYERS}},
    suits=suits,
)
def dola(lane: Lane) -> Iterator[None]:
    """Favours what later layers add: the last layer's logits against those of an earlier layer.

    1. One forward gives the states after every layer. The head turns those of each candidate layer into a
       distribution `q_j`; the model's last norm is applied before it only with early_norm.
    2. The candidate farthest from the last layer's distribution p is taken. The paper names the
       Jensen-Shannon divergence; the authors' code, and transformers after it, reverse both of its halves,
       which weights what one distribution excludes far more. Both are available.
    3. Only tokens with `p >= alpha max p` stay, and are scored `log p - log q_j`.
    4. Processors and the draw, or the argmax, are applied to these scores.

    With early_norm and Jensen-Shannon this is the method as the paper describes it. transformers has no
    choice "all" for the layers. The scores favour tokens that occurred before, so the repetition penalty is
    1.2 by default, as in the paper. A head works best on the states that it was trained on: if a model was
    trained with early exits, its early distributions are close to the last one, and there is less to
    subtract. DoLa takes no more forwards than greedy decoding.
    """
    scorer, engine = lane.scorers["target"], lane.models["target"].engine
    scorer.taps = True
    tied = bool(engine.model.config.get_text_config().tie_word_embeddings)
    given, blocks = lane.parameters, engine.blocks
    bucket = given["dola_layers"]
    listed = bucket == LISTED
    layers = typed_layers(given) if listed else candidates(bucket, engine.layer_count, tied)
    read = blocks.exit_logits if given["early_norm"] else blocks.head
    contrast = ratio(given["alpha"])
    while lane.more:
        # hidden=True, since a row cached by another lane has no streams
        wanted = lane.score([lane.tip], hidden=True)  # [1, V]
        early = read(scorer.streams(lane.tip)[layers])  # [N, V]
        apart = divergence(log_softmax(wanted)[0], log_softmax(early), given["divergence"])
        farthest = int(apart.argmax())
        title = f"after {layers[farthest]} of {engine.layer_count} layers"
        node = take(lane, contrast, wanted, [(title, early[farthest : farthest + 1])])
        if node is None:
            return
        divergences = {f"after {layer}": float(x) for layer, x in zip(layers, apart, strict=True)}
        lane.record_measure(node, ScoreName.DIVERGENCE, float(apart[farthest]), **divergences)
        yield
