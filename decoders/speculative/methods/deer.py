"""DEER: a masked-diffusion model drafts a whole block in one forward, and the target verifies it.

Cheng et al. (2025), DEER: Draft with Diffusion, Verify with Autoregressive Models. Written from the paper's
project page and summaries: no code of the authors was published when this was made.
"""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import integer, switch
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.masked_block import block, note_if_missing
from decoders.speculative.interfaces import Pair


def deer_pair(parameters: dict) -> Pair:
    """A block of masks, drawn from q; greedy match at temperature 0, else token rejection."""
    temperature = parameters["temperature"]
    drafter = block(
        parameters["num_assistant_tokens"],
        draws=temperature > 0,
        reuse_tail=parameters["reuse_tail"],
    )
    return simplest(drafter, temperature)


@draft_and_verify(
    deer_pair,
    name="deer",
    title="DEER",
    parameters=(
        integer("num_assistant_tokens", 32, "Masks that are filled per round.", low=1, high=64),
        switch(
            "reuse_tail",
            False,
            "Whether the guesses after a rejected one become the next round's draft, without a new forward "
            "of the drafter.",
        ),
        *GREEDY,
    ),
    papers=("deer",),
)
def deer(lane: Lane) -> Iterator[None]:
    """A masked-diffusion model drafts a long block in one forward; the target verifies it token by token.

    1. num_assistant_tokens masks follow the text. One forward of the drafter, in both directions, gives a
       distribution q at each of them, and each draws its token from its own q: no guess has seen the others,
       so an early mistake spoils no later guess.
    2. One target forward over text and guesses gives p at each of them.
    3. From left to right a guess x passes if the draw u is below p/q: `u q(x) < p(x)`.
    4. At the first guess that fails, the target draws from the residual `norm(max(p - q, 0))`; if
       all pass, it draws one more token from p.

    The text is distributed exactly as the target's own: given the text, q is the distribution that a guess
    was drawn from. At temperature 0 the text is greedy's. With reuse_tail, the guesses after a rejected one
    are tested in the next round against the same stored q. They never saw the rejected token and have not
    been tested yet, so the text stays exact (our addition).

    The paper marks the boundary by a token of its own, `[SEP]`; here the first mask does. It aligns the
    drafter in two stages, on the target's continuations and then on the tokens nearest to the boundary. The
    recipe `llama-tiny-deer` does the same, but with our short training the drafts did not get longer, so no
    aligned drafter is shipped.
    """
    note_if_missing(lane)
    drafter, verifier = deer_pair(lane.parameters)
    yield from rounds(lane, drafter, verifier)
