"""SCMoE: a mixture of experts against itself, routed to experts that it did not choose.

Shi et al. (2024), Unchosen Experts Can Contribute Too. The weak view has the same weights, but its own keys
and values, since its states differ in every layer. Random routing, which the paper tries too, is not
implemented.
"""

from collections.abc import Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.models.expert_routing import Routing, Seen, can_be_rerouted, rerouted, routers, watched
from decoders.parameters import integers, real
from decoders.registry import strategy
from decoders.sampling.contrastive.contrast_algebra import amplified
from decoders.sampling.contrastive.contrast_loop import MIX, PLAUSIBLE, badge, take
from decoders.sampling.sampling_parameters import GREEDY
from decoders.trace.scores import ScoreName

WEAK = ScoreName.WEAK_EXPERTS


class OtherRouting:
    """A scorer of the lane's own tree whose model sends tokens to other experts; see `engine.Scorer`."""

    counts_as = "target"

    def __init__(self, lane: Lane, routing: Routing):
        engine = lane.models["target"].engine
        self.routing, self.twin = routing, rerouted(engine.model, routing)
        self.scorer = type(engine)(self.twin).attach(lane.tree)

    @property
    def work(self) -> Work:
        """What the last call of `score` computed."""
        self.scorer.work.scope = str(self.routing)
        return self.scorer.work

    @property
    def used(self) -> int:
        """As `engine.Scorer.used`."""
        return self.scorer.used

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [N, V] after each node."""
        return self.scorer.score(nodes, hidden)

    def forget(self, nodes: list[int]) -> None:
        """As `engine.Scorer.forget`."""
        self.scorer.forget(nodes)

    def release(self, nodes: list[int]) -> None:
        """As `engine.Scorer.release`."""
        self.scorer.release(nodes)

    def close(self) -> None:
        """As `engine.Scorer.close`."""
        self.scorer.close()


def routing_of(parameters: dict) -> Routing:
    """How the weak view is routed."""
    return Routing(tuple(parameters["ranks"]), parameters["mass"])


def suits(parameters: dict, target) -> str | None:
    """Why the target's tokens cannot be routed to other experts, as a message; None if they can."""
    model = target.engine.model
    if not can_be_rerouted(model):
        return (
            f"{target.name!r} has no experts to choose from; choose llama-tiny-moe as target, or another "
            "mixture of experts such as Mixtral."
        )
    ranks, count = parameters["ranks"], min(r.num_experts for r in routers(model))
    if max(ranks) >= count or len(set(ranks)) < len(ranks):
        return f"ranks must be different whole numbers below {count}, the number of experts in a layer."
    return None


def record_experts(lane: Lane, name: str, seen: list[Seen]) -> None:
    """Records which experts each layer chose for the token at the lane's tip, as scores of that node."""
    for layer, one in enumerate(seen, 1):
        weights = {e + 1: weight for e, weight in one.weights.items()}
        share = float(one.probs[list(one.weights)].sum())
        level, experts = f"layer {layer}", len(one.probs)
        lane.record_table(lane.tip, name, share, weights, "expert", level=level, number=layer, of=experts)


def routed_row(lane: Lane, role: str, model: torch.nn.Module, name: str) -> torch.Tensor:
    """The row [1, V] after the lane's tip; records the experts that read the tip under `name`."""
    with lane.undivided(), watched(routers(model)) as seen:
        # hidden=True, since a row cached by another lane does not say which experts made it
        row = lane.score([lane.tip], role=role, hidden=True)
    record_experts(lane, name, seen)
    return row


def divergence(p: torch.Tensor, q: torch.Tensor) -> float:
    """KL(p || q) in nats of two rows of logits [1, V]."""
    p, q = log_softmax(p)[0], log_softmax(q)[0]
    return float((p.exp() * (p - q)).nansum())


@strategy(
    name="scmoe",
    title="SCMoE",
    family="sampling",
    takes_memory=False,
    parameters=(
        real("beta", 0.5, "Weight of the weak view against the strong one.", low=0.0, high=10.0),
        real(
            "alpha",
            0.1,
            "Tokens below this share of the strong view's top probability are left out; 0 keeps all.",
            low=0.0,
            high=1.0,
        ),
        integers(
            "ranks",
            [2],
            "The weak view's experts by the router's order, from 0, the most likely; where two are active, 2 "
            "is the first that was not chosen.",
            low=0,
            high=1023,
        ),
        real(
            "mass",
            0.0,
            "Above 0: instead of ranks, the smallest set of most likely experts with this total probability.",
            low=0.0,
            high=1.0,
        ),
        *GREEDY,
    ),
    papers=("unchosen-experts-can-contribute-too",),
    view="experts",
    badge=badge,
    parts=lambda parameters: [MIX, PLAUSIBLE],
    reads=lambda parameters: {"target": {Capability.WEIGHTS}},
    suits=suits,
)
def scmoe(lane: Lane) -> Iterator[None]:
    """Contrasts a mixture of experts with itself: its chosen experts against one it left out.

    1. The strong view `z_s` is the unchanged model: each layer routes a token to its most likely experts.
    2. The weak view `z_w` has the same weights, but each layer routes the token to the expert of rank 2, the
       first that was not chosen. It has keys and values of its own.
    3. Only tokens with `p_s >= alpha max p_s` stay, and are scored `(1 + beta) z_s - beta z_w`.
    4. Processors and the draw, or the argmax, are applied to these scores. The token is appended to both
       views.

    Nothing is trained, and no second model is needed. Each token takes two forwards, or one at beta 0.
    """
    contrast, model = amplified(lane.parameters["beta"], lane.parameters["alpha"]), lane.models["target"]
    compared = contrast.weights[1] != 0.0
    if compared:
        lane.scorers[WEAK] = OtherRouting(lane, routing_of(lane.parameters))
    while lane.more:
        strong, others = routed_row(lane, "target", model.engine.model, ScoreName.STRONG_EXPERTS), []
        if compared:
            weak = routed_row(lane, WEAK, lane.scorers[WEAK].twin, WEAK)
            lane.record_measure(lane.tip, ScoreName.DIVERGENCE, divergence(strong, weak))
            others = [(str(lane.scorers[WEAK].routing), weak)]
        if take(lane, contrast, strong, others) is None:
            return
        yield
