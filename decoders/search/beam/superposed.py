"""Superposed decoding: several drafts from one forward per token, which reads a mixture of their last tokens.

Shen et al. (2024), Superposed Decoding. An n-gram model of other texts adapts the shared row to each draft.
The bookkeeping of beam search (`beam_state.py`) decides which drafts stay live.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from decoders.datastore import Followers, encoded, followers, names
from decoders.engine.capabilities import Capability
from decoders.engine.engine import Work
from decoders.engine.input_embeddings import input_embeddings
from decoders.engine.tree import Tree
from decoders.lane import Lane
from decoders.logits.distributions import log_softmax
from decoders.parameters import choice, integer, real, reals, switch
from decoders.registry import strategy
from decoders.search.beam.beam_state import (
    EARLY_STOPPING,
    LENGTH_PENALTY,
    Beams,
    best_finished,
    commit_best_hypothesis,
    rank_live,
)
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

MIXTURE = "mixture"  # the role of the scorer that reads mixtures
UNSEEN = -200.0  # added to a draft's row where the n-grams know none of its tokens
FIRST = ("as all others", "model alone")  # the released code, the paper


def ngram_probs(known: Followers, text: Sequence[int], weights: Sequence[float]) -> dict[int, float]:
    """Token -> the sum over orders of weight x count(run, token) / count(run), over the known runs at the end
    of `text`; weights[0] is for one token of context. The values are not normalised.
    """
    probs: dict[int, float] = {}
    for n, weight in enumerate(weights[: len(text)], 1):
        seen = known.get(tuple(text[-n:]), Counter())
        for token, count in seen.items():
            probs[token] = probs.get(token, 0.0) + weight * count / seen.total()
    return probs


def sharpened(logits: torch.Tensor, temperature: float, top_k: int) -> torch.Tensor:
    """Log-probabilities of softmax(logits [V] / temperature) over its top_k best tokens; -inf for others."""
    values, tokens = logits.topk(min(top_k if temperature > 0.0 else 1, len(logits)))
    kept = torch.full_like(logits, -math.inf)
    return kept.index_put((tokens,), log_softmax(values / (temperature or 1.0)))


def personal(shared: torch.Tensor, ngrams: Sequence[dict[int, float]], alpha: float) -> torch.Tensor:
    """Scores [k, V] of each draft's next tokens, `(1 - alpha) ln p + alpha ln ng`, from the row [V] that they
    share and their n-gram distributions. A draft whose n-grams continue with none of the kept tokens gets `(1
    - alpha) ln p - 200`.
    """
    if alpha == 0.0:
        return shared.expand(len(ngrams), -1)
    rows = []
    for probs in ngrams:
        known = torch.zeros_like(shared)
        if probs:
            known[list(probs)] = torch.tensor(list(probs.values()), dtype=shared.dtype, device=shared.device)
        row = alpha * known.log() + (1 - alpha) * shared if alpha < 1.0 else known.log()
        row = row.masked_fill(shared == -math.inf, -math.inf)
        alone = ((1 - alpha) * shared.clamp(min=-1e30) + UNSEEN).masked_fill(shared == -math.inf, -math.inf)
        rows.append(row if row.isfinite().any() else alone)
    return torch.stack(rows)


def mixture_weights(totals: Sequence[float], tokens: Sequence[int]) -> dict[int, float]:
    """Token -> its weight: softmax over the drafts' scores; those of drafts with the same last token are
    added.
    """
    shares = torch.tensor(totals, dtype=torch.float64).softmax(-1).tolist()
    weights: dict[int, float] = {}
    for token, share in zip(tokens, shares, strict=True):
        weights[token] = weights.get(token, 0.0) + share
    return weights


class Mixture:
    """A scorer whose text is a chain of mixtures after the prompt; every forward reads the newest."""

    counts_as = "target"

    def __init__(self, lane: Lane):
        engine = lane.models["target"].engine
        self.model, self.tree = engine.model, Tree(lane.tree.tokens[: lane.tree.trunk])
        self.scorer = engine.attach(self.tree)
        self.newest = self.tree.trunk - 1

    def add(self, weights: dict[int, float]) -> None:
        """Adds a position: a weighted mean of the input embeddings of tokens."""
        each = input_embeddings(self.model, list(weights))  # [N, d]
        shares = torch.tensor(list(weights.values()), dtype=each.dtype, device=each.device)
        self.newest = self.tree.add(self.newest, max(weights, key=weights.__getitem__))
        self.scorer.mixed[self.newest] = shares @ each

    @property
    def work(self) -> Work:
        """What the last `score` call computed; the prompt was this lane's own work before."""
        self.scorer.work.shared = 0
        return self.scorer.work

    @property
    def used(self) -> int:
        """Slots of the mixtures; those of the prompt are the lane's own."""
        return max(0, self.scorer.used - self.tree.trunk)

    def score(self, nodes: list[int], hidden: bool = False) -> torch.Tensor:
        """Logits [1, V] after the newest mixture, which stands for all of `nodes`."""
        return self.scorer.score([self.newest], hidden)

    def states(self) -> torch.Tensor:
        """The streams [L + 1, d] of the newest mixture after 0 to L layers, where the scorer keeps taps."""
        return self.scorer.streams(self.newest)

    def forget(self, nodes: list[int]) -> None:
        """Does nothing: nodes of the lane's tree mean nothing here."""

    def release(self, nodes: list[int]) -> None:
        """Does nothing, as `forget`."""

    def close(self) -> None:
        """As `engine.Scorer.close`."""
        self.scorer.close()


