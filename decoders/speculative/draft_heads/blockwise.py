"""Blockwise parallel decoding: the first draft heads. Each forward verifies one block and proposes the next.

Stern et al. (2018). The heads are heads/path_independent/blockwise.py, the relaxed tests
verifiers/block_tests.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from decoders.lane import Lane
from decoders.parameters import choice, integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_heads.medusa_like import EXACT
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.drafters.trained_head import from_head, head_of_kind, needs_head
from decoders.speculative.interfaces import Draft, Pair, Shape
from decoders.speculative.verifiers.block_tests import Value, block_tests, in_best, within
from decoders.trace.number_format import number

SAYS = "Each head guesses one position further ahead, all from the target's newest state."
LONGEST = 16  # tokens of a block
TOP, DISTANCE = "top k", "distance"


def block_of(tokens: int) -> Shape:
    """A chain of the best guesses, which with the root is a block of this many tokens. Nothing is drawn,
    whatever the temperature.
    """
    chain = widths([1] * LONGEST, 0.0)

    def grow(lane: Lane, draft: Draft, guess: Callable, max_levels: int) -> None:
        chain.grow(lane, draft, guess, min(max_levels, tokens - 1))

    return replace(chain, grow=grow)


def blockwise_pair(parameters: dict, value: Value = lambda token: None) -> Pair:
    """The heads' best guesses as a chain, and the chosen test. value: the number that a token stands for."""
    temperature, minimum = parameters["temperature"], parameters["minimum_block"]
    drafter = from_head(head_of_kind("blockwise"), block_of(parameters["block"]), "blockwise heads", SAYS)
    acceptance, best, epsilon = (parameters[name] for name in ("acceptance", "best", "epsilon"))
    if acceptance == EXACT and minimum <= 1:
        return simplest(drafter, temperature)
    if acceptance == DISTANCE:
        says = f"A number passes if it is at most {number(epsilon)} away from the target's most likely one."
        return drafter, block_tests(within(epsilon, value), minimum, temperature, False, says)
    best = best if acceptance == TOP else 1
    says = f"A drafted token passes if it is among the target's {best} most likely tokens."
    if minimum > 1:
        says += f" The first {minimum} tokens of a block pass untested."
    return drafter, block_tests(in_best(best), minimum, temperature, best == 1, says)


def value_in(lane: Lane) -> Value:
    """The number that a token of the lane's target stands for, if it is written as one."""
    show = lane.models["target"].bytes_of

    def value(token: int) -> float | None:
        try:
            return float(show(token).decode())
        except ValueError:
            return None

    return value


@draft_and_verify(
    blockwise_pair,
    name="blockwise",
    title="Blockwise parallel decoding",
    parameters=(
        integer("block", 4, "Tokens in a block, including the target's own next token.", low=1, high=LONGEST),
        choice(
            "acceptance",
            EXACT,
            "Which guesses pass: the target's most likely token, its k most likely, or numbers close to "
            "its most likely one.",
            (EXACT, TOP, DISTANCE),
        ),
        integer("best", 2, "The k of the test `top k`.", low=1, high=64),
        real("epsilon", 2.0, "For the test `distance`: how far away a number may be.", low=0.0, high=1e6),
        integer(
            "minimum_block", 1, "This many tokens of a block always pass; 1: only the first.", low=1, high=16
        ),
        *GREEDY,
    ),
    papers=("blockwise-parallel-decoding-for-deep-autoregressive-models",),
    suits=needs_head("blockwise", "blockwise heads"),
)
def blockwise(lane: Lane) -> Iterator[None]:
    """Several output heads guess the next tokens at once; the same forward checks them and proposes more.

    1. Predict: head 1 is the model itself and gives the next token; head i, on one more layer after the
       model's last, guesses the token i positions ahead. Together they are a block.
    2. Verify: one forward reads the block. The longest prefix is kept whose tokens the model itself would
       have taken there; its first token always is.
    3. Accept: that forward has also computed all heads at the last kept token, and their guesses are the next
       block. So m tokens cost m / (mean block) + 1 forwards.

    The exact test writes greedy decoding's text. The relaxed ones accept a token among the k most likely, or
    a number close to the most likely one (for models of pixels and the like; words have no distance and take
    the exact test), or the first minimum_block tokens without a test. In the paper's code head 1 goes through
    the new layer, too, and so changes the model; here it does not. The heads of llama-tiny were trained on
    the frozen model, one randomly chosen head per batch as in the paper, with the model's distributions as
    labels; their layer is narrower than the paper's.
    """
    drafter, verifier = blockwise_pair(lane.parameters, value_in(lane))
    yield from rounds(lane, drafter, verifier)
