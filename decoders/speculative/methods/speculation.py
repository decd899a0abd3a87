"""Speculation part by part: any shape of draft with any verifier, or the reason why two do not fit."""

from collections.abc import Iterator

from decoders.lane import Lane
from decoders.parameters import choice, integer
from decoders.sampling.sampling_parameters import ENDS, SHAPING
from decoders.speculative.declaration import draft_and_verify
from decoders.speculative.default_verifier import simplest_verifier
from decoders.speculative.draft_verify_loop import rounds
from decoders.speculative.drafters import draft_length
from decoders.speculative.drafters.draft_model import DRAFT_TEMPERATURE, at_temperature
from decoders.speculative.drafters.dynamic_trees import best_paths, best_slots, expand_and_rerank, slots_above
from decoders.speculative.drafters.fixed_trees import widths
from decoders.speculative.interfaces import FIXED, Drafter, Pair, Verifier, drafted
from decoders.speculative.methods.fuzzy import fuzzy_acceptance
from decoders.speculative.methods.lantern import Near, neighbour_support, neighbours_of
from decoders.speculative.methods.lenient import lenient_rejection
from decoders.speculative.methods.smartspec import by_goodput
from decoders.speculative.methods.specdec_pp import until_doubtful
from decoders.speculative.methods.typical_acceptance import typical
from decoders.speculative.verifiers.block_verification import BLOCK
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.kseq import KSEQ
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.speculative.verifiers.traversal_verification import TRAVERSAL
from decoders.speculative.verifiers.with_replacement import WITH_REPLACEMENT_REJECTION

DELTA = 0.3  # of best_paths
LARGEST = 128  # nodes of a draft
PLAIN = "the simplest that fits"
LENGTHS = {  # of a chain, from `depth`
    "fixed": draft_length.fixed,
    "plus 2, minus 1": draft_length.plus_two_minus_one,
    "batch heuristic": draft_length.batch_heuristic,
    "confident": lambda depth: draft_length.confident(0.4, depth),
    "cut before doubt": lambda depth: draft_length.cut_before(0.4, depth),
    "stop rule of SpecDec++": lambda depth: until_doubtful(0.3, min(2, depth), depth),
    "goodput": by_goodput,
}
SHAPES = {
    "chain": lambda s: draft_length.chain(LENGTHS[s["length"]](s["depth"]), s["temperature"]),
    "chains": lambda s: widths([s["width"], *[1] * (s["depth"] - 1)], s["temperature"], replacement=True),
    "widths": lambda s: widths([s["width"]] * s["depth"], s["temperature"]),
    "widths, with replacement": lambda s: widths([s["width"]] * s["depth"], s["temperature"], True),
    "best slots": lambda s: best_slots(s["budget"], s["temperature"]),
    "good slots": lambda s: slots_above(1 / s["budget"], LARGEST, s["temperature"]),
    "best paths": lambda s: best_paths(s["budget"], s["depth"], DELTA),
    "expand and rerank": lambda s: expand_and_rerank(s["width"], s["depth"], s["budget"]),
}
VERIFIERS = {
    "greedy match": GREEDY_MATCH,
    "node sampling": NODE_SAMPLING,
    "token rejection": RECURSIVE_REJECTION,
    "token rejection with replacement": WITH_REPLACEMENT_REJECTION,
    "K-SEQ": KSEQ,
    "block": BLOCK,
    "traversal": TRAVERSAL,
}
RELAXED = {  # with the values of their papers; the strategies of their own have parameters
    "lenient": lambda temperature, near: lenient_rejection(0.5, temperature),
    "typical": lambda temperature, near: typical(0.09, 0.3, temperature),
    "fuzzy": lambda temperature, near: fuzzy_acceptance(0.1, "js", temperature),
    "neighbours": lambda temperature, near: neighbour_support(0.1, near, temperature),
}
NEIGHBOURS = 50


