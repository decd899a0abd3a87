"""Sequoia: the form of the drafted tree is the best for how often the k-th child is accepted."""

import math
from collections.abc import Iterator

from decoders.lane import Lane
from decoders.registry import Parameter, strategy
from decoders.speculative.best_skeleton import Forms, Skeleton, best_size, forms
from decoders.speculative.draft_model import DRAFT_MODEL
from decoders.speculative.parts import TIMED_VIEWS, Drafter, Verifier, badge, described, drafted
from decoders.speculative.rounds import rounds
from decoders.speculative.shapes import skeleton
from decoders.speculative.shaping import SHAPING
from decoders.speculative.simplest import simplest


def best(parameters: dict) -> tuple[Skeleton, float, Forms]:
    """The form of up to budget drafted nodes that is worth most, the tokens a round expected of it, and the
    table of all forms.
    """
    most = parameters["budget"] + 1
    found = forms(tuple(parameters["acceptance"]), most, parameters["max_depth"] + 1)
    seconds = {n: 1.0 + parameters["node_cost"] * (n - 1) for n in range(1, most + 1)}
    nodes, levels, _ = best_size(found, seconds, parameters["draft_cost"])
    return found.skeleton(nodes, levels), found.expected(nodes, levels), found


def parts(parameters: dict) -> tuple[Drafter, Verifier, float]:
    """The best skeleton; greedy match at temperature 0, else recursive rejection."""
    temperature = parameters["temperature"]
    shape = skeleton(best(parameters)[0], temperature)
    return simplest(drafted(DRAFT_MODEL, shape), temperature)


def fits(parameters: dict) -> str | None:
    """Why the acceptance by rank cannot be one; None if it can."""
    if sum(parameters["acceptance"]) > 1.0:
        return "acceptance is a share of all rounds by rank, so its numbers add up to 1 at most."
    return None


@strategy(
    name="sequoia",
    title="Sequoia",
    family="speculative",
    needs=("target", "draft"),
    parameters=(
        Parameter("budget", "int", 16, "Nodes that are drafted in a round at most.", low=1, high=128),
        Parameter("max_depth", "int", 8, "Levels that are drafted at most.", low=1, high=16),
        Parameter(
            "acceptance", "floats", [0.743, 0.164, 0.035, 0.041],
            "How often the first, second, ... child is the accepted one; the experiment acceptance-by-rank "
            "measures it.", low=0.0, high=1.0,
        ),
        Parameter(
            "draft_cost", "float", 0.0, "What a draft forward costs, in target forwards. At 0 the tree is as "
            "deep as it can be.", low=0.0, high=10.0,
        ),
        Parameter(
            "node_cost", "float", 0.0, "What a further node costs the target, in forwards of one. At 0 the "
            "tree is as large as it may be.", low=0.0, high=10.0,
        ),
        *SHAPING,
    ),
    papers=("sequoia",),
    views=(*TIMED_VIEWS[:2], "plan", *TIMED_VIEWS[2:]),
    badge=lambda parameters: badge(*parts(parameters)),
    parts=lambda parameters: described(*parts(parameters)),
    together=fits,
)  # fmt: skip
def sequoia(lane: Lane) -> Iterator[None]:
    """The drafted tree has the form that is best for how good the draft's first, second, ... guesses are.

    1. How often the k-th child of a node is the one that is accepted has been measured before; it is much
       the same wherever the node stands.
    2. With these chances the expected number of tokens a round is the sum, over the nodes, of the product of
       the chances on their paths. Dynamic programming finds the form with the largest sum, and the size that
       is worth its costs.
    3. The form is filled level by level with tokens drawn without putting any back.
    4. One target forward scores the tree, and siblings are tested one after the other, as in a tree of fixed
       widths.
    """
    drafter, verifier, _ = parts(lane.parameters)
    form, tokens, found = best(lane.parameters)
    nodes, levels = sum(form.values()), max((len(path) + 1 for path in form), default=0)
    lane.note(f"A form of {nodes} nodes on {levels} levels: {tokens:.2f} tokens a round are expected of it.")
    for depth in range(1, len(found.value) - 1):  # the root is no drafted node and no drafted level
        row = {n: found.expected(n + 1, depth + 1) for n in range(1, found.value.shape[1] - 1)}
        told = {f"nodes {n}": value for n, value in row.items() if value > -math.inf}
        chosen = {"chosen": float(nodes)} if depth == levels else {}
        lane.rank(lane.tip, "tokens a round", max(told.values()), level=f"{depth} deep", **chosen, **told)
    yield from rounds(lane, drafter, verifier)
