"""The simplest exact verifier for a way of drafting, or one that verifies whole paths if asked for."""

from decoders.parameters import choice
from decoders.speculative.interfaces import FIXED, WITH_REPLACEMENT, Drafter, Pair, Verifier
from decoders.speculative.verifiers.block_verification import BLOCK
from decoders.speculative.verifiers.greedy_match import GREEDY_MATCH
from decoders.speculative.verifiers.node_sampling import NODE_SAMPLING
from decoders.speculative.verifiers.recursive_rejection import RECURSIVE_REJECTION
from decoders.speculative.verifiers.traversal_verification import TRAVERSAL
from decoders.speculative.verifiers.with_replacement import WITH_REPLACEMENT_REJECTION

TOKEN_BY_TOKEN = "token by token"
JOINT = {"block": BLOCK, "traversal": TRAVERSAL}  # verifiers that judge paths as a whole
VERIFIER = choice(
    "verifier",
    TOKEN_BY_TOKEN,
    "Whether drawn guesses are tested one by one or as whole paths.",
    (TOKEN_BY_TOKEN, *JOINT),
)


def simplest_verifier(fill: str, temperature: float) -> Verifier:
    """Greedy match at temperature 0; else node sampling for deterministic guesses, and for drawn ones the
    token rejection that fits how they were drawn.
    """
    if temperature == 0.0:
        return GREEDY_MATCH
    if fill == FIXED:
        return NODE_SAMPLING
    return WITH_REPLACEMENT_REJECTION if fill == WITH_REPLACEMENT else RECURSIVE_REJECTION


def simplest(drafter: Drafter, temperature: float) -> Pair:
    """The pair of most strategies: a drafter and its simplest exact verifier."""
    return drafter, simplest_verifier(drafter.fill, temperature)


def chosen(drafter: Drafter, parameters: dict) -> Pair:
    """As `simplest`, with the verifier that VERIFIER asks for where something is drawn."""
    temperature = parameters["temperature"]
    if temperature == 0.0 or parameters["verifier"] == TOKEN_BY_TOKEN:
        return simplest(drafter, temperature)
    return drafter, JOINT[parameters["verifier"]]


def fits(drafter: Drafter, verifier: Verifier) -> str | None:
    """The message to show if `verifier` is not exact for the way in which `drafter` fills its slots, nor a
    relaxed rule for it; None if they go together.
    """
    if drafter.fill in verifier.exact_for | verifier.relaxed_for:
        return None
    if verifier.relaxed_for:
        return (
            f"{verifier.name.capitalize()} has no rule for guesses that are {drafter.fill}: choose another "
            "tree, or temperature 0."
        )
    good = [name for name, v in JOINT.items() if drafter.fill in v.exact_for]
    return (
        f"{verifier.name.capitalize()} would distort the target's distribution where guesses are "
        f"{drafter.fill}; choose {' or '.join([TOKEN_BY_TOKEN, *good])}."
    )
