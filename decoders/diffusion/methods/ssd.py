"""SSD: a masked-diffusion model drafts for itself, and one forward verifies a tree of canvases.

"Self Speculative Decoding for Diffusion Large Language Models" (Gao et al. 2025).
"""

from collections.abc import Iterator
from typing import Any

from decoders.diffusion.canvas import Guess
from decoders.diffusion.chain_verify import LOSSLESS, Draft, Steps, drafted_canvases, verified_filling
from decoders.diffusion.denoising_loop import BLOCK, SUFFIX, schedule
from decoders.lane import Lane
from decoders.parameters import integer
from decoders.registry import strategy
from decoders.strategy import Part


def ssd_parts(parameters: dict[str, Any]) -> list[Part]:
    """Region and look-ahead."""
    branches, shape = parameters["branches"], "tree" if parameters["branches"] > 1 else "chain"
    described = (
        f"Each canvas is followed by the {branches} most confident of the drafted tokens that it lacks."
    )
    return [*schedule(parameters), Part("look-ahead", shape, described)]


@strategy(
    name="ssd",
    title="Self-speculative decoding (SSD)",
    family="diffusion",
    papers=("self-speculative-decoding-for-diffusion-large-language",),
    writes_with="diffusion",
    badge=lambda parameters: LOSSLESS,
    parameters=(
        integer(
            "draft_length", 4, "Number of masks that are drafted, the most confident first.", low=0, high=64
        ),
        integer("branches", 2, "Drafts that may come next after a canvas; 1 is a chain.", low=1, high=64),
        integer("max_canvases", 8, "Canvases per forward; 1 drafts nothing.", low=1, high=64),
        BLOCK,
        SUFFIX,
    ),
    view="canvas_drafts",
    parts=ssd_parts,
)
def ssd(lane: Lane) -> Iterator[None]:
    """Drafts the most confident masks and verifies a tree of the orders in which they may be filled.

    1. A forward gives every mask its most likely token. The most confident mask is filled; the next
       `draft_length` are drafts d_1, d_2, ... in the order of their probabilities.
    2. A tree of canvases grows from the current one. The children of each canvas add one of the first
       `branches` drafts that it lacks, since the model may prefer another order once it sees some of them.
       The drafts' own order comes first; max_canvases bounds the tree.
    3. One forward over all canvases gives the next step of each: a position and a token.
    4. From the current canvas the path follows the child to which the next step leads, as long as there is
       one. The path is filled, and the next step of its last canvas.

    Every step is the model's own step on the previous canvas, so the text is that of one token per forward.
    One branch is FreeDave's chain. A canvas reached by two orders is evaluated once. The paper describes a
    hierarchical tree without a rule for its branches; this rule is our choice. The paper's fastest results
    use a cache of everything outside the block, with which the text is that of masked diffusion with that
    cache; this cache is not implemented here.
    """
    length, branches, canvases = (lane.parameters[n] for n in ("draft_length", "branches", "max_canvases"))

    def draft(guessed: Guess, steps: Steps) -> list[Draft]:
        return drafted_canvases(guessed, steps[:length], branches, canvases)

    yield from verified_filling(lane, draft)
