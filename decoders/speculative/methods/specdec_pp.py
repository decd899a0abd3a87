"""SpecDec++: the draft ends when it has become likely enough that one of its tokens will be rejected.

Huang et al. (2024), sections 3 and 4. The head that predicts rejections is heads/scorers/acceptance.py; the
model knows which one fits a draft. Its probabilities are corrected here for the weight of rejections in its
training; the authors compare the uncorrected ones with their limit.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from decoders.heads import Acceptance
from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_length import Length, chain
from decoders.speculative.drafters.draft_model import DRAFT_MODEL, scores
from decoders.speculative.interfaces import Draft, Pair, drafted
from decoders.strategy import Part
from decoders.trace.scores import ScoreName

HEAD, OWN = "acceptance head", "draft's own probability"
PREDICTORS = {
    HEAD: "A small network reads the draft's state after a token and predicts whether it will be accepted.",
    OWN: "The draft's own probability of a token stands for the probability that it is accepted.",
}
MISSING = (
    "No acceptance head comes with the project for the draft {!r} before the target {!r}: the draft's own "
    "probabilities take its place. docs/heads.md says how to train one."
)
# How likely the target is to accept a drafted node that the draft has read.
Predict = Callable[[Lane, Draft, int], float]


def doubtful(stop: float, min_tokens: int, max_tokens: int) -> Callable[[list[float]], bool]:
    """After token t of a draft, given the predicted acceptances of all tokens before t: whether 1 - S >
    `stop`, S being their product. Token t itself is not judged, and is submitted. Never before `min_tokens`,
    always at `max_tokens`.
    """

    def enough(judged: list[float]) -> bool:
        count = len(judged) + 1
        return count >= max_tokens or (count >= min_tokens and 1.0 - math.prod(judged) > stop)

    return enough


def own_probability(lane: Lane, draft: Draft, node: int) -> float:
    """The draft's own probability of the token."""
    return draft.probability[node]


def predicted_acceptance(lane: Lane, draft: Draft, node: int) -> float:
    """The head's prediction from the draft's state after the token; the draft's own probability where there
    is no head.
    """
    head = head_of(lane)
    if head is None:
        return own_probability(lane, draft, node)
    return float(head.scores(lane.scorers["draft"].hidden(node)))


def head_of(lane: Lane) -> Acceptance | None:
    """The head trained for exactly this draft and this target, unless the draft's own probabilities are asked
    for.
    """
    if lane.parameters["predictor"] == OWN:
        return None
    head = lane.models["draft"].heads.get("acceptance")
    fits = head is not None and head.settings["against"] == lane.models["target"].name
    return head if fits else None


def with_states(lane: Lane, nodes: list[int]) -> torch.Tensor:
    """The draft's scores [N, V] after each node; its scorer keeps the states that a head reads."""
    return scores(lane, nodes, hidden=head_of(lane) is not None)


def until_doubtful(
    stop: float, min_tokens: int, max_tokens: int, predict: Predict = own_probability
) -> Length:
    """The length policy. It records S, and the limit it must not fall below, at each token that it has
    judged.
    """
    judged: list[float] = []
    ends = doubtful(stop, min_tokens, max_tokens)

    def enough(lane: Lane, draft: Draft, nodes: list[int]) -> bool:
        if len(nodes) == 1:
            judged.clear()
        else:
            judged.append(predict(lane, draft, nodes[-2]))
            parts = {"acceptance": judged[-1], "limit": 1.0 - stop}
            lane.record_measure(nodes[-2], ScoreName.ALL_ACCEPTED, math.prod(judged), **parts)
        return ends(judged)

    says = f"It stops when the predicted probability of a rejection exceeds {stop:g}."
    return Length(lambda lane: max_tokens, says, enough=enough)


def specdec_pp_pair(parameters: dict) -> Pair:
    """A chain that ends in doubt; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    min_tokens, max_tokens = parameters["min_assistant_tokens"], parameters["num_assistant_tokens"]
    length = until_doubtful(parameters["stop"], min_tokens, max_tokens, predicted_acceptance)
    return simplest(
        drafted(replace(DRAFT_MODEL, scores=with_states), chain(length, temperature)), temperature
    )


def predictor(parameters: dict) -> Part:
    """What predicts acceptance, as a part of the strategy."""
    name = parameters["predictor"]
    return Part("predictor", name, PREDICTORS[name])


@draft_and_verify(
    specdec_pp_pair,
    name="specdec_pp",
    title="SpecDec++",
    parameters=(
        real("stop", 0.3, "Probability of a rejection at which drafting stops.", low=0.0, high=1.0),
        choice("predictor", HEAD, "What predicts how likely a token is to be accepted.", PREDICTORS),
        integer("min_assistant_tokens", 2, "Minimum number of drafted tokens.", low=1, high=32),
        integer("num_assistant_tokens", 20, "Maximum length of a draft in tokens.", low=1, high=64),
        *GREEDY,
    ),
    papers=("specdec-plus-plus",),
    further_part=predictor,
)
def specdec_pp(lane: Lane) -> Iterator[None]:
    """The draft continues while a small trained head predicts that all its tokens will be accepted.

    1. The draft writes token after token. The forward for the next token also gives the draft's state at the
       last one, from which the head predicts how likely that last token is to be accepted.
    2. S is the product of these predictions so far. Drafting stops when `1 - S > stop`, that is, when a
       rejection has become likely. The newest token has not been judged yet: the target tests it in any case,
       so the distribution of the text stays the target's.
    3. The target checks the chain, as in speculative decoding.

    The head was trained along texts of the target, on `min(1, p/q)` of tokens that the draft had drawn;
    rejections were weighted sixfold, and its predictions are corrected for that. Where no head was trained
    for the two models, the draft's own probability of a token is used instead, and the lane says so.
    """
    if lane.parameters["predictor"] == HEAD and head_of(lane) is None:
        lane.note(MISSING.format(*(lane.models[role].name for role in ("draft", "target"))))
    drafter, verifier = specdec_pp_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