def record_linearity(lane: Lane, mixture: Mixture, live: list[int], shares: Sequence[float]) -> None:
    """Runs each draft separately and records, layer by layer, the cosine between the mixture's state and the
    mean of the drafts' states. This influences no decision.
    """
    lane.score(live, kind="lens")
    scorer = lane.scorers["target"]
    weights = torch.tensor(shares, dtype=torch.float64)
    mean = sum(w * scorer.streams(node).double() for w, node in zip(weights, live, strict=True))
    cosines = torch.cosine_similarity(mean, mixture.states().double(), dim=-1).tolist()
    parts = {f"after {layer} layers": cosine for layer, cosine in enumerate(cosines)}
    lane.record_measure(live[0], ScoreName.LINEARITY, cosines[-1], **parts)


def reads(parameters: dict) -> dict[str, set[Capability]]:
    """Embeddings to mix, and the states after each layer if `linearity` is asked for."""
    return {"target": {Capability.EMBEDDINGS, *([Capability.LAYERS] if parameters["linearity"] else [])}}


@strategy(
    name="superposed",
    title="Superposed decoding",
    family="search",
    parameters=(
        integer("num_beams", 3, "Drafts that are written at the same time.", low=1, high=32),
        integer("top_k", 9, "Tokens of the shared distribution that may follow a draft.", low=1, high=1000),
        real(
            "temperature",
            0.06,
            "Temperature of the shared distribution; smaller is sharper.",
            low=0.0,
            high=100.0,
        ),
        real(
            "alpha",
            0.54,
            "Weight of the n-grams against the shared distribution; 0: none.",
            low=0.0,
            high=1.0,
        ),
        choice(
            "first_token",
            FIRST[0],
            "What ranks the first tokens: the model with temperature and n-grams, or the model alone.",
            FIRST,
        ),
        choice("store", "stories", "Texts whose n-grams are counted.", names()),
        reals(
            "ngram_weights",
            [0.01, 0.04, 0.15, 0.18, 0.12],
            "Weights of the n-grams of two tokens, of three, and so on.",
            low=0.0,
            high=1.0,
            group="N-grams",
        ),
        switch(
            "linearity",
            False,
            "Also run every draft by itself, and record how similar the mixture's states are to its own.",
        ),
        LENGTH_PENALTY,
        EARLY_STOPPING,
    ),
    papers=("superposed-decoding",),
    view="superposition",
    badge=lambda parameters: "deterministic",
    parts=lambda parameters: [
        Part("expansion", "mixture of embeddings", "One forward reads the mean of the drafts' last tokens."),
        Part(
            "value",
            "n-grams",
            "N-gram counts of stored texts decide which of the shared tokens follow which draft.",
        ),
    ],
    reads=reads,
)
def superposed(lane: Lane) -> Iterator[None]:
    """Writes several texts for the cost of one: each forward reads a mixture of their last tokens.

    1. The num_beams best first tokens begin one draft each, scored by steps 3 and 4 as in the released code,
       or with "model alone" by their log-probability as in the paper. The score of a draft is `D`.
    2. One forward reads `e = sum w_i E[last token of draft i]` at the next position, `w = softmax(D)`.
       All drafts share its keys and values.
    3. Its distribution, at a low temperature, is truncated to its top_k tokens: `p`.
    4. For each draft i the n-grams of its own last tokens give `ng_i`. A token scores `(1 - alpha) ln p +
       alpha ln ng_i`, and is excluded where ng_i is 0.
    5. The best num_beams of all sums `D_i + score` are the new drafts. Two of them may continue the same
       draft.
    6. Finished and living drafts are ranked by D over length; the best is the output.

    The cache holds a mixture, so the distribution belongs to no single draft, and D is no model's
    log-probability. The log-probabilities of the output come from one extra forward over it, which is counted
    separately and influences no decision.
    """
    given = lane.parameters
    beams, mixture = Beams(lane, given["num_beams"]), Mixture(lane)
    lane.scorers[MIXTURE] = mixture
    lane.scorers["target"].taps = mixture.scorer.taps = given["linearity"]
    known: Followers = {}
    if given["alpha"] > 0.0:
        store = encoded(given["store"], lane.models["target"])
        known = followers(store, len(given["ngram_weights"]))
    logits = lane.score([lane.tip], hidden=given["linearity"])  # [1, V]
    logprobs = lane.distribution([lane.tip], logits)
    if given["first_token"] == FIRST[0]:
        beams.advance(scored(lane, [lane.tip], logits, known)[0], logprobs)
    else:
        beams.advance(logprobs, logprobs)
    while beams.live:
        rank_live([beams])
        yield
        extend(lane, beams, mixture, known)
    look_up_logprobs(lane, beams)
    commit_best_hypothesis(lane, [beams])


