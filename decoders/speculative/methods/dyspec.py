"""DySpec: a drafted tree that grows where the draft itself is confident."""

from dataclasses import replace

from decoders.parameters import integer, real
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import speculative
from decoders.speculative.default_verifier import simplest
from decoders.speculative.drafters.draft_model import DRAFT_TEMPERATURE, at_temperature
from decoders.speculative.drafters.dynamic_trees import best_slots, slots_above
from decoders.speculative.interfaces import Pair, drafted


@speculative(
    name="dyspec",
    title="DySpec",
    parameters=(
        integer("budget", 8, "Nodes that are drafted per round.", low=1, high=128),
        real(
            "threshold",
            0.0,
            "Above 0: fill all slots with at least this value, level by level, up to budget; often 1 / "
            "budget.",
            low=0.0,
            high=1.0,
        ),
        replace(DRAFT_TEMPERATURE, default=0.6),
        *GREEDY,
    ),
    papers=("dyspec",),
)
def dyspec_pair(parameters: dict) -> Pair:
    """The draft tree grows node by node where the draft is confident, within a budget.

    1. The value of an open slot is the probability that the verifier reaches it, if the draft's probabilities
       are right: 1 for the first slot; `value x q(token)` for a slot below a token; `value x (1 - q(token))`
       for the next slot beside it.
    2. The slot with the highest value gets the next token, drawn from the rest of q there, until budget
       nodes are drafted.
    3. One target forward scores the tree, and siblings are tested one after the other, as in a tree of fixed
       widths.

    With a threshold the tree grows level by level instead: every slot with at least that value gets a token,
    with one draft forward per level instead of one per node.

    A confident draft gives a long chain, an uncertain one a wide tree; as published it drafts at a
    temperature of 0.6, whatever the target's is, which makes it more confident. A slot is chosen before its
    token is drawn, so the text keeps exactly the target's distribution.
    """
    temperature, budget, threshold = (parameters[name] for name in ("temperature", "budget", "threshold"))
    shape = slots_above(threshold, budget, temperature) if threshold else best_slots(budget, temperature)
    return simplest(drafted(at_temperature(parameters), shape), temperature)
