"""LANTERN: the target's probability of a token's neighbours counts as support for the token itself.

Jang et al. (2024), LANTERN, section 4. Made for image tokens, whose codebook has many similar ones; here
neighbours are tokens whose rows of the target's output embedding are near each other, which on text are often
not interchangeable. The residual after a rejection is our reading of the paper, and differs from its code.
"""

from collections.abc import Callable, Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import draft_chain
from decoders.speculative.interfaces import (
    FIXED,
    RELAXED_VIEWS,
    SAMPLED,
    WANTED_MORE,
    Drafter,
    TokenTest,
    Verification,
    Verifier,
    VerifierInput,
)
from decoders.speculative.verifiers.relaxed_walk import go_down
from decoders.strategy import Parameter
from decoders.trace.acceptance import acceptance
from decoders.trace.number_format import number

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


def neighbour_support(delta: float, near: Near | None, temperature: float) -> Verifier:
    """The verifier that moves at most `delta` of p's mass from neighbours to the drafted token: p~. It passes
    with min(1, p~ / q), at temperature 0 if p~ makes it the most likely. `near` may be None where nothing is
    decoded.
    """
    greedy = temperature == 0.0
    fill = frozenset({FIXED if greedy else SAMPLED})

    def supported(inputs: VerifierInput, node: int, token: int) -> tuple[torch.Tensor, float]:
        """The neighbours that count [m], and p~ of the token."""
        p = inputs.probs[node]
        ids = near(torch.tensor([token], device=p.device))  # [1, k]
        counted = ids[support(p, ids, delta)]
        return counted, float(p[token] + p[counted].sum())

    def rule(inputs: VerifierInput, node: int, child: int, at: tuple[int, int]) -> TokenTest:
        token = inputs.tokens[child]
        counted, lifted = supported(inputs, node, token)
        p = inputs.probs[node]
        reason_so_far = (
            f"The target gave {number(float(p[token]))}; with {len(counted)} neighbours, {number(lifted)}"
        )
        if greedy:
            raised = p.clone()
            raised[token] = lifted
            accepted = int(raised.argmax()) == token
            side = "the largest of all" if accepted else f"less than another token's {number(float(p.max()))}"
            return TokenTest(child, accepted, lifted, reason=f"{reason_so_far}, {side}.")
        q = float(inputs.draft.q[node][token])
        probability = acceptance(lifted, q)
        accepted, u = inputs.chooser.bernoulli(probability, ("accept", *at))
        alone = accepted and u is not None and u * q >= float(p[token])
        why = ", and without the neighbours it would not be." if alone else "."
        reason_so_far = (
            f"{reason_so_far}, against the draft's {number(q)}: "
            f"it is accepted with probability {number(probability)}."
        )
        verdict = "accepted" if accepted else "rejected"
        return TokenTest(child, bool(accepted), lifted, q, u, f"{reason_so_far} It was {verdict}{why}")

    def left(inputs: VerifierInput, node: int) -> torch.Tensor:
        """max(p~ - q, 0): the mass of the neighbours that counted now belongs to the rejected token."""
        counted, _ = supported(inputs, node, inputs.tokens[inputs.children(node)[0]])
        rest = (inputs.p[node] - inputs.draft.q[node]).clamp(min=0.0)
        rest[counted] = 0.0
        return rest if float(rest.sum()) > NOTHING else inputs.p[node]

    def distribution(inputs: VerifierInput, node: int) -> torch.Tensor:
        """The sum of q's accepted part and the residual of every rejected token. If the draft overrates more
        than MAX_LOOKED_UP tokens, the others count as rejected without neighbours.
        """
        p, q = inputs.p[node], inputs.draft.q[node]
        wanted, over = (p - q).clamp(min=0.0), (q - p).clamp(min=0.0)
        tokens = over.topk(min(MAX_LOOKED_UP, len(over))).indices
        tokens = tokens[over[tokens] > 0.0]
        ids = near(tokens)  # [n, k]
        inside = support(p, ids, delta)
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

    def verify(inputs: VerifierInput) -> Verification:
        return go_down(inputs, rule, left, WANTED_MORE, greedy)

    return Verifier(
        verify,
        fill if delta == 0.0 else frozenset(),
        name="neighbours' support",
        relaxed_for=fill,
        distribution=distribution,
        says=f"A drafted token is credited with its nearest neighbours' probability, up to {number(delta)} "
        "in total.",
    )


def neighbours_of(lane: Lane, count: int) -> Near:
    """The neighbours in the output embedding of the lane's target."""
    return Neighbours(lane.models["target"].embedding, count)


def parts(parameters: dict, near: Near | None = None) -> tuple[Drafter, Verifier, float]:
    """A chain from the draft model, and the relaxed rule; `near` may be None where nothing is decoded."""
    temperature = parameters["temperature"]
    return draft_chain(parameters), neighbour_support(parameters["delta"], near, temperature), temperature


@draft_and_verify(
    parts,
    name="lantern",
    title="LANTERN",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "delta",
            "float",
            0.1,
            "Probability mass that a token may borrow from its neighbours; 0 is lossless.",
            low=0.0,
            high=1.0,
        ),
        Parameter("neighbours", "int", 50, "Number of nearest tokens that are considered.", low=1, high=1000),
        Parameter(
            "num_assistant_tokens", "int", 4, "Tokens that the draft guesses per round.", low=1, high=32
        ),
        *GREEDY,
    ),
    papers=("lantern",),
    views=RELAXED_VIEWS,
    reads=lambda parameters: {"target": {Capability.OUTPUT_EMBEDDING}},
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
    drafter, verifier, _ = parts(lane.parameters, neighbours_of(lane, lane.parameters["neighbours"]))
    yield from rounds(lane, drafter, verifier)
