"""LANTERN: the target's probability of a token's neighbours counts as support for the token itself.

Jang et al. (2024), LANTERN, section 4. Made for image tokens, whose codebook has many similar ones; here
neighbours are tokens whose rows of the target's output embedding are near each other, which on text are often
not interchangeable. The residual after a rejection is our reading of the paper, and differs from its code.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import Pair, TokenTest, Verifier, VerifierInput
from decoders.speculative.verifiers.relaxed import Relaxed
from decoders.speculative.verifiers.walk import Place, by_rule
from decoders.trace.events import acceptance
from decoders.trace.number_format import number
from decoders.trace.reasons import Code, Reason

# tokens whose neighbours are looked up per distribution: those that the draft overrates most
MAX_LOOKED_UP = 1024
NOTHING = 1e-12  # less mass than this is rounding


class Neighbours:
    """For tokens [n] their `count` nearest others [n, count] by Euclidean distance of `rows` [V, d], nearest
    first. Results are cached.
    """

    def __init__(self, rows: torch.Tensor, count: int):
        self.rows, self.count = rows.detach().float(), min(count, rows.shape[0] - 1)
        self.known = torch.zeros(rows.shape[0], dtype=torch.bool, device=rows.device)
        self.near = torch.zeros(rows.shape[0], self.count, dtype=torch.long, device=rows.device)

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        new = tokens[~self.known[tokens]]
        if len(new):
            far = torch.cdist(self.rows[new], self.rows)  # [new, V]
            # a token is not its own neighbour
            far[torch.arange(len(new), device=far.device), new] = torch.inf
            self.near[new] = far.topk(self.count, largest=False).indices
            self.known[new] = True
        return self.near[tokens]


Near = Callable[[torch.Tensor], torch.Tensor]


def support(p: torch.Tensor, near: torch.Tensor, delta: float) -> torch.Tensor:
    """For neighbours [n, k], nearest first, which of them count [n, k]: the longest prefix of each row
    whose mass under p [V] is at most `delta`.
    """
    return p[near].cumsum(1) <= delta


@dataclass(frozen=True)
class NeighbourSupport(Relaxed):
    """At most `delta` of p's mass moves from neighbours to the drafted token: p~. It passes with min(1, p~ /
    q), at temperature 0 if p~ makes it the most likely. `near` may be None where nothing is decoded.
    """

    delta: float
    near: Near | None

    @property
    def exact_for(self) -> frozenset[str]:
        return self.fill if self.delta == 0.0 else frozenset()

    def supporters(self, p: torch.Tensor, token: int) -> torch.Tensor:
        """The neighbours of a token that count [m]."""
        ids = self.near(torch.tensor([token], device=p.device))  # [1, k]
        return ids[support(p, ids, self.delta)]

    def test(self, p: torch.Tensor, q: torch.Tensor | None, token: int, place: Place) -> TokenTest:
        counted = self.supporters(p, token)
        lifted = float(p[token] + p[counted].sum())
        numbers = {"p": float(p[token]), "count": len(counted), "lifted": lifted}
        if self.greedy:
            raised = p.clone()
            raised[token] = lifted
            accepted = int(raised.argmax()) == token
            numbers |= {"best": float(p.max()), "accepted": accepted}
            reason = Reason(Code.NEIGHBOURS_ARGMAX, numbers)
            return TokenTest(place.child, accepted, lifted, reasons=(reason,))
        q_token = float(q[token])
        probability = acceptance(lifted, q_token)
        accepted, u = place.accept(probability)
        numbers |= {"q": q_token, "probability": probability, "u": u, "accepted": bool(accepted)}
        reason = Reason(Code.NEIGHBOURS, numbers)
        return TokenTest(place.child, bool(accepted), lifted, q_token, u, (reason,))

    def residual(self, p: torch.Tensor, q: torch.Tensor | None, tried: int) -> torch.Tensor:
        """max(p~ - q, 0): the mass of the neighbours that counted now belongs to the rejected token."""
        if self.greedy:
            return p
        rest = (p - q).clamp(min=0.0)
        rest[self.supporters(p, tried)] = 0.0
        return rest if float(rest.sum()) > NOTHING else p

    def distribution(self, inputs: VerifierInput, node: int) -> torch.Tensor:
        """The sum of q's accepted part and the residual of every rejected token. If the draft overrates more
        than MAX_LOOKED_UP tokens, the others count as rejected without neighbours.
        """
        p, q = inputs.p[node], inputs.draft.q[node]
        wanted, over = (p - q).clamp(min=0.0), (q - p).clamp(min=0.0)
        tokens = over.topk(min(MAX_LOOKED_UP, len(over))).indices
        tokens = tokens[over[tokens] > 0.0]
        ids = self.near(tokens)  # [n, k]
        inside = support(p, ids, self.delta)
        lifted = p[tokens] + (p[ids] * inside).sum(1)
        refused = over.clone()  # probability that each token is drafted and rejected
        refused[tokens] = (q[tokens] - lifted).clamp(min=0.0)
        taken = wanted[ids] * inside  # [n, k]: what the residual after each token lacks
        mass = wanted.sum() - taken.sum(1)
        share = torch.where(mass > NOTHING, refused[tokens] / mass, 0.0)  # [n]
        nowhere = refused[tokens][mass <= NOTHING].sum()
        others = refused.sum() - refused[tokens].sum()
        whole = share.sum() + (others / wanted.sum() if float(others) > NOTHING else 0.0)
        weights = q - refused + wanted * whole + nowhere * p
        return weights.scatter_add(0, ids.flatten(), -(taken * share[:, None]).flatten())


def neighbour_support(delta: float, near: Near | None, temperature: float) -> Verifier:
    """The verifier for one `delta`."""
    rule = NeighbourSupport(temperature == 0.0, delta, near)
    return by_rule(
        rule,
        name="neighbours' support",
        says=f"A drafted token is credited with its nearest neighbours' probability, up to {number(delta)} "
        "in total.",
        relaxed_for=rule.fill,
        distribution=rule.distribution,
        reads=(Capability.OUTPUT_EMBEDDING,),
    )


def neighbours_of(lane: Lane, count: int) -> Near:
    """The neighbours in the output embedding of the lane's target."""
    return Neighbours(lane.models["target"].embedding, count)


