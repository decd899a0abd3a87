"""BASS: every text of a batch accepts its own number of drafted tokens, and one draft length adapts to all.

Qian et al. (2024), BASS: Batched Attention-optimized Speculative Sampling.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.batched.shared_batch import (
    PROMPTS,
    Text,
    batch_rounds,
    chains,
    draft_chains,
    too_long,
    too_many,
)
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_length import Length, batch_heuristic
from decoders.speculative.interfaces import Draft, Pair, Verification
from decoders.trace.scores import ScoreName

INCREMENT, DIVISOR, LIMIT = 2, 10, 32  # the paper's constants


def length_of(parameters: dict) -> Length:
    """The common draft length, from `num_assistant_tokens` on."""
    return batch_heuristic(parameters["num_assistant_tokens"], INCREMENT, DIVISOR, LIMIT)


def bass_pair(parameters: dict) -> Pair:
    """Chains of one length; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    return simplest(chains(temperature, length_of(parameters).says), temperature)


@draft_and_verify(
    bass_pair,
    name="bass",
    title="BASS",
    parameters=(
        PROMPTS,
        integer("num_assistant_tokens", 7, "Initial number of guesses per text.", low=1, high=LIMIT),
        *GREEDY,
    ),
    papers=("bass",),
    together=too_many,
    suits=too_long,
    view="batch",
)
def bass(lane: Lane) -> Iterator[None]:
    """Batched speculation: texts share every forward, and each keeps the drafted tokens it accepts.

    1. The draft writes l guesses for every text; each forward gives the next guess of all texts.
    2. One target forward checks the guesses of all texts. A mask lets every token see only its own text.
    3. Every text keeps its accepted guesses and one token of the target's, so lengths drift apart.
    4. If some text accepted all l, `l = min(l + 2, 32)`. Else `l = l - ceil(l / 10) - s`, but no less than 1
       or the most that a text accepted; s is 1 from the second such round in a row on, else 0.

    The lane's prompt is the first text; counts and other pictures are for that text alone. A forward serves
    all texts and counts once. Each text is the same as if it were decoded alone.
    """
    _, verifier = bass_pair(lane.parameters)
    length = length_of(lane.parameters)

    def propose(texts: list[Text]) -> list[Draft]:
        lane.record_measure(lane.tip, ScoreName.DRAFT_LENGTH, length.max_tokens(lane))
        return draft_chains(texts, [length.max_tokens(lane)] * len(texts))

    def observe(texts: list[Text], drafts: list[Draft], verifications: list[Verification]) -> None:
        length.observe(length.max_tokens(lane), max(len(one.path) for one in verifications))

    yield from batch_rounds(lane, propose, verifier, observe)
