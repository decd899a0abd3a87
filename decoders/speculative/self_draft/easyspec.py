"""EasySpec: a deep draft runs the attentions of several layers on one input, and its cache is corrected after
each round.

Wu et al. (2025), EasySpec. The paper spreads a group over devices; here one device computes it, layer after
layer, with the same numbers. The order in which a group's outputs are added is reconstructed.
"""

from collections.abc import Iterator

import torch

from decoders.engine.capabilities import Capability
from decoders.engine.layers import Layers
from decoders.lane import Lane
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import TIMED_VIEWS, Drafter, Source, Verifier, described, drafted
from decoders.strategy import Parameter, Part

ITSELF, DRAFT = "the target", "the draft model"
SHALLOW = "The draft has {} layers, of which none can be grouped: the first and the last one stand alone."


def fuzzy(parameters: dict) -> Source:
    """The draft in groups of layers. With bonus calibration, the newest token and all that was accepted are
    read layer after layer; else in groups as well.
    """

    def scores(lane: Lane, nodes: list[int]) -> torch.Tensor:
        whole = nodes == [lane.tip] and (parameters["calibrate"] or lane.tip < lane.tree.trunk)
        layers = None if whole else grouped(lane)
        return lane.process(lane.score(nodes, "draft", "draft", layers=layers), nodes)

    return Source(
        scores,
        "grouped layers",
        "A deep model guesses, running the attentions of several of its layers at once.",
    )


def grouped(lane: Lane) -> Layers | None:
    """The groups of the lane's draft; None if its layers cannot be grouped."""
    engine = lane.models["target" if lane.parameters["drafter"] == ITSELF else "draft"].engine
    if not engine.gives(Capability.LAYERS):
        return None
    return Layers.grouped(lane.parameters["group"], engine.layer_count)


def easyspec_pair(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """A chain from the grouped draft, with its own distribution; the simplest exact verifier."""
    temperature = parameters["temperature"]
    shape = widths([1] * parameters["num_assistant_tokens"], temperature)
    return simplest(drafted(fuzzy(parameters), shape), temperature)


def calibration(parameters: dict) -> Part:
    """How the draft's keys are corrected, as a part of the strategy."""
    if parameters["calibrate"]:
        says = "The accepted tokens are read again with the newest one, layer by layer: exact keys."
        return Part("schedule", "bonus calibration", says)
    return Part("schedule", "no calibration", "The draft keeps the keys that its groups have made.")


def depths(layers: Layers) -> str:
    """How many attentions follow one another in a draft step, in a sentence."""
    after = layers.total - len(layers.early)
    return (
        f"A draft step has {layers.total} attentions one after the other; in groups of {layers.group}, on as "
        f"many devices, it would have {after}. Here one device computes them in turn."
    )


@draft_and_verify(
    easyspec_pair,
    name="easyspec",
    title="EasySpec",
    needs=("target", "draft"),
    parameters=(
        Parameter(
            "drafter",
            "choice",
            ITSELF,
            "Whose layers are grouped; a draft needs at least four.",
            choices=(ITSELF, DRAFT),
        ),
        Parameter(
            "group",
            "int",
            4,
            "Layers per group, whose attentions read the same input; 1: no grouping.",
            low=1,
            high=64,
        ),
        Parameter("num_assistant_tokens", "int", 4, "Tokens drafted per round.", low=1, high=32),
        Parameter("calibrate", "bool", True, "Read the accepted tokens again, layer by layer."),
        *GREEDY,
    ),
    papers=("easyspec",),
    views=TIMED_VIEWS,
    parts=lambda parameters: [*described(*easyspec_pair(parameters)), calibration(parameters)],
)
def easyspec(lane: Lane) -> Iterator[None]:
    """Runs the attentions of several draft layers at once: faster drafts, slightly worse tokens.

    1. All layers but the first and the last one form groups of consecutive layers.
    2. All attentions of a group read the same input h, so they could run at once on as many devices. Then,
       layer by layer, `h = h + attention(h at the group's start)` and `h = h + MLP(h)`.
    3. Tokens are drafted from the resulting distribution q, and the target tests them with that q.
    4. Bonus calibration: the keys computed by groups are discarded after each round. The accepted tokens and
       the newest one are read once, layer by layer, which also gives the next round's first guess.

    The text is the target's whatever the grouping; grouping only lowers acceptance. The draft is the target
    itself or the draft model. On one device nothing is faster; only the acceptance figures are meaningful
    here.
    """
    drafter, verifier, _ = easyspec_pair(lane.parameters)
    if lane.parameters["drafter"] == ITSELF:
        lane.scorers["draft"].close()
        lane.scorers["draft"] = lane.attach(lane.models["target"])
    layers = grouped(lane)
    if layers is not None and lane.parameters["group"] > 1:
        lane.note(depths(layers) if layers.early else SHALLOW.format(layers.total))
    yield from rounds(lane, drafter, verifier)
