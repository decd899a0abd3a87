"""LayerSkip: the first layers of the target draft, the others verify, and nothing is computed twice.

Elhoushi et al. (2024), LayerSkip, section 3.3. The exit uses the target's own last norm and head; a target
that was trained with early exits drafts best.
"""

from decoders.engine.layers import Layers
from decoders.lane import Lane
from decoders.models import catalog
from decoders.models.names import shipped_name
from decoders.parameters import integer
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import VERIFIER, chosen, fits
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import Pair
from decoders.speculative.self_draft.early_layers import depth_of, self_drafted


def exit_of(parameters: dict, target) -> int:
    """After how many layers the draft exits: as asked for, else the first exit that the target was trained
    with, else a quarter of its layers.
    """
    exits = catalog.exits(shipped_name(target.name))
    return parameters["exit_layer"] or (exits[0] if exits else max(1, depth_of(target) // 4))


def first_layers(lane: Lane) -> Layers:
    """The layers up to the lane's exit."""
    target = lane.models["target"]
    return Layers.first(exit_of(lane.parameters, target), depth_of(target))


def suits(parameters: dict, target) -> str | None:
    """Why this target has no exit after so few layers, as a sentence; None if it has."""
    layers, asked = depth_of(target), exit_of(parameters, target)
    if asked <= layers:
        return None
    return f"The model has {layers} layers, so exit_layer must be at most {layers}, not {asked}."


@speculative(
    name="layerskip",
    title="LayerSkip",
    parameters=(
        integer(
            "exit_layer",
            0,
            "Number of layers that draft; 0: the first exit that the model was trained with, else a "
            "quarter of the layers.",
            low=0,
            high=256,
        ),
        integer("num_assistant_tokens", 4, "Tokens drafted per round.", low=1, high=32),
        VERIFIER,
        *GREEDY,
    ),
    papers=("layerskip",),
    view="layers",
    fits=fits,
    suits=suits,
)
def layerskip_pair(parameters: dict) -> Pair:
    """The target's first layers draft, its other layers verify: self-speculation through an early exit.

    1. The newest token runs through the first exit_layer layers; the last norm and the head turn the result
       into a guess. The guess runs through them in turn, num_assistant_tokens times.
    2. These layers compute exactly what they compute in the whole model, so their keys, values and outputs
       are kept.
    3. The other layers read all guesses in one pass and give the target's distribution at each.
    4. Guesses are tested as in speculative decoding, or as whole paths by the verifier that is chosen; the
       text is exactly the target's.

    There is no second model and no second cache. A pass through some of the layers counts as that fraction
    of a target forward, so tokens per target forward show the gain.
    """
    shape = widths([1] * parameters["num_assistant_tokens"], parameters["temperature"])
    says = "The target's first layers guess, through its own head, one pass per token."
    return chosen(self_drafted(first_layers, shape, "an early exit", says, go_on=True), parameters)