def speculation_pair(parameters: dict, near: Near | None = None) -> Pair:
    """The chosen shape from the draft model, and the chosen verifier; `near` is needed for decoding."""
    shape, temperature = SHAPES[parameters["shape"]](parameters), parameters["temperature"]
    chosen = parameters["verifier"]
    if chosen in RELAXED:
        verifier = RELAXED[chosen](temperature, near)
    else:
        verifier = simplest_verifier(shape.fill, temperature) if chosen == PLAIN else VERIFIERS[chosen]
    return drafted(at_temperature(parameters), shape), verifier


def fits(parameters: dict) -> str | None:
    """Why the chosen parts do not go together, in a sentence; None if they do."""
    (drafter, verifier), temperature = speculation_pair(parameters), parameters["temperature"]
    if parameters["shape"] != "chain" and parameters["length"] != "fixed":
        return "Only a chain has a length to choose: choose the shape chain, or the length fixed."
    if verifier.relaxed_for:
        return relaxed_problem(parameters, drafter, verifier)
    if temperature == 0.0 and verifier.uses_q:
        return (
            "At temperature 0 nothing is drawn: choose greedy match or node sampling, or raise temperature."
        )
    if temperature > 0.0 and not verifier.draws:
        return "greedy match draws nothing: choose another verifier, or temperature 0."
    if verifier.uses_q and drafter.fill == FIXED:
        return f"{verifier.name} needs drawn guesses, but this shape takes the top-k: choose node sampling."
    if drafter.fill not in verifier.exact_for:
        good = ", ".join(name for name, v in VERIFIERS.items() if v.draws and drafter.fill in v.exact_for)
        bends = f"{verifier.name} would distort the target's distribution where guesses are {drafter.fill}"
        return f"{bends}; choose {good}."
    return None


def relaxed_problem(parameters: dict, drafter: Drafter, verifier: Verifier) -> str | None:
    """Why a relaxed verifier cannot judge the chosen shape, in a sentence; None if it can."""
    if drafter.fill not in verifier.relaxed_for:
        return (
            f"{verifier.name} has no rule for guesses that are {drafter.fill}: choose the shape chain, or "
            "temperature 0."
        )
    if drafter.sees_token and drafter.fill != FIXED:
        return (
            f"{verifier.name} cannot tell how lossy it is if guesses are thrown away before: choose another "
            "length, or temperature 0."
        )
    if parameters["verifier"] == "fuzzy" and parameters["shape"] != "chain":
        return f"{verifier.name} looks at no token, so it can judge no siblings: choose the shape chain."
    return None


@draft_and_verify(
    speculation_pair,
    name="speculation",
    title="Speculation, part by part",
    parameters=(
        choice("shape", "chain", "The shape of the draft.", SHAPES),
        choice("verifier", PLAIN, "The rule that tests the draft.", (PLAIN, *VERIFIERS, *RELAXED)),
        integer("depth", 3, "Levels of the draft; their maximum if it grows.", low=1, high=32),
        choice("length", "fixed", "How the length of a chain is chosen, given depth.", LENGTHS),
        integer("width", 2, "Children of a node, or the number of chains.", low=1, high=16),
        integer("budget", 8, "Number of nodes of a draft that grows.", low=1, high=LARGEST),
        DRAFT_TEMPERATURE,
        *SHAPING,
        *ENDS,
    ),
    together=fits,
)
def speculation(lane: Lane) -> Iterator[None]:
    """Draft and verify, with a shape and a verifier of your choice; the badge says what the pair guarantees.

    1. The draft model writes guesses in the chosen shape: a chain, several, a tree of fixed widths, or a tree
       that grows where the draft is confident.
    2. One target forward scores them all.
    3. The verifier decides which path is kept and draws the target's own token after it.

    A shape and a verifier fit together if the verifier is exact for the way in which the guesses were chosen;
    other pairs are refused with the reason. The last verifiers, from lenient on, are relaxed: they accept
    more than an exact one may, and the lane says how far its tokens deviate from the target's distribution.
    """
    near = neighbours_of(lane, NEIGHBOURS) if lane.parameters["verifier"] == "neighbours" else None
    drafter, verifier = speculation_pair(lane.parameters, near)
    yield from rounds(lane, drafter, verifier)