def extend(lane: Lane, beams: Beams, mixture: Mixture, known: Followers) -> None:
    """Extends every draft by one token, from one forward."""
    given, live, tokens = lane.parameters, beams.live, lane.tree.tokens
    shares = torch.tensor(beams.totals, dtype=torch.float64).softmax(-1).tolist()
    mixture.add(mixture_weights(beams.totals, [tokens[node] for node in live]))
    row = lane.score(live, role=MIXTURE)  # [1, V]
    lane.distribution(live[:1], row, "combined", "the row that all drafts share")
    for node, share in zip(live, shares, strict=True):
        lane.record_measure(node, ScoreName.SHARE, share)
    if given["linearity"]:
        record_linearity(lane, mixture, live, shares)
    scores, shared = scored(lane, live, row, known)
    beams.advance(scores, shared.expand(len(live), -1))


def scored(
    lane: Lane, nodes: list[int], row: torch.Tensor, known: Followers
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores [k, V] of the next tokens of each of `nodes`, and the sharpened row [V], from logits [1, V]."""
    given = lane.parameters
    shared = sharpened(row[0].double(), given["temperature"], given["top_k"])
    ngrams = [ngram_probs(known, lane.tree.text(node), given["ngram_weights"]) for node in nodes]
    return personal(shared, ngrams, given["alpha"]), shared


def look_up_logprobs(lane: Lane, beams: Beams) -> None:
    """Looks up the target's own log-probabilities of the best text, in one forward over it."""
    path = lane.tree.path(best_finished([beams])[0].node, above=lane.tip)
    logits = lane.score([lane.tip, *path[:-1]], kind="lens")  # [N, V]
    logprobs = lane.distribution([lane.tip, *path[:-1]], logits)
    for node, row in zip(path, logprobs, strict=True):
        beams.logprobs[node] = float(row[lane.tree.tokens[node]])
