"""Sequoia: the drafted tree has the optimal shape, given how often the k-th child is accepted."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from decoders.lane import Lane
from decoders.parameters import integer, real, reals
from decoders.sampling.sampling_parameters import GREEDY
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import TOKEN_BY_TOKEN, VERIFIER, chosen
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters.draft_model import DRAFT_MODEL
from decoders.speculative.drafters.fixed_trees import skeleton
from decoders.speculative.drafters.optimal_tree import Forms, Skeleton, best_size, forms
from decoders.speculative.forward_times import MEASURED, costs_parameter, forward_seconds, shown
from decoders.speculative.interfaces import Pair, drafted
from decoders.trace.scores import ScoreName

Costs = tuple[Mapping[int, float], float]  # of a target forward by its nodes, and of a draft forward


def assumed(parameters: dict) -> Costs:
    """The costs given by the parameters, in units of a target forward of one node."""
    sizes = range(1, parameters["budget"] + 2)
    return {n: 1.0 + parameters["node_cost"] * (n - 1) for n in sizes}, parameters["draft_cost"]


def measured(lane: Lane) -> Costs:
    """The costs measured on this machine, in units of a target forward of one node. The target is timed at a
    few sizes and interpolated linearly between them.
    """
    max_nodes = lane.parameters["budget"] + 1
    sizes = sorted({1, max_nodes, *(n for n in (4, 16, 64) if n < max_nodes)})
    draft = forward_seconds(lane, "draft", [1])[1]
    seconds = forward_seconds(lane, "target", sizes)
    by_size = ", ".join(f"{shown(seconds[n])} over {n}" for n in sizes)
    lane.note(f"Measured here: a draft forward takes {shown(draft)}, a target forward {by_size} tokens.")
    one = max(seconds[1], 1e-9)
    table = np.interp(range(1, max_nodes + 1), sizes, [seconds[n] / one for n in sizes])
    return dict(enumerate(table.tolist(), 1)), draft / one


def best(parameters: dict, costs: Costs) -> tuple[Skeleton, float, Forms]:
    """The form of up to budget drafted nodes that is worth most, the tokens per round expected of it, and the
    table of all forms.
    """
    table = forms(tuple(parameters["acceptance"]), parameters["budget"] + 1, parameters["max_depth"] + 1)
    nodes, levels, _ = best_size(table, *costs)
    return table.skeleton(nodes, levels), table.expected(nodes, levels), table


def sequoia_pair(parameters: dict, form: Skeleton) -> Pair:
    """A skeleton; greedy match at temperature 0, else the chosen verifier. What they promise does not depend
    on its form.
    """
    return chosen(drafted(DRAFT_MODEL, skeleton(form, parameters["temperature"])), parameters)


def fits(parameters: dict) -> str | None:
    """Why these acceptance rates by rank are impossible; None if they are valid."""
    if sum(parameters["acceptance"]) > 1.0:
        return "acceptance is a share of all rounds by rank, so its numbers add up to 1 at most."
    return None


@draft_and_verify(
    lambda parameters: sequoia_pair(parameters, {}),
    name="sequoia",
    title="Sequoia",
    parameters=(
        integer("budget", 16, "Maximum number of nodes that are drafted per round.", low=1, high=128),
        integer("max_depth", 8, "Maximum number of drafted levels.", low=1, high=16),
        reals(
            "acceptance",
            [0.743, 0.164, 0.035, 0.041],
            "How often the first, second, ... child is the accepted one; the experiment acceptance-by-rank "
            "measures it.",
            low=0.0,
            high=1.0,
        ),
        real(
            "draft_cost",
            0.0,
            "Cost of a draft forward, in target forwards. At 0 the tree is as deep as possible.",
            low=0.0,
            high=10.0,
        ),
        real(
            "node_cost",
            0.0,
            "Cost of one more node for the target, in forwards over a single "
            "token. At 0 the tree is as large as allowed.",
            low=0.0,
            high=10.0,
        ),
        replace(VERIFIER, choices=(TOKEN_BY_TOKEN, "traversal")),
        costs_parameter("Use draft_cost and node_cost as given, or forwards timed when the lane starts."),
        *GREEDY,
    ),
    papers=("sequoia",),
    together=fits,
)
def sequoia(lane: Lane) -> Iterator[None]:
    """Drafts the tree shape that is optimal for the acceptance rates of first, second, ... guesses.

    1. How often the k-th child of a node is the accepted one has been measured before; it hardly depends
       on where the node is.
    2. With these probabilities the expected tokens per round are the sum, over the nodes, of the product of
       the probabilities on their paths. Dynamic programming finds the shape with the largest sum, and the
       size that pays for its cost. Costs are assumed, unless `costs` is "measured": then both models are
       timed when the lane starts, and the shape, and above temperature 0 the drawn text, may differ from run
       to run.
    3. The shape is filled level by level with tokens drawn without replacement.
    4. One target forward scores the tree, and siblings are tested one after the other, as in a tree of fixed
       widths.
    """
    costs = measured(lane) if lane.parameters["costs"] == MEASURED else assumed(lane.parameters)
    form, tokens, table = best(lane.parameters, costs)
    drafter, verifier = sequoia_pair(lane.parameters, form)
    nodes, levels = sum(form.values()), max((len(path) + 1 for path in form), default=0)
    lane.note(f"A shape of {nodes} nodes on {levels} levels, expected to give {tokens:.2f} tokens per round.")
    for depth in range(1, len(table.value) - 1):  # the root is no drafted node and no drafted level
        row = {n: table.expected(n + 1, depth + 1) for n in range(1, table.value.shape[1] - 1)}
        expected = {n: value for n, value in row.items() if value > -math.inf}
        highest, chosen = max(expected.values()), nodes if depth == levels else None
        lane.record_table(
            lane.tip,
            ScoreName.TOKENS_PER_ROUND,
            highest,
            expected,
            "nodes",
            level=f"{depth} deep",
            chosen=chosen,
        )
    yield from rounds(lane, drafter, verifier)
