"""LocalLeap: near a very sure token, a moderately sure one may become final as well.

"Accelerating Diffusion LLM Inference via Local Determinism Propagation" (2025).
"""

from collections.abc import Iterator

from decoders.diffusion.canvas import Guess
from decoders.diffusion.canvas_conflicts import CONFLICTS
from decoders.diffusion.canvas_waits import WAITS
from decoders.diffusion.denoising_loop import BLOCK, filling, schedule
from decoders.diffusion.unmask_policies import near_anchors
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.registry import strategy
from decoders.strategy import Part


@strategy(
    name="local_leap",
    title="LocalLeap",
    family="diffusion",
    papers=("accelerating-diffusion-llm-inference-via-local-determinism",),
    writes_with="diffusion",
    badge=lambda parameters: "deterministic",
    parameters=(
        real("tau", 0.9, "A token with at least this probability is an anchor.", low=0.0, high=1.0),
        real(
            "tau_low",
            0.75,
            "A token near an anchor with at least this probability is filled.",
            low=0.0,
            high=1.0,
        ),
        integer("radius", 4, "How many positions from an anchor count as near.", low=0, high=512),
        BLOCK,
        WAITS,
        CONFLICTS,
    ),
    view="canvas_grid",
    parts=lambda parameters: [
        *schedule(parameters),
        Part(
            "policy",
            "local leap",
            "Fills tokens of high confidence, and tokens of moderate confidence near them.",
        ),
    ],
    together=lambda parameters: (
        f"tau_low is {parameters['tau_low']:g}, above tau, {parameters['tau']:g}; choose a smaller one."
        if parameters["tau_low"] > parameters["tau"]
        else None
    ),
)
def local_leap(lane: Lane) -> Iterator[None]:
    """Fills masks with high confidence, and close to these also masks with moderate confidence.

    1. A forward over the canvas gives every masked position of the block its most likely token and that
       token's probability c.
    2. Anchors are the positions with `c >= tau`. The `radius` positions on either side are their neighbours.
    3. Anchors are filled, and so is every neighbour with `c >= tau_low`. If there is no anchor, the most
       confident position is filled.
    4. A position that was filled as a neighbour is not an anchor in the same forward.

    The authors' early stop, which fills the rest with end-of-text tokens after a finished block that holds
    one, is the rule of all canvases here: the lane ends with its text.
    """
    tau, tau_low, radius = (lane.parameters[name] for name in ("tau", "tau_low", "radius"))

    def choose(guessed: Guess, forwards: int) -> dict[int, str]:
        anchors, others = near_anchors(guessed.confidence, guessed.positions, tau, tau_low, radius)
        for i in others if anchors else ():
            nearest = min(anchors, key=lambda a: abs(guessed.positions[a] - guessed.positions[i]))
            lane.depend(guessed.positions[nearest], guessed.positions[i], 1.0, "anchor")
        relaxed = "relaxed" if anchors else "forced"
        return dict.fromkeys(anchors, "anchor") | dict.fromkeys(others, relaxed)

    yield from filling(lane, lambda masks: choose)
