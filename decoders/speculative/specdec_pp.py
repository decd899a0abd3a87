"""The stop rule of SpecDec++: end the draft when it has become likely enough that some token in it will be
refused.

Huang et al. (2024), section 3. Theirs asks a trained head how likely each token is to be accepted; no such
head comes with this project, so the draft's own probability of the token stands in for it.
"""

import math
from collections.abc import Callable, Iterator

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.lengths import Length, chain
from decoders.speculative.parts import TIMED_VIEWS, Drafter, Verifier, badge, described, drafted
from decoders.speculative.rounds import rounds
from decoders.speculative.shaping import SHAPING
from decoders.speculative.simplest import simplest


def doubtful(stop: float, least: int, most: int) -> Callable[[list[float]], bool]:
    """After token t of a draft: whether 1 - S > `stop`, S the product of the predicted acceptances of all
    tokens before t. Token t is not judged yet, and is submitted. Never before `least`, always at `most`.
    """

    def enough(predicted: list[float]) -> bool:
        if len(predicted) < least:
            return False
        return len(predicted) >= most or 1.0 - math.prod(predicted[:-1]) > stop

    return enough


def until_doubtful(stop: float, least: int, most: int) -> Length:
    """The length policy, with the draft's own probabilities as predictions."""
    says = f"It stops when one of them is refused with more than {stop:g}, if the draft judges itself right."
    return Length(lambda lane: most, says, enough=doubtful(stop, least, most))


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain that ends in doubt; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    length = until_doubtful(
        parameters["stop"], parameters["min_assistant_tokens"], parameters["num_assistant_tokens"]
    )
    return simplest(drafted(DRAFT_MODEL, chain(length, temperature)), temperature)


@strategy(
    name="specdec_pp",
    title="Stop rule of SpecDec++",
    family="speculative",
    needs=("target", "draft"),
    parameters=(
        Parameter("stop", "float", 0.3, "Chance of a refusal at which the draft ends.", low=0.0, high=1.0),
        Parameter("min_assistant_tokens", "int", 2, "Tokens that are drafted in any case.", low=1, high=32),
        Parameter("num_assistant_tokens", "int", 20, "Tokens of a draft at most.", low=1, high=64),
        *SHAPING,
    ),
    views=TIMED_VIEWS,
    badge=lambda parameters: badge(*parts(parameters)),
    parts=lambda parameters: described(*parts(parameters)),
)
def specdec_pp(lane: Lane) -> Iterator[None]:
    """The draft goes on while it trusts itself: long where the text is easy, short where it is not.

    1. The draft writes token after token; S is the product of the chances that each is accepted.
    2. It stops when `1 - S > stop`, that is, when a refusal has become likely. The last token is not judged:
       the target tests it in any case, so the law of the text stays the target's.
    3. The target checks the chain, as in speculative decoding.

    SpecDec++ trains a head that predicts the chances. There is none here: the draft's own probability of
    each token takes its place.
    """
    drafter, verifier, _ = parts(lane.parameters)
    yield from rounds(lane, drafter, verifier)
