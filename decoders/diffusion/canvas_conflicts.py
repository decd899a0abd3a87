"""How well the tokens that one forward fills fit together: the cost of filling them at once.

After ParallelBench (Kang et al. 2025): a forward draws from the product of its marginals, and the loss is the
total correlation of the positions. It is measured pointwise for the tokens that were filled, with the model
itself: the model rates each token given the tokens before it, and each token given one other alone. The
latter shows which pair fits together least.
"""

import torch

from decoders.diffusion.canvas import Canvas, Guess
from decoders.lane import Lane
from decoders.logits.distributions import MIN_LOGPROB
from decoders.parameters import switch
from decoders.trace.scores import ScoreName

CONFLICTS = switch(
    "conflicts",
    False,
    "Measure how far the tokens that a forward fills fit together: the model reads each of them alone, and "
    "one after the other (counted separately).",
)
COST = (
    "joint_cost"  # name of the scores, in nats: log of the product of marginals over the chain rule's product
)
AT_ONCE = 32  # canvases of one lens forward


def record_conflicts(lane: Lane, canvas: Canvas, guessed: Guess, chosen: list[int]) -> None:
    """Records the cost of filling the chosen positions (indices into the guess) together. A Depend of kind
    "conflict" records the pair with the lowest pointwise mutual information, in nats, if that is negative.
    The joint probability follows from the chain rule from left to right. Call this before the canvas is
    filled. It costs lens forwards over two canvases for each position but one.
    """
    chosen = sorted(chosen, key=lambda i: guessed.positions[i])
    tokens = [guessed.tokens[i] for i in chosen]
    places = [guessed.positions[i] for i in chosen]
    parts = {"iteration": float(canvas.iteration + 1), "tokens": float(len(chosen))}
    if len(chosen) < 2:
        lane.record_measure(lane.tip, ScoreName.JOINT_COST, 0.0, **parts)
        return
    filled = list(zip(places, tokens, strict=True))
    alone = [canvas.with_tokens({place: token}) for place, token in filled]
    before = [canvas.with_tokens(dict(filled[:n])) for n in range(2, len(filled))]
    rows = looked(lane, [*alone, *before], places, tokens)  # [2k - 2, k]
    marginal = torch.tensor([float(guessed.logprobs[i, guessed.tokens[i]]) for i in chosen]).double()
    # the second token is read after the first alone, the others after all that stand left of them
    chain = marginal[0] + sum(rows[0 if n == 1 else len(alone) + n - 2, n] for n in range(1, len(filled)))
    lane.record_measure(lane.tip, ScoreName.JOINT_COST, float(marginal.sum() - chain), **parts)
    gained = rows[: len(alone)] - marginal  # [k, k]: pointwise mutual information of a token read after one
    gained.fill_diagonal_(0.0)
    lowest = int(gained.argmin())
    first, second = divmod(lowest, len(filled))
    if gained[first, second] < 0:
        lane.depend(places[first], places[second], float(gained[first, second]), "conflict")


def looked(lane: Lane, canvases: list[list[int]], places: list[int], tokens: list[int]) -> torch.Tensor:
    """Log-probabilities [N, k] of the k tokens at their places on each of N canvases."""
    low, high = places[0], places[-1] + 1
    columns = torch.tensor(places) - low
    rows = []
    for at in range(0, len(canvases), AT_ONCE):
        some = canvases[at : at + AT_ONCE]
        logits = lane.run_forward(lambda scorer, some=some: scorer.denoise(some, low, high), "lens")
        logprobs = logits[:, columns.to(logits.device)].double().log_softmax(-1)
        rows.append(logprobs[:, torch.arange(len(tokens)), tokens].cpu())
    return torch.cat(rows).clamp(min=MIN_LOGPROB)
