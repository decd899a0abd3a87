"""Names of the verifiers and what each does in one sentence, for the cards of strategies."""

from typing import NamedTuple

from decoders.trace.number_format import number


class Card(NamedTuple):
    """A verifier's name and its sentence."""

    name: str
    says: str


GREEDY_MATCH = Card(
    "greedy match",
    "A drafted token passes if it is the target's most likely token at its position; otherwise that token is "
    "written.",
)
NODE_SAMPLING = Card(
    "node sampling",
    "The target draws its own token at each position; a drafted token passes if it equals that one.",
)
TOKEN_REJECTION = Card(
    "token rejection",
    "A drafted token passes with probability min(1, p/q); after a rejection the next one is tested against, "
    "or drawn from, the residual max(p - q, 0).",
)
TOKEN_REJECTION_WITH_REPLACEMENT = Card(
    "token rejection with replacement",
    "A drafted token passes with probability min(1, p/q); after a rejection the next draw, which may be the "
    "same token again, is tested against the residual max(p - q, 0).",
)
K_SEQ = Card(
    "K-SEQ",
    "Each of several independent draws passes with probability min(1, p / (rho q)), with the smallest rho "
    "that leaves the target's distribution unchanged.",
)
BLOCK = Card(
    "block verification",
    "Every prefix of the chain is tested as a whole, and the longest that passes is kept.",
)
TRAVERSAL = Card(
    "traversal verification",
    "Paths are tested as a whole from their leaves; a leaf that fails is taken off, and the next is tested.",
)
BEAM_COINS = Card(
    "a coin for each entry of each beam",
    "Each entry of each beam passes with min(1, p / q), and the longest prefix is kept. Biased.",
)


def adjusted_target(eta: float, greedy: bool) -> Card:
    """For one eta."""
    if greedy:
        says = (
            "A drafted token passes if it is the most likely one under p', which is p moved towards q, by "
            f"eta = {number(eta)}."
        )
    else:
        says = (
            "A drafted token passes with probability min(1, p'/q), where p' is p moved towards q, by eta "
            f"= {number(eta)}."
        )
    return Card("adjusted target", says)


def block_test(says: str) -> Card:
    """`says` depends on the chosen test."""
    return Card("block test", says)


def whole_fragments(name: str, says: str) -> Card:
    """That of a verifier whose accepted path is cut."""
    return Card(
        f"{name}, whole fragments", f"{says} Accepted tokens after the last end of a fragment are cut."
    )
