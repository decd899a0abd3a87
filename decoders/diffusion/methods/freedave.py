"""FreeDave: drafts of the next canvases join the forward that has to come anyway, and verified ones are free.

"Free Draft-and-Verification: Toward Lossless Parallel Decoding for Diffusion Large Language Models" (Wu and
Zhang 2025).
"""

from collections.abc import Iterator
from typing import Any

from decoders.diffusion.canvas import Guess
from decoders.diffusion.chain_verify import LOSSLESS, Draft, Steps, drafted_canvases, verified_filling
from decoders.diffusion.denoising_loop import BLOCK, SUFFIX, TAU, schedule
from decoders.lane import Lane
from decoders.parameters import choice, integer, switch
from decoders.registry import strategy
from decoders.strategy import Part

POLICIES = {
    "quota": "Each step fills tokens_per_forward masks, the most confident first.",
    "threshold": "Each step fills all masks of at least tau; the drafts after it go by quota.",
}


def freedave_parts(parameters: dict[str, Any]) -> list[Part]:
    """Region, policy and look-ahead."""
    count = parameters["draft_steps"]
    return [
        *schedule(parameters),
        Part("policy", parameters["policy"], POLICIES[parameters["policy"]]),
        Part(
            "look-ahead",
            "chain",
            f"A forward reads the canvas and up to {count - 1} canvases that may follow it.",
        ),
    ]


@strategy(
    name="freedave",
    title="FreeDave",
    family="diffusion",
    papers=("free-draft-and-verification",),
    writes_with="diffusion",
    badge=lambda parameters: "deterministic" if parameters["policy"] == "threshold" else LOSSLESS,
    parameters=(
        integer("draft_steps", 4, "Canvases per forward; 1 drafts nothing.", low=1, high=64),
        integer("tokens_per_forward", 1, "Number of masks that a step fills.", low=1, high=512),
        choice(
            "policy",
            "quota",
            "What a step fills: a quota, or all above a threshold (FreeDave++, which is not lossless).",
            POLICIES,
        ),
        TAU,
        switch("eager", False, "Drafts may continue into the next block."),
        BLOCK,
        SUFFIX,
    ),
    view="canvas_drafts",
    parts=freedave_parts,
)
def freedave(lane: Lane) -> Iterator[None]:
    """Drafts the next canvases from one forward, and verifies all of them in the next.

    1. A forward gives every mask its most likely token and that token's probability. The most confident mask
       is filled, as in masked diffusion with one token per forward.
    2. The same forward predicts what may be filled next: canvas D_k has the k most confident of the other
       masks filled.
    3. One forward over the canvas and D_1, D_2, ... gives all of them their own next step. While the next
       step of a canvas leads exactly to the following canvas, in position and token, that canvas is accepted.
    4. All accepted steps are filled, and so is the next step of the last accepted canvas. Then step 2
       follows.

    A forward over the canvas is needed anyway, so there are never more forwards than without drafts. Each
    forward has up to draft_steps canvases, which take longer if one canvas already keeps the machine busy.
    The text is the same, since every step is the model's own step on the previous canvas. Checking the drafts
    in one canvas instead, where each guess sees the later ones, changes the text. With a threshold
    (FreeDave++) a draft is accepted if the next step fills at least what it fills: fewer forwards, but a
    different text. The authors also pack all canvases into one sequence; the numbers are the same.
    """
    count, policy = lane.parameters["draft_steps"], lane.parameters["policy"]
    tau = lane.parameters["tau"] if policy == "threshold" else None

    def draft(guessed: Guess, steps: Steps) -> list[Draft]:
        return drafted_canvases(guessed, steps, branches=1, canvases=count)

    yield from verified_filling(lane, draft, tau, lane.parameters["eager"])