def lantern_pair(parameters: dict, near: Near | None = None) -> Pair:
    """A chain from the draft model, and the relaxed rule; `near` may be None where nothing is decoded."""
    return draft_chain(parameters), neighbour_support(parameters["delta"], near, parameters["temperature"])


@draft_and_verify(
    lantern_pair,
    name="lantern",
    title="LANTERN",
    parameters=(
        real(
            "delta",
            0.1,
            "Probability mass that a token may borrow from its neighbours; 0 is lossless.",
            low=0.0,
            high=1.0,
        ),
        integer("neighbours", 50, "Number of nearest tokens that are considered.", low=1, high=1000),
        integer("num_assistant_tokens", 4, "Tokens that the draft guesses per round.", low=1, high=32),
        *GREEDY,
    ),
    papers=("lantern",),
)
def lantern(lane: Lane) -> Iterator[None]:
    """A drafted token is credited with the target's probability of similar tokens, its neighbours.

    1. The draft guesses a chain and the target scores it, as in speculative decoding.
    2. The neighbours of a guess x, nearest first in the target's output embedding, lend it their
       probability, at most delta in total: `p~(x) = p(x) + mass`.
    3. It passes with `min(1, p~(x) / q(x))`; at temperature 0 if p~ makes it the most likely token.
    4. If it fails, the token is drawn from `norm(max(p~ - q, 0))`.

    It was designed for images, where many tokens look alike. In text a neighbour is often a different word
    altogether: the lane says how far its tokens deviate. With delta 0 it is speculative decoding.
    """
    drafter, verifier = lantern_pair(lane.parameters, neighbours_of(lane, lane.parameters["neighbours"]))
    yield from rounds(lane, drafter, verifier)
