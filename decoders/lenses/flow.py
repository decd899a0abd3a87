"""Information flow routes (Ferrando and Voita, 2024): how much each summand of a state helps to build it, in
one forward.
"""

from typing import Any

from decoders.engine.capabilities import Capability
from decoders.lenses.frame import LensFrame
from decoders.lenses.registry import lens
from decoders.parameters import integer, real, switch

TAU = 0.04  # the paper's threshold


@lens(
    name="flow",
    title="Information flow routes",
    papers=("information-flow-routes",),
    needs=(Capability.HIDDEN_STATES, Capability.ATTENTION),
    parameters=(integer("positions", 16, "How many positions are shown: the last ones.", low=2, high=256),),
    shows=(
        real("tau", TAU, "Parts of at most this weight are dropped.", low=0.0, high=0.3),
        switch("renormalise", True, "Scale what is left to a sum of 1; else tau cuts whole edges."),
        integer("layer", 1, "The layer whose heads are shown.", low=1, high=200),
    ),
    limit=256,
    figures=("flow_routes", "head_split", "token_flow"),
)
def flow(model: Any, tokens: list[int], options: dict[str, Any]) -> LensFrame:
    """Where a prediction comes from: through which positions, heads and layers information flows to it.

    1. Every state is a sum: `x_mid` of the stream before it and, for each head and each earlier position, of
       `a v W_O`; `x_post` of `x_mid` and what the MLP adds.
    2. A summand z helps to build the sum y by `max(0, |y| - |z - y|)` in the L1 norm; these numbers, over
       their sum, are importances.
    3. What is at most tau is dropped, head by head before heads are summed; the others of a state are
       renormalised.
    4. The route of a position begins at its last state and follows what is left downwards.

    It takes one forward and needs no second prompt to compare with.
    """
    from decoders.lenses.flow_weights import flow_frame

    return flow_frame(model, tokens, options["positions"])
