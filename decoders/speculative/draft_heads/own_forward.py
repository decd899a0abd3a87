"""What PPD and hidden transfer share: their parameters, and how their trees are computed before decoding."""

from decoders.heads.path_independent.lookahead_tokens import LookaheadTokens
from decoders.lane import Lane
from decoders.parameters import integer, real
from decoders.speculative.draft_heads.trees import ASSUMED, NO_RANKS
from decoders.speculative.drafters.own_slots import Plan
from decoders.speculative.drafters.per_state_trees import StateTree, best_rows, expected_tokens, planned
from decoders.speculative.forward_times import MEASURED, costs_parameter, forward_seconds
from decoders.strategy import Parameter
from decoders.trace.scores import ScoreName

SIZES = (8, 12, 16, 24, 32, 48, 64)  # rows of a forward, of which the best is taken
PROMISE = "Forwards of {} rows, expected to give {:.2f} tokens each."


def slot_parameters(rows: int) -> tuple[Parameter, ...]:
    """The size of the forwards, fixed or chosen by what rows cost."""
    return (
        integer(
            "rows",
            rows,
            "Maximum number of positions per forward: the newest token, drafted nodes and slots.",
            low=2,
            high=128,
        ),
        real(
            "row_cost",
            0.0,
            "Cost of one more position, in forwards over a single token. At 0 a forward has as many "
            "positions as allowed.",
            low=0.0,
            high=10.0,
        ),
        costs_parameter("Use row_cost as given, or forwards timed when the lane starts."),
    )


def plan_of(parameters: dict, depth: int) -> Plan:
    """Plans the trees of a module by its measured ranks, for at most `depth` slots after a node."""

    def plan(lane: Lane, module: LookaheadTokens) -> dict[int, StateTree]:
        n = min(depth, module.depth)
        if not n:
            return {0: StateTree({})}
        measured = module.rank_accuracy
        if measured is None:
            lane.note(NO_RANKS)
        accuracy = tuple(tuple(ranks) for ranks in (measured or ASSUMED)[:n])
        n, max_rows = min(n, len(accuracy)), parameters["rows"]
        rows = chosen_rows(lane, accuracy, n, max_rows)
        trees = planned(accuracy, n, rows)
        tokens, stationary = expected_tokens(accuracy, trees)
        lane.note(PROMISE.format(rows, tokens))
        for state, tree in trees.items():
            lane.record_measure(
                lane.tip,
                ScoreName.STATE,
                float(state),
                level="plan",
                share=float(stationary[state]),
                nodes=float(len(tree.slots)),
                slots=float(sum(tree.slots.values())),
            )
        return trees

    def chosen_rows(lane: Lane, accuracy: tuple, n: int, max_rows: int) -> int:
        sizes = [size for size in SIZES if size < max_rows] + [max_rows]
        if parameters["costs"] == MEASURED:
            return best_rows(accuracy, n, forward_seconds(lane, "target", [1, *sizes]))[0]
        if parameters["row_cost"]:
            cost = parameters["row_cost"]
            return best_rows(accuracy, n, {size: 1 + cost * (size - 1) for size in [1, *sizes]})[0]
        return max_rows

    return plan
